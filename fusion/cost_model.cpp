#include "fusion/cost_model.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "codegen/kernel_analysis.h"
#include "codegen/many_writers.h"
#include "codegen/short_arrays.h"
#include "codegen/thunk_sample.h"
#include "fusion/effects.h"
#include "fusion/segment_lengths.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;

CostModel::CostModel(const lcu::Program& program, const TargetCosts& costs, SizeClasses classes,
                     std::unordered_map<ExprRef, double> known)
    : program_(program), costs_(costs), classes_(classes), known_(std::move(known)) {
  if (costs.shortOffsets) shortArrays_ = codegen::shortArrays(program);
  for (const auto& [extent, value] : known_) told_.insert(extent);
  lcu::forEachBlock(program, [&](const lcu::Block& block) {
    for (const lcu::Stmt& stmt : block.stmts) {
      if (const auto* grade = std::get_if<lcu::Grade>(&stmt.node); grade && grade->sorted)
        if (const auto keys = arrayBits_.find(grade->keys); keys != arrayBits_.end()) {
          const double bits = keys->second;
          arrayBits_[stmt.results[grade->sortedResult()]] = bits;
        }
      const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
      if (!launch) continue;
      for (const lcu::Soac& soac : launch->kernel.bindings) {
        noteBits(soac);
        if (soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition) {
          offsetsOfFilter_[soac.results[0]] = soac.space.extent;
        }
        for (size_t k = 0; soac.kind == SoacKind::Scan && k < soac.pull.size(); ++k)
          if (const auto range = lengthRange(soac, k))
            lengths_[soac.results[k]] = static_cast<double>(range->least + range->most) / 2;
        if (soac.kind == SoacKind::Permute) {
          for (size_t k = 0; k < soac.fill.size(); ++k)
            permuted_[soac.results[k]] = {soac.space.extent, soac.target, soac.fill[k]};
        }
      }
    }
  });
}

double CostModel::elements(ExprRef extent) const {
  if (const auto it = known_.find(extent); it != known_.end()) return it->second;
  known_[extent] = classes_.unknownElements;  // in case the extent of an array mentions itself
  const double value = std::max(0.0, estimate(extent));
  known_[extent] = value;
  return value;
}

double CostModel::estimate(ExprRef e) const {
  switch (e->kind) {
    case ExprKind::Constant:
      return isFloat(e->type) ? e->constant.f : static_cast<double>(e->constant.i);
    case ExprKind::Size: {
      const ExprRef extent = program_.vars[e->index].extent;
      return extent && extent != e ? elements(extent) : classes_.unknownElements;
    }
    case ExprKind::Host:
      if (const auto it = offsetsOfFilter_.find(e->index); it != offsetsOfFilter_.end()) {
        return classes_.survivors * elements(it->second);
      }
      return classes_.unknownElements;
    case ExprKind::Load: {  // the total of an offsets array
      if (const auto it = offsetsOfFilter_.find(e->index); it != offsetsOfFilter_.end()) {
        return classes_.survivors * elements(it->second);
      }
      const ExprRef extent = program_.vars[e->index].extent;
      const auto known = lengths_.find(e->index);
      const double length = known == lengths_.end() ? classes_.unknownLength : known->second;
      return extent ? std::max(1.0, length * (elements(extent) - 1)) : classes_.unknownElements;
    }
    case ExprKind::Convert:
    case ExprKind::Project:
      return elements(e->operands[0]);
    case ExprKind::Check:
      return elements(e->operands[1]);
    case ExprKind::If:
      return elements(e->operands[1]);
    case ExprKind::Op: {
      const double a = elements(e->operands[0]);
      const double b = e->operands.size() > 1 ? elements(e->operands[1]) : 0;
      switch (e->op) {
        case ScalarOp::Add:
          return a + b;
        case ScalarOp::Sub:
          return a > b ? a - b : classes_.survivors * a;
        case ScalarOp::Mul:
          // Two guesses are no better than one.
          if (isGuessed(e->operands[0]) && isGuessed(e->operands[1]))
            return std::max(a, b) * classes_.unknownLength;
          return a * b;
        case ScalarOp::Div:
          return b > 0 ? a / b : a;
        case ScalarOp::Max:
          return std::max(a, b);
        case ScalarOp::Min:
          return std::min(a, b);
        default:
          return classes_.unknownElements;
      }
    }
    default:
      return classes_.unknownElements;
  }
}

bool CostModel::isGuessed(ExprRef e) const {
  const auto [it, fresh] = guessed_.try_emplace(e, true);  // in case the extent of an array mentions itself
  if (!fresh) return it->second;
  const auto estimated = [&] {
    if (told_.contains(e)) return false;
    switch (e->kind) {
      case ExprKind::Size: {
        const ExprRef extent = program_.vars[e->index].extent;
        return !extent || extent == e || isGuessed(extent);
      }
      case ExprKind::Host:
      case ExprKind::Load: {
        const auto filter = offsetsOfFilter_.find(e->index);
        return filter == offsetsOfFilter_.end() || isGuessed(filter->second);
      }
      default:
        return std::any_of(e->operands.begin(), e->operands.end(),
                           [&](ExprRef operand) { return isGuessed(operand); });
    }
  };
  return guessed_[e] = estimated();
}

double CostModel::bytesOf(lcu::VarId array) const {
  return elements(program_.vars[array].extent) * storedBytes(array);
}

double CostModel::storedBytes(lcu::VarId array) const {
  const bool isShort = std::binary_search(shortArrays_.begin(), shortArrays_.end(), array);
  return sizeOf(isShort ? ScalarType::Int32 : program_.vars[array].type);
}

namespace {

/// A product by -1, as from the end of an array: its neighbours are neighbours.
bool changesSign(ExprRef product) {
  return std::any_of(product->operands.begin(), product->operands.end(),
                     [](ExprRef e) { return e->kind == ExprKind::Constant && e->constant.i == -1; });
}

}  // namespace

AccessPattern patternOf(ExprRef position) {
  if (position->kind == ExprKind::Param && position->index < 2) return AccessPattern::InOrder;
  // What is the same for all elements of a segment only tells where they begin.
  std::unordered_set<ExprRef> moving;
  bool varies = false;
  lcu::forEachNode({position}, [&](ExprRef e) {  // operands before what uses them
    const bool variable = e->kind == ExprKind::Param || e->kind == ExprKind::LoopVar;
    varies |= variable;
    if ((variable && (e->kind != ExprKind::Param || e->index != 1)) ||
        std::any_of(e->operands.begin(), e->operands.end(), [&](ExprRef x) { return moving.contains(x); }))
      moving.insert(e);
  });
  const bool begins = moving.contains(position);
  const bool jumps = lcu::anyNode({position}, [&](ExprRef e) {
    if (begins && !moving.contains(e)) return false;
    switch (e->kind) {
      case ExprKind::Load:  // where a segment begins is as good as a constant
        return e->operands[0]->kind != ExprKind::Param || e->operands[0]->index != 1;
      case ExprKind::Op:
        return (e->op == ScalarOp::Mul && !changesSign(e)) || e->op == ScalarOp::Rem || isFloat(e->type);
      case ExprKind::Loop:
      case ExprKind::Recursion:
      case ExprKind::Call:
        return true;
      default:
        return false;
    }
  });
  if (jumps) return AccessPattern::Arbitrary;
  return varies ? AccessPattern::Shifted : AccessPattern::Same;
}

double CostModel::loads(AccessPattern pattern, lcu::VarId array, double count, double least) const {
  if (pattern == AccessPattern::Same) return 0;
  if (pattern != AccessPattern::Arbitrary) return count * storedBytes(array) * costs_.byte;
  const GatherTime time = gathers(array, count, least);
  return time.memory + time.shared + time.own;
}

GatherTime CostModel::gathers(lcu::VarId array, double count, double least) const {
  const lcu::VarInfo& var = program_.vars[array];
  const bool unknown = var.extent->kind == ExprKind::Size && !told_.contains(var.extent);
  Places anywhere;
  anywhere.visited =
      std::max(1.0, storedBytes(array) * (unknown && least > 0 ? least : elements(var.extent)));
  const GatherTime one = gather(anywhere);
  return {count * one.memory, count * one.shared, count * one.own};
}

namespace {
constexpr double kSector = 32, kGranule = 64;  // bytes
/// What a piece of the cache of all cores takes where a warp loads its neighbours, too, relative to one
/// alone. (On an H100 maps that load a value and those at six distances move 7.0 TB/s, gathers from 4
/// MB 5.1.)
constexpr double kNeighbourLoad = 0.65;
}  // namespace

/// What of the pieces visited no cache holds.
double CostModel::missing(const Places& places) const {
  const double held = places.held ? *places.held : costs_.cacheBytes / std::max(1.0, places.visited);
  return std::min(places.fresh, std::max(0.0, 1 - held));
}

/// What a piece from the cache of all cores takes, relative to one alone.
double CostModel::besideNeighbours(const Places& places) const {
  return costs_.lockStep ? kNeighbourLoad + (1 - kNeighbourLoad) * places.scatter : 1;
}

GatherTime CostModel::gather(const Places& places) const {
  const double own = std::min(1.0, costs_.ownBytes / std::max(1.0, places.visited));
  const double far = std::min(missing(places), 1 - own);
  const double inOrder = std::min(costs_.randomLoad, kGranule * costs_.byte);
  const double granule = inOrder + places.scatter * (costs_.randomLoad - inOrder);
  // Threads of a warp that load the same element take one look at the cache together; those of neighbours,
  // one for each line.
  constexpr double kSame = 0.4, kSideBySide = 0.25;  // of a look; pieces of each load, at 8 bytes
  const double apart = costs_.lockStep ? std::min(1.0, places.sectors / kSideBySide) : 1;
  const double beside = (1 - std::min(1.0, places.sectors)) * (kSame + (1 - kSame) * apart);
  const double sharedLoad = besideNeighbours(places) * costs_.sharedLoad;
  if (places.missed) {
    const double fromMemory =
        std::min(missing(places), *places.missed / std::max(places.sectors, *places.missed));
    const double held = std::max(0.0, places.sectors - *places.missed);
    return {fromMemory * places.granules * granule,
            std::max(0.0, *places.missed - fromMemory * places.sectors) * sharedLoad,
            held * costs_.cachedLoad + beside * costs_.besideLoad};
  }
  return {far * places.granules * granule, places.sectors * (1 - own - far) * sharedLoad,
          places.sectors * own * costs_.cachedLoad + beside * costs_.besideLoad};
}

namespace {
double both(double a, double b, double hidden) { return std::max(a, b) + (1 - hidden) * std::min(a, b); }
}  // namespace

double CostModel::together(const GatherTime& time) const {
  return both(both(time.memory, time.shared, costs_.cachesOverlap), time.own, costs_.cachesOverlap);
}

double CostModel::wait(const Places& places, double lanes) const {
  // Whether some lane misses: where one does, others often do, too, so it is less often than they are many.
  constexpr double kLanesOfHalf = 0.5;  // that miss where half of the warps wait
  const auto some = [lanes](double share) { return lanes * share / (kLanesOfHalf + lanes * share); };
  const double missed = std::min(places.missed.value_or(places.sectors), places.sectors);
  const double far = places.granules * places.fresh * (1 - places.held.value_or(0));
  return costs_.ownWait + some(missed) * costs_.sharedWait + some(far) * costs_.memoryWait;
}
double CostModel::wait(bool near) const {
  return costs_.ownWait + costs_.sharedWait + (near ? 0 : costs_.memoryWait);
}

PermuteTime CostModel::permuting(const lcu::Soac& soac, double count, double bytes,
                                 const std::optional<Places>& sampled) const {
  double width = 1;
  for (ExprRef e : soac.pull) width = std::max<double>(width, sizeOf(e->type));
  const double dense = width / kSector;
  Places places;
  places.visited = bytes;
  if (sampled) {
    places = *sampled;
  } else if (patternOf(soac.destination) != AccessPattern::Arbitrary) {
    places.sectors = dense;
    places.granules = dense / 2;
    places.scatter = 0;
  }
  // A granule of which only a part is written takes longer than one that is replaced.
  const double whole = places.granules > 0 ? std::clamp(places.sectors / places.granules - 1, 0.0, 1.0) : 1;
  const double replaced = std::min(costs_.randomStore, 2 * kGranule * costs_.byte);
  const double partial = costs_.randomStore - (1 - places.scatter) * (costs_.randomStore - replaced) / 2;
  const double granules = missing(places) * places.granules * (whole * replaced + (1 - whole) * partial);
  if (!costs_.lockStep) {
    const double scattered = std::clamp((places.sectors - dense) / (1 - dense), 0.0, 1.0);
    const double inCache = costs_.permuteElement + scattered * (costs_.sharedStore - costs_.permuteElement);
    return {.exposed = count * std::max(inCache, granules)};
  }
  // Writes to one piece take turns: the fewer pieces there are, the longer.
  constexpr double kTurns = 9;
  const double turns = 1 + std::min(kTurns, costs_.crowdedBytes / std::max(1.0, bytes));
  const double columns = static_cast<double>(soac.results.size());
  // What is written in order counts as stored, unless that is the fill.
  const double inOrder = width * costs_.byte;
  const double memory = std::max(granules, inOrder) - (soac.fill.empty() ? inOrder : 0);
  if (soac.writesInAnyOrder())
    return {count * columns * memory, count * columns * places.sectors * turns * costs_.sharedStore, 0};
  // Writers look first who has been there, and leave it at that if it was one behind them.
  const double size = bytes / width / columns;
  if (codegen::findsWritersTogether(static_cast<int64_t>(count), static_cast<int64_t>(size),
                                    soac.fill.empty())) {
    constexpr double kScattered = 1.4;  // where neighbours write far from each other
    constexpr double kNoted = sizeof(uint32_t);
    const double scattered = std::clamp((places.sectors - dense) / (1 - dense), 0.0, 1.0);
    return {.memory = count * kNoted * costs_.byte,
            .exposed = count * costs_.collectedWriter * (1 + scattered * (kScattered - 1))};
  }
  const double thrown = count / std::max(1.0, size);
  const double guess = thrown > 0 ? (1 - std::exp(-thrown) + std::min(1.0, thrown)) / 2 / thrown : 1;
  const double writers = places.writers.value_or(guess);
  GatherTime look = gather(places);
  look.shared /= besideNeighbours(places);  // each on its own
  constexpr double kLookedAt = 0.85;        // of the time of a write: its piece is in the cache
  return {count * columns * (look.memory + writers * kLookedAt * memory),
          count * columns *
              (look.shared + look.own +
               writers * std::max(costs_.permuteElement, places.sectors * costs_.sharedStore)),
          0};
}

double CostModel::taken(ExprRef condition, bool branch) const {
  if (condition->kind != ExprKind::Op || condition->operands.size() != 2) return 1;
  const ExprRef value = condition->operands[0], limit = condition->operands[1];
  if (value->kind != ExprKind::Load || limit->kind != ExprKind::Constant || isFloat(value->type)) return 1;
  const auto it = permuted_.find(value->index);
  if (it == permuted_.end()) return 1;
  const int64_t fill = it->second.fill.i, bound = limit->constant.i;
  bool ofEmpty = false;  // what the condition says of a place that is not filled
  switch (condition->op) {
    case ScalarOp::GreaterEqual:
      ofEmpty = fill >= bound;
      break;
    case ScalarOp::Greater:
      ofEmpty = fill > bound;
      break;
    case ScalarOp::LessEqual:
      ofEmpty = fill <= bound;
      break;
    case ScalarOp::Less:
      ofEmpty = fill < bound;
      break;
    case ScalarOp::Equal:
      ofEmpty = fill == bound;
      break;
    case ScalarOp::NotEqual:
      ofEmpty = fill != bound;
      break;
    default:
      return 1;
  }
  if (ofEmpty == branch) return 1;
  const double thrown = elements(it->second.elements) / std::max(1.0, elements(it->second.target));
  return (1 - std::exp(-thrown) + std::min(1.0, thrown)) / 2;
}

namespace {

/// What all elements evaluate: not the branches of a choice, nor what a filter passes on.
void addUnguarded(ExprRef e, std::unordered_set<ExprRef>& seen) {
  if (!seen.insert(e).second) return;
  const size_t count = e->kind == ExprKind::If ? 1 : e->operands.size();
  for (size_t k = 0; k < count; ++k) addUnguarded(e->operands[k], seen);
}

}  // namespace

std::vector<lcu::VarId> CostModel::guardedLoads(const lcu::Soac& soac) {
  if (soac.kind != SoacKind::Filter) return {};
  std::unordered_set<ExprRef> unguarded;
  addUnguarded(soac.where, unguarded);
  std::vector<lcu::VarId> arrays;
  lcu::forEachNode(soac.pull, [&](ExprRef e) {
    if (e->kind != ExprKind::Load || unguarded.contains(e)) return;
    if (codegen::loadsOfSegment(e)) return;  // what a segment has is there before
    const AccessPattern pattern = patternOf(e->operands[0]);
    if (pattern == AccessPattern::InOrder || pattern == AccessPattern::Shifted) arrays.push_back(e->index);
  });
  return arrays;
}

void CostModel::noteBits(const lcu::Soac& soac) {
  const bool same =
      soac.kind == SoacKind::Map || soac.kind == SoacKind::Filter || soac.kind == SoacKind::Permute;
  if (!same) return;
  const ElementFacts facts(soac.pull, arrayBits_);
  const size_t first = soac.results.size() - std::min(soac.results.size(), soac.pull.size());
  for (size_t k = first; k < soac.results.size(); ++k) {
    const ExprRef value = soac.pull[k - first];
    if (!isFloat(value->type)) arrayBits_[soac.results[k]] = facts.bits(value);
  }
}

double CostModel::arithmetic(const std::vector<ExprRef>& thunks) const {
  const ElementFacts facts(thunks, arrayBits_);
  double total = 0;
  lcu::forEachNode(thunks, [&](ExprRef e) {
    if (facts.varies(e)) total += operation(e, facts) * (facts.inLoop(e) ? classes_.iterations : 1);
  });
  return total;
}

SoacTime CostModel::timeOf(const lcu::Soac& soac) const {
  if (soac.kind == SoacKind::Once) return {};
  return timeOf(soac, elements(soac.space.extent),
                soac.space.segmented() ? elements(soac.space.segments) : 0);
}

SoacTime CostModel::timeOf(const lcu::Soac& soac, double n, double segments) const {
  SoacTime time;
  time.kind = soac.kind;
  const std::vector<ExprRef> thunks = thunksOf(soac);
  time.arithmetic = n * arithmetic(thunks);
  if (soac.kind == SoacKind::Reduce || soac.kind == SoacKind::Scan)
    time.arithmetic += n * arithmetic(soac.combine.result);
  double checks = 0;
  lcu::forEachNode(thunks, [&](ExprRef e) { checks += e->kind == ExprKind::Check; });
  double width = 0;
  for (ExprRef e : soac.pull) width += sizeOf(e->type);
  switch (soac.kind) {
    case SoacKind::Scan:
      time.collective = n * (costs_.scanElement + width * costs_.scanByte);
      time.further = n * static_cast<double>(soac.pull.size()) * costs_.furtherScan;
      break;
    case SoacKind::Filter:
    case SoacKind::Partition:
      time.collective = n * (costs_.filterElement + width * costs_.filterByte);
      time.exposed = n * (static_cast<double>(guardedLoads(soac).size()) * costs_.guardedLoad +
                          checks * costs_.checkedFilter);
      time.further = n * costs_.furtherFilter;
      break;
    case SoacKind::Reduce:
      time.columns = static_cast<double>(soac.pull.size());
      time.further = n * time.columns * costs_.furtherScan / 2;
      break;
    case SoacKind::Permute:
      time.exposed = permuting(soac, n, elements(soac.target) * width).all();
      break;
    default:
      break;
  }
  if (soac.space.segmented()) {
    time.elements = n;
    time.segments = segments;
    time.lookedUp = soac.space.kind == lcu::SpaceKind::Offsets;
    // A GPU finds the first extremes of segments by places of the space (codegen/cuda/segment_places.h).
    std::vector<ExprRef> numbering = soac.effects;
    for (ExprRef e : {soac.where, soac.destination})
      if (e) numbering.push_back(e);
    for (size_t k = 0; k < soac.pull.size(); ++k)
      if (!costs_.lockStep || soac.kind != SoacKind::Reduce || !codegen::extremeOfFirst(soac, k))
        numbering.push_back(soac.pull[k]);
    time.numbered =
        lcu::anyNode(numbering, [](ExprRef e) { return e->kind == ExprKind::Param && e->index > 0; });
  }
  return time;
}

namespace {

/// Share of the tiles of so many elements in which segments begin.
double withBorders(double elements, double segments, double tile) {
  return segments > 0 ? 1 / (1 + elements / segments / tile) : 1;
}

}  // namespace

/// Nothing waits for lower tiles, but all of them are scanned in order, by fewer warps than elsewhere. (On an
/// H200, beside folds of segments of 1000, scans of float32 take 1.7e-6 us an element, of float64 2.9, two of
/// these 4.) What is folded beside that takes less than by itself.
SoacTime overRanges(SoacTime time) {
  constexpr double kScan = 1.2, kFold = 0.75, kThunk = 1.2;
  time.columns *= kFold;
  for (double* work : {&time.arithmetic, &time.integers, &time.conversions}) *work *= kThunk;
  if (time.kind == SoacKind::Scan) {
    time.kind = SoacKind::Reduce;
    time.arithmetic += kScan * time.collective;
  }
  time.further = time.collective = 0;
  return time;
}

/// Of finding the borders of segments, once for all members.
double CostModel::segmentTime(const std::vector<SoacTime>& members) const {
  double elements = 0, segments = 0, columns = 0;
  bool reduces = false, scans = false, filters = false, numbered = false, rows = false, keyed = false;
  bool lookedUp = false;
  int gathers = 0;
  for (const SoacTime& member : members) {
    if (member.elements == 0) continue;
    elements = std::max(elements, member.elements);
    segments = std::max(segments, member.segments);
    reduces |= member.kind == SoacKind::Reduce;
    scans |= member.kind == SoacKind::Scan;
    rows |= member.rows;
    keyed |= member.keyed;
    filters |= member.kind == SoacKind::Filter && member.collective > 0;
    numbered |= member.numbered;
    lookedUp |= member.lookedUp;
    gathers += member.gathers;
    columns += member.columns;
  }
  // Of fewer, more lanes have places of their own.
  constexpr double kKeys = 100;
  if (keyed) return std::min(1.0, segments / kKeys) * elements * costs_.keyedElement;
  if (rows) return elements * costs_.rowElement;
  // Tiles that lie in one segment need not look for others.
  constexpr double kTiles = 8192;
  const double many = withBorders(elements, segments, kTiles);
  // A GPU marks where segments begin, which suffices for filters that need not know which they are.
  const bool marked = costs_.lockStep && filters && !numbered;
  if (filters && !marked) return many * elements * costs_.keptElement + segments * costs_.segment;
  if (numbered && reduces && !scans && !costs_.lockStep)
    return many * elements * costs_.numberedElement + segments * costs_.segment;
  // A warp transposes and scans the columns of a tile in which segments end. Of more columns, threads hold
  // fewer elements at once: more such tiles, in each of which as much is to be done.
  const double held = columns <= 2 ? 8 : (columns > 4 ? 4 : 8) / (gathers > 1 ? 2 : 1);
  constexpr double kWarp = 32, kMarks = 0.5;  // columns that finding the ends takes as long as
  const double folding =
      costs_.lockStep ? withBorders(elements, segments, kWarp * held) * elements * (kMarks + columns) / held
                      : elements;
  constexpr double kInOneSegment = 0.3;  // of what an element takes that has to find its own
  const double finding = costs_.lockStep ? kInOneSegment + (1 - kInOneSegment) * many : 1;
  if (numbered && reduces && !scans)
    return folding * costs_.numberedElement + elements * finding * costs_.segmentedElement +
           segments * costs_.segment;
  // Threads compute where segments of one length begin.
  const double borders = lookedUp || !costs_.lockStep ? segments * costs_.segment : 0;
  // Maps have no scan to hide it: characters of segments of 1000 took as long as of 100 (2.4 ps on an H200).
  if (numbered && !scans && costs_.lockStep) return elements * costs_.segmentedElement + borders;
  if (numbered) return many * elements * costs_.segmentedElement + borders;
  double time = 0;
  if (reduces) time = folding * costs_.foldedElement + segments * costs_.foldedSegment;
  if (scans || marked)
    time = std::max(time, elements * costs_.headedElement + segments * costs_.headedSegment);
  return time;
}

double CostModel::predicted(const MemoryTime& memory, const std::vector<SoacTime>& members,
                            double scanner) const {
  const bool scans = std::any_of(members.begin(), members.end(), [](const SoacTime& member) {
    return member.kind == SoacKind::Scan && member.collective > 0;
  });
  double arithmetic = 0, integers = 0, conversions = 0, collective = 0, exposed = 0, further = 0, first = 0,
         lookUps = 0;
  bool numbered = false, folds = false, lookedUp = false;
  double borders = 0;
  for (const SoacTime& member : members) {
    constexpr double kWaiting = 1024;
    if (member.numbered) borders = std::max(borders, withBorders(member.elements, member.segments, kWaiting));
    folds |= member.kind == SoacKind::Reduce && member.segments > 0 && !member.rows && !member.keyed;
    arithmetic += member.arithmetic;
    integers += member.integers;
    conversions += member.conversions;
    collective += member.collective;
    exposed += member.exposed;
    lookUps += member.lookUps;
    lookedUp |= member.lookedUp;
    numbered |= member.numbered && !member.rows && !member.keyed;
    if (member.kind == SoacKind::Reduce && scans) further += member.further;  // what threads hold for both
    if (member.collective == 0) continue;
    further += member.further;
    first = std::max(first, member.further);
  }
  arithmetic += integers - costs_.pipesOverlap * std::min(integers, arithmetic);
  arithmetic += conversions - costs_.pipesOverlap * std::min(conversions, arithmetic);
  if (folds) arithmetic *= costs_.segmentedWork;
  const double passes = collective > 0 ? costs_.passes : 1;
  // What a filter has to load before it decides hides more where nothing waits for a computed position.
  constexpr double kFilterInOrder = 0.7;
  const bool inOrderOnly = costs_.lockStep && memory.shared + memory.own == 0;
  double overlap = collective == 0 ? costs_.overlap
                   : !scans        ? (inOrderOnly ? kFilterInOrder : costs_.filterOverlap)
                   : numbered      ? costs_.collectiveOverlap
                                   : costs_.scanOverlap;
  // Where tiles lie in one segment, nothing waits for its number; nor where maps compute it.
  const bool computes = !lookedUp && !folds && collective == 0 && costs_.lockStep;
  if (numbered && !computes)
    overlap = std::min(overlap, borders * costs_.segmentedOverlap + (1 - borders) * overlap);
  const double storing = costs_.byte > 0 ? memory.stores * costs_.storedByte / costs_.byte : 0;
  // What comes from memory or goes there passes by the shared cache.
  const double inOrder = passes * memory.loads + memory.stores;
  const double bySector = costs_.byte > 0 ? kNeighbourLoad * costs_.sharedLoad / (kSector * costs_.byte) : 0;
  const double shared =
      passes * memory.shared +
      (costs_.cachesOverlap > 0 && memory.shared > 0 ? inOrder * std::min(1.0, bySector) : 0);
  const double moving = both(both(std::max(inOrder, storing), shared, costs_.cachesOverlap),
                             passes * memory.own, costs_.cachesOverlap);
  // Warps that fold segments work by themselves, and load a tile ahead.
  const bool hidden = numbered || (costs_.lockStep && folds && collective == 0);
  // What they wait for hides behind the arithmetic of others.
  const double waits = costs_.lockStep && numbered && collective == 0 ? lookUps : 0;
  const bool rows = costs_.lockStep && std::any_of(members.begin(), members.end(),
                                                   [](const SoacTime& member) { return member.rows; });
  const double finding = rows || hidden ? segmentTime(members) : 0;
  // As many warps as wait work meanwhile, but not at the same times.
  const double computing = std::hypot(both(passes * arithmetic, waits, costs_.overlap), memory.waits);
  const double working = (rows ? both(computing, finding, costs_.overlap) : computing + finding) + collective;
  const double tiles = both(moving, working, overlap) + exposed + memory.dependent + further - first +
                       (rows || hidden ? 0 : segmentTime(members));
  return costs_.launch + std::max(tiles, scanner);
}

double CostModel::collectiveBytes(const lcu::Soac& soac) const {
  // Tiles that carry much wait for the scanner: 1, 2, 3, 4, 6 and 8 scans of one array of 2^25 int64 took
  // 0.155, 0.244, 0.493, 0.600, 2.14 and 1.99 ms in one kernel on an H200, of 2^20 18, 21, 32, 35, 79 and 79
  // us (bench/results/h200-2026-11-28-scans-together.txt): four go together, with which few elements take a
  // launch less and many a fifth longer than by twos.
  const double scanned = costs_.lockStep ? 2 : 1;
  double bytes = 0;
  switch (soac.kind) {
    case SoacKind::Scan:
    case SoacKind::Filter:
    case SoacKind::Partition:
      for (ExprRef e : soac.pull) bytes += sizeOf(e->type);
      return soac.kind == SoacKind::Scan ? scanned * bytes : bytes + 4;
    default:
      return 0;
  }
}

}  // namespace kelpie::fusion

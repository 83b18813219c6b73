#include "fusion/kernel_time.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "codegen/integer_division.h"
#include "fusion/compiled_blocks.h"
#include "fusion/dependence_graph.h"
#include "fusion/gathered_records.h"
#include "fusion/load_waits.h"
#include "fusion/product_tiles.h"
#include "fusion/refilled_turns.h"
#include "fusion/sampled_places.h"
#include "fusion/scanner_time.h"
#include "fusion/segment_look_ups.h"
#include "fusion/slowest_turns.h"

namespace kelpie::fusion {

using codegen::BindingRole;
using codegen::ParameterKind;
using codegen::Schedule;
using codegen::ScheduleStep;
using codegen::ThunkSample;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

bool uses(ExprRef e, uint32_t param) {
  return lcu::anyNode({e}, [&](ExprRef x) { return x->kind == ExprKind::Param && x->index == param; });
}

bool changesInLoops(ExprRef e) {
  return lcu::anyNode({e},
                      [](ExprRef x) { return x->kind == ExprKind::LoopVar || x->kind == ExprKind::Call; });
}

/// About how many values a call of a function keeps.
constexpr size_t kFunctionValues = 6;
constexpr double kLanes = 32;  // of a warp
constexpr double kRowsTogether = 8, kRowThreads = 256, kManyRows = 1 << 17;

class Account {
 public:
  Account(const KernelStructure& structure, const CostModel& model, const LaunchSizes& sizes,
          const ThunkSample& sample)
      : structure_(structure),
        kernel_(structure.kernel),
        program_(structure.program),
        model_(model),
        sizes_(sizes),
        sample_(sample),
        info_(structure.info) {
    if (info_.space.extent) n_ = sizes.elements ? *sizes.elements : model.elements(info_.space.extent);
    if (info_.space.segmented()) m_ = sizes.segments ? *sizes.segments : model.elements(info_.space.segments);
    if (structure.keyed) n_ /= std::max(1.0, m_);  // positions
    if (!model.costs().lockStep) return;
    passes_[0].bySegments = structure.bySegments;
    passes_.resize(std::max<size_t>(1, structure.passes.size()));
    for (size_t p = 0; p < structure.passes.size(); ++p) {
      const codegen::cuda::PassPlan& plan = structure.passes[p].plan;
      passes_[p].scanner = scannerTime(plan, n_, model_.costs());
      using codegen::cuda::Grid;
      const bool ofTiles = plan.grid == Grid::Tiles || plan.heads();
      passes_[p].waits = plan.scanned() ? Waits::ForLower : ofTiles ? Waits::ForBlock : Waits::No;
      passes_[p].refilled = plan.refilled ? plan.refilled : plan.refilledInTiles;
      const int64_t tiles = std::max<int64_t>(1, std::llround(n_ / plan.shape.items()));
      passes_[p].itemsOfLane = plan.refilled ? static_cast<double>(tiles) /
                                                   static_cast<double>(codegen::cuda::blocksOfQueues(tiles))
                                             : plan.shape.rows * plan.shape.width;
      if (plan.scansRanges()) foldAhead(plan, passes_[p]);
    }
    if (structure.passes.size() < 2) {
      findProduct();
      return;
    }
    for (size_t p = 0; p < structure.passes.size(); ++p) {
      const lcu::Kernel& part = structure.passes[p].part.kernel;
      passes_[p].bySegments = structure.passes[p].bySegments;
      for (VarId v : part.returns) {
        madeBy_[v] = p;
        if (info_.output(v)) continue;
        const bool ofElements =
            std::any_of(part.bindings.begin(), part.bindings.end(), [&](const Soac& soac) {
              return soac.kind != SoacKind::Reduce &&
                     std::find(soac.results.begin(), soac.results.end(), v) != soac.results.end();
            });
        passes_[p].memory.stores +=
            (ofElements ? n_ : m_) * sizeOf(program_.vars[v].type) * model.costs().byte;
      }
    }
  }

  double run(double bytesWritten) {
    double passing = bytesWritten;
    for (VarId v : structure_.inOrder) passing += n_ * model_.storedBytes(v);
    const double launches = sample_.entered.empty() ? 0 : sample_.entered[0] / std::max(1.0, n_);
    if (model_.costs().lockStep && launches > 0)
      remembered_ = remembered(sample_, launches, passing, model_.costs().cacheBytes);
    for (size_t b = 0; b < kernel_.bindings.size(); ++b) {
      const size_t blocks = blocks_, positions = positions_, divisions = divisions_, calls = calls_;
      for (size_t pass : structure_.passesOf[b]) {  // short maps are in all passes that read them
        blocks_ = blocks;
        positions_ = positions;
        divisions_ = divisions;
        calls_ = calls;
        pass_ = &passes_[pass];
        binding(kernel_.bindings[b], info_.bindings[b].role);
      }
    }
    passes_[0].memory.stores += bytesWritten * model_.costs().byte;
    double time = model_.costs().launch;
    for (Pass& pass : passes_) {
      pass_ = &pass;
      for (const auto& [var, reads] : pass.inOrder) {
        const double element = model_.storedBytes(var) * model_.costs().byte *
                               (pass.readAhead.contains(var) ? 1 + pass.ahead : 1);
        const double again = model_.costs().besideLoad;
        if (reads.atElements > 0 || reads.shifted > 0) {
          const int more = std::max(0, reads.shifted - (reads.atElements > 0 ? 0 : 1));
          const double share = reads.shifted > 0 ? 1 : reads.atElements;
          addLoads({n_ * element * share, 0, n_ * again * more}, false);
        }
        pass.memory.loads += m_ * element * reads.atSegments;
      }
      addLoads(pass.gathered.time(model_, pass.rows, n_), false);
      if (const auto& p = info_.offsetsParameter)
        pass.memory.loads += model_.storedBytes(info_.parameters[*p].var) * (m_ + 1) * model_.costs().byte;
      if (!pass.members.empty() && pass.bySegments == BySegments::Maps)
        pass.members[0].exposed += waitsBySegments(pass);
      if (!pass.members.empty()) pass.members[0].integers += n_ * model_.costs().element + accesses(pass);
      pass.memory.dependent += model_.together(pass.repeated);
      time += model_.predicted(pass.memory, pass.members, pass.scanner) - model_.costs().launch;
    }
    return time;
  }

 private:
  /// Whom the warps of a tile wait for (slowest_turns.h).
  enum class Waits : uint8_t { No, ForBlock, ForLower };
  struct Reads {
    double atElements = 0;  ///< share of it that is loaded: 1, or less if only in branches
    double atSegments = 0;  ///< likewise
    int shifted = 0;        ///< positions near %i
  };
  /// Over the elements: GPUs may need several (codegen/cuda/pass_split.h).
  struct Pass {
    std::map<VarId, Reads> inOrder;
    std::set<std::pair<ExprRef, BindingRole>> evaluated;  ///< for every element
    MemoryTime memory;
    GatherTime repeated;  ///< loads in loops
    std::vector<SoacTime> members;
    double scanner = 0;  ///< what it takes at least
    BySegments bySegments = BySegments::No;
    std::optional<codegen::RefilledLoop> refilled;
    double itemsOfLane = 1;
    Waits waits = Waits::No;
    std::set<VarId> guarded;  ///< arrays that only survivors of filters load
    SegmentLookUps segmentLookUps;
    std::set<VarId> sideBySide;  ///< arrays that neighbouring segments read so
    GatheredRecords gathered;
    double rows = 0;  ///< of what is gathered
    bool scansRanges = false;
    double ahead = 0;           ///< share of the elements that ranges scan ahead of their tiles
    std::set<VarId> readAhead;  ///< of these
  };

  /// A range scans ahead what lies between the last begin of a segment in it and its end
  /// (codegen/cuda/range_scan.cuh).
  void foldAhead(const codegen::cuda::PassPlan& plan, Pass& pass) const {
    const int warps = plan.blocksAtOnce * (plan.shape.threads / 32);  // of a multiprocessor
    const auto ranges = static_cast<double>(codegen::cuda::kMultiprocessors * warps);
    pass.scansRanges = true;
    pass.ahead = n_ / std::max(1.0, n_ + 2 * m_ * std::max(1.0, n_ / ranges));
    pass.readAhead.insert(plan.stages[0].packs.begin(), plan.stages[0].packs.end());
  }

  void findProduct() {
    if (!structure_.product) return;
    const bool byColumns = passes_[0].bySegments != BySegments::No;
    using codegen::cuda::ProductWay;
    const ProductTiles tiles = productTiles(*structure_.product, info_.space, model_, n_, m_, byColumns);
    again_ = tiles.way == ProductWay::AsOthers && !byColumns;
    if (tiles.way == ProductWay::AsOthers) return;
    product_ = structure_.product;
    tiles_ = tiles;
    passes_[0].bySegments = tiles.way == ProductWay::Tiles ? BySegments::Products : BySegments::ShortProducts;
  }

  bool bySegments() const { return pass_->bySegments != BySegments::No; }

  /// Time of loads and stores in order beyond their bytes.
  double accesses(const Pass& pass) const {
    double number = 0;
    for (const auto& [var, reads] : pass.inOrder)
      number += n_ * (reads.atElements + reads.shifted) + m_ * reads.atSegments;
    for (size_t b = 0; b < kernel_.bindings.size(); ++b) {
      const Soac& soac = kernel_.bindings[b];
      const bool stores = soac.kind == SoacKind::Map || soac.kind == SoacKind::Scan;
      if (!stores || std::none_of(structure_.passesOf[b].begin(), structure_.passesOf[b].end(),
                                  [&](size_t p) { return &passes_[p] == &pass; }))
        continue;
      for (VarId v : soac.results)
        if (info_.output(v)) number += info_.bindings[b].role == BindingRole::Epilogue ? m_ : n_;
    }
    return number * model_.costs().access;
  }

  void binding(const Soac& soac, BindingRole role) {
    const double times = role == BindingRole::Finish ? 1 : role == BindingRole::Epilogue ? m_ : n_;
    SoacTime time = role == BindingRole::Finish ? SoacTime() : model_.timeOf(soac, times, m_);
    // Filters that go beside each other find what one of them has loaded.
    const bool unread = onlyCounts(soac);
    if (role != BindingRole::Finish)
      for (VarId v : CostModel::guardedLoads(soac))
        if (unread || !pass_->guarded.insert(v).second) time.exposed -= times * model_.costs().guardedLoad;
    time.arithmetic = 0;
    time.rows = structure_.rows || bySegments();
    time.keyed = structure_.keyed;
    // Positions that all rows, or as many as are taken at once, go through.
    if (structure_.rows && model_.costs().lockStep)
      time.elements *= std::ceil(m_ / kRowsTogether) / std::max(1.0, m_);
    if (bySegments()) time.elements = 0;
    if (role == BindingRole::Element && pass_->bySegments == BySegments::Products)
      time.arithmetic +=
          n_ * tiles_.empty * model_.costs().productElement + tiles_.number * model_.costs().productTile;
    thunks(codegen::eagerThunks(soac), times, role, time);
    thunks(codegen::lateThunks(soac), unread ? 0 : survivors(soac), role, time);
    if (soac.kind == SoacKind::Reduce && model_.costs().lockStep && role == BindingRole::Element &&
        (structure_.rows || (soac.space.segmented() && !time.numbered)) && foldsFirstOfExtremes(soac)) {
      time.arithmetic += times * model_.costs().operation;
      time.integers += times * model_.choice() * static_cast<double>(soac.pull.size());
    } else if (soac.kind == SoacKind::Reduce || soac.kind == SoacKind::Scan) {
      time.arithmetic +=
          times * model_.arithmetic(soac.combine.result) * (role == BindingRole::Element ? tiles_.empty : 1);
    }
    if (role == BindingRole::Element && pass_->bySegments == BySegments::ShortProducts)
      time.arithmetic = std::max(time.arithmetic, timeOfShorts(soac));
    if (soac.kind == SoacKind::Permute) {
      const ThunkSample::Positions positions = nextPositions();
      double width = 0;
      for (ExprRef e : soac.pull) width += sizeOf(e->type);
      std::optional<Places> places;
      if (positions.number > 0) places = placesOf(positions, remembered_);
      if (places) places->writers = writersOf(positions, times, target(soac));
      const PermuteTime writes = model_.permuting(soac, times, target(soac) * width, places);
      time.exposed = writes.exposed;
      pass_->memory.stores += writes.memory;
      pass_->memory.shared += writes.shared;
    }
    if (pass_->scansRanges) time = overRanges(time);
    pass_->members.push_back(time);
  }

  /// What threads that have several short segments take for a fold, if its arithmetic takes less.
  double timeOfShorts(const Soac& fold) const {
    constexpr int kBytes = 8;
    constexpr double kOfShorter = 0.72;  // of what those with longer elements take
    const double all = tiles_.empty * (m_ * model_.costs().shortSegment + n_ * model_.costs().shortElement);
    return std::all_of(fold.pull.begin(), fold.pull.end(), [](ExprRef e) { return sizeOf(e->type) < kBytes; })
               ? kOfShorter * all
               : all;
  }

  /// Whether nothing of a filter is asked for but how many it keeps: on a GPU that is all it computes.
  bool onlyCounts(const Soac& soac) const {
    return model_.costs().lockStep && soac.kind == SoacKind::Filter && soac.results.size() > 1 &&
           std::none_of(soac.results.begin() + 1, soac.results.end(),
                        [&](VarId v) { return info_.output(v) != nullptr; });
  }

  /// Whether it tells an extreme and where the first one is, for which rows compare once.
  static bool foldsFirstOfExtremes(const Soac& soac) {
    return soac.pull.size() == 2 && (codegen::extremeOfFirst(soac, 0) || codegen::extremeOfFirst(soac, 1));
  }

  /// Adds arithmetic and loads of thunks that are evaluated `times` times.
  void thunks(const std::vector<ExprRef>& roots, double times, BindingRole role, SoacTime& time) {
    const ThunkStructure& structure = structure_.thunks(roots);
    const Schedule& schedule = structure.schedule;
    const std::vector<double> threads = entries(schedule, times, sample_.entered);
    std::vector<double> inStep = entries(schedule, times, sample_.inStep);
    if (pass_->refilled) refillTurns(schedule, *pass_->refilled, times, pass_->itemsOfLane, threads, inStep);
    if (pass_->waits != Waits::No && !pass_->refilled) {
      const bool below = pass_->waits == Waits::ForLower;
      const std::vector<double>& sampled = below ? sample_.slowest : sample_.ofFour;
      const bool known = blocks_ < sampled.size() && sample_.entered[blocks_] > 0;
      const auto longer = known ? entries(schedule, times, sampled) : std::vector<double>();
      below ? waitForSlowest(schedule, pass_->itemsOfLane, longer, inStep)
            : waitForBlocks(schedule, longer, inStep);
    }
    sampled_ = blocks_ < sample_.entered.size() && sample_.entered[blocks_] > 0;
    blocks_ += schedule.blocks.size();
    const ElementFacts& facts = structure.facts;
    const std::unordered_set<ExprRef> counted =
        model_.costs().lockStep ? countedInLoops(schedule, threads) : std::unordered_set<ExprRef>();
    std::vector<bool> shared(schedule.blocks.size(), false), repeated(schedule.blocks.size(), false);
    std::vector<ExprRef> loops(schedule.blocks.size(), nullptr);  // the outermost that a block is in
    // Flat items are each in a branch, as there may be none (pass_checks.cpp), and those in it are left.
    std::vector<bool> behindBranches = structure.behindBranches;
    if (!time.numbered) std::fill(behindBranches.begin() + 1, behindBranches.end(), true);
    LoadWaits waits(schedule, behindBranches);
    for (size_t b = 0; b < schedule.blocks.size(); ++b) {
      for (const ScheduleStep& step : schedule.blocks[b].steps) {
        // What every element has computed, a branch or a loop need not compute again.
        const bool again = shared[b] || (b == 0 ? !pass_->evaluated.insert({step.node, role}).second
                                                : pass_->evaluated.contains({step.node, role}));
        for (uint32_t nested : {step.first, step.second}) {
          if (nested == 0) continue;
          shared[nested] = shared[nested] || again;
          repeated[nested] = repeated[b] || step.node->kind != ExprKind::If;
          loops[nested] = !loops[b] && step.node->kind != ExprKind::If ? step.node : loops[b];
          if (again || step.node->kind == ExprKind::If) continue;
          const double turns = (model_.costs().lockStep ? inStep : threads)[nested];
          if (counted.contains(step.node) || step.node->kind == ExprKind::Recursion) continue;
          time.integers += turns * model_.costs().iteration;
          if (nested == step.second)
            time.integers += turns * changedWords(step.node) * model_.costs().variable;
        }
        const bool load = step.node->kind == ExprKind::Load;
        const ThunkSample::Positions positions =
            load && !codegen::loadsInOrder(step.node) ? nextPositions() : ThunkSample::Positions();
        const std::optional<DivisionSizes> sizes =
            codegen::dividesByWords(step.node) ? nextDivision() : std::nullopt;
        // What a loop changes depends on all that the loop does.
        const double share = shareOf(loops[b] && changesInLoops(step.node) ? loops[b] : step.node);
        const ThunkSample::Call made = step.node->kind == ExprKind::Call ? nextCall() : ThunkSample::Call();
        if (again) continue;
        time.gathers += load && !codegen::loadsInOrder(step.node) && step.node->operands[0]->usesParam;
        if (step.node->kind == ExprKind::Call) {
          const auto frame = structure.frames.find(step.node);
          call(frame == structure.frames.end() ? kFunctionValues : frame->second, made, inStep[b], time);
        }
        // In loops the next turn waits in any case.
        if (role == BindingRole::Element && !repeated[b])
          time.lookUps += pass_->segmentLookUps.ofStep(schedule, {b, step}, behindBranches, inStep, time.kind,
                                                       model_.costs());
        if (load && model_.costs().lockStep && !codegen::loadsInOrder(step.node) && facts.varies(step.node))
          time.integers += inStep[b] * facts.needed(step.node) * share * model_.costs().address;
        if (load)
          addWait(waits, b, behindBranches[b], step.node, kLanes * threads[b] / std::max(1.0, inStep[b]),
                  repeated[b], positions);
        if (load)
          this->load(step.node, threads[b] * facts.needed(step.node), inStep[b], repeated[b], role,
                     positions);
        if (!facts.varies(step.node) || structure.exits.contains(step.node) || counted.contains(step.node))
          continue;
        const size_t home = structure.homes.of(step.node, b);
        const double operation = model_.operation(step.node, facts, sizes) * share;
        (CostModel::converts(step.node)     ? time.conversions
         : CostModel::ofIntegers(step.node) ? time.integers
                                            : time.arithmetic) +=
            (model_.costs().lockStep ? inStep[home] : threads[home]) * operation;
      }
    }
    if (time.lookedUp && role == BindingRole::Element)
      time.lookUps += pass_->segmentLookUps.ofPositions(roots, time.kind, times, model_.costs());
    // How often branches and loops are entered decides, so nothing is guessed without a sample.
    if (model_.costs().lockStep && role != BindingRole::Finish && (sampled_ || schedule.blocks.size() == 1))
      pass_->memory.waits += inStep[0] * waits.ofElement(inStep) * kUsualThreads / threadsAtOnce();
  }

  /// Of a load that so many of 32 lanes do in step.
  void addWait(LoadWaits& waits, size_t block, bool behindBranch, ExprRef load, double lanes, bool inLoop,
               const ThunkSample::Positions& positions) const {
    const double wait = waitOf(load, lanes, positions);
    if (behindBranch && codegen::loadsOfSegment(load)) {
      waits.addBefore(wait);
    } else if (!inLoop || changesInLoops(load)) {  // else it is there
      waits.add(block, load, wait, inLoop);
    }
  }
  double waitOf(ExprRef load, double lanes, const ThunkSample::Positions& positions) const {
    const ExprRef at = load->operands[0];
    if (codegen::loadsInOrder(load)) return model_.wait(at->index == 1);
    if (codegen::loadsOfSegmentNearby(load)) return model_.wait(true);
    if (patternOf(at) == AccessPattern::Same) return model_.costs().ownWait;
    return positions.number > 0 ? model_.wait(placesOf(positions, remembered_), lanes) : model_.wait(false);
  }
  /// That a multiprocessor has of the pass.
  double threadsAtOnce() const {
    const auto& known = sizes_.threads;
    const size_t pass = static_cast<size_t>(pass_ - passes_.data());
    const double threads = known.empty() ? 0 : known[std::min(pass, known.size() - 1)];
    return threads > 0 ? threads : kUsualThreads;
  }

  /// `times` one of 32 neighbours in step makes it.
  void call(const std::optional<size_t>& values, const ThunkSample::Call& made, double times,
            SoacTime& time) {
    const TargetCosts& costs = model_.costs();
    if (!values) {
      time.integers += times * costs.iteration;
      return;
    }
    const double depths = made.number > 0 ? made.depths / made.number : 1;
    const double one = costs.call + depths * static_cast<double>(*values) * costs.frameValue;
    pass_->memory.dependent += times * one;
  }

  /// How often the blocks are entered: as sampled or counted, or estimated.
  std::vector<double> entries(const Schedule& schedule, double times,
                              const std::vector<double>& sampled) const {
    std::vector<double> result(schedule.blocks.size(), 0);
    const size_t end = blocks_ + schedule.blocks.size();
    if (end <= sampled.size() && sample_.entered[blocks_] > 0) {
      for (size_t b = 0; b < result.size(); ++b)
        result[b] = times * sampled[blocks_ + b] / sample_.entered[blocks_];
      return result;
    }
    result[0] = times;
    if (sample_.empty() && end <= sizes_.entered.size()) {
      std::copy(sizes_.entered.begin() + static_cast<ptrdiff_t>(blocks_) + 1,
                sizes_.entered.begin() + static_cast<ptrdiff_t>(end), result.begin() + 1);
      return result;
    }
    for (size_t b = 0; b < result.size(); ++b) {  // blocks come after those they are in
      for (const ScheduleStep& step : schedule.blocks[b].steps) {
        if (step.first == 0) continue;
        const bool choice = step.node->kind == ExprKind::If;
        const ExprRef condition = step.node->operands[0];
        const double repeated = result[b] * model_.iterations();
        result[step.first] = choice ? result[b] * model_.taken(condition, true) : repeated;
        if (step.second != 0)
          result[step.second] = choice ? result[b] * model_.taken(condition, false) : repeated;
      }
    }
    return result;
  }

  /// Share of an array's pieces of 32 bytes of which some element is loaded, if each is with a probability,
  /// and one of 32 neighbours with another: those of a piece are among them. (With 0 elements, or where
  /// branches count in full: 1.)
  double piecesLoaded(double probability, double size, double ofNeighbours) const {
    if (!(probability < 1)) return 1;
    const double apart = 1 - std::pow(1 - std::max(0.0, probability), 32 / size);
    return sampled_ ? std::min(apart, std::max(probability, ofNeighbours)) : apart;
  }

  /// What belongs to a segment is loaded if one of its elements takes the branch.
  void loadOfSegment(Reads& reads, ExprRef e, double times) const {
    const double taken = std::min(1.0, times / std::max(1.0, n_)),
                 length = std::max(1.0, n_ / std::max(1.0, m_));
    const double share = 1 - std::pow(1 - taken, length);
    reads.atSegments = std::max(reads.atSegments, piecesLoaded(share, model_.storedBytes(e->index), 1));
  }

  /// `inStep`: how often one of 32 neighbours does; `repeated`: in a loop.
  void load(ExprRef e, double times, double inStep, bool repeated, BindingRole role,
            const ThunkSample::Positions& positions) {
    if (!info_.parameter(ParameterKind::Array, e->index)) {
      const auto made = madeBy_.find(e->index);
      if (made == madeBy_.end() || &passes_[made->second] == pass_) return;
    }
    const ExprRef at = e->operands[0];
    Reads& reads = pass_->inOrder[e->index];
    if (codegen::loadsInOrder(e)) {
      if (role == BindingRole::Epilogue) {
        reads.atSegments = 1;
      } else if (at->index == 1) {
        loadOfSegment(reads, e, times);
      } else {
        reads.atElements =
            std::max(reads.atElements, piecesLoaded(times / n_, model_.storedBytes(e->index), inStep / n_));
      }
      return;
    }
    if (role == BindingRole::Finish) return;
    if (bySegments() && role == BindingRole::Element) {
      if (!uses(at, 0) && !uses(at, 1)) return;  // by position, once for many segments
      if (isReadBySegments(at) || structure_.twoIndices || product_)
        return addSideBySide(e, times, repeated, positions);
    }
    if (again_ && role == BindingRole::Element && (uses(at, 1) || uses(at, 0)))
      return addSideBySide(e, times, repeated, positions);
    const AccessPattern pattern = patternOf(at);
    if (pattern == AccessPattern::Same) return;
    // Neighbouring segments load most of it in order.
    if (codegen::loadsOfSegmentNearby(e) && role == BindingRole::Element)
      return loadOfSegment(reads, e, times);
    times *= shareOf(at);
    const bool shifted = pattern == AccessPattern::Shifted || goesWithScan(at);
    if (sampled_ && positions.number == 0) return;  // in a branch that no element takes
    if (positions.number > 0) {
      visited_[e->index] = std::max(visited_[e->index], positions.visited / positions.number);
      Places places = placesOf(positions, remembered_);
      // What elements a few places away load, too.
      if (pattern == AccessPattern::Shifted && structure_.inOrder.contains(e->index)) places.fresh = 0;
      const GatherTime one = model_.gather(places);
      addGathers(e, {times * one.memory, times * one.shared, times * one.own}, repeated);
    } else if (shifted) {
      if (role == BindingRole::Epilogue) {
        reads.atSegments = 1;
      } else {
        ++reads.shifted;
      }
    } else if (const auto known = visited_.find(e->index); known != visited_.end()) {
      Places places;
      places.visited = known->second;
      const GatherTime one = model_.gather(places);
      addGathers(e, {times * one.memory, times * one.shared, times * one.own}, repeated);
    } else {
      addGathers(e, model_.gathers(e->index, times, n_), repeated);
    }
  }
  /// Those that may lie side by side are counted together.
  void addGathers(ExprRef e, const GatherTime& time, bool repeated) {
    const auto& columns = structure_.gathered;
    if (!columns || e->operands[0] != columns->position ||
        std::find(columns->columns.begin(), columns->columns.end(), e->index) == columns->columns.end())
      return addLoads(time, repeated);
    pass_->gathered.add(time);
    pass_->rows = model_.elements(program_.vars[e->index].extent);
  }
  static bool isReadBySegments(ExprRef at) {
    return codegen::stepOf(at, 1) == codegen::Step::One && codegen::stepOf(at, 2) != codegen::Step::None;
  }
  /// Loads of neighbouring segments, side by side. The array comes from memory once; what is loaded more
  /// often than that, from the cache of all cores, or of one's own, if positions that are neighbours share
  /// it.
  void addSideBySide(ExprRef e, double times, bool repeated, const ThunkSample::Positions& positions) {
    const double size = model_.storedBytes(e->index), all = times * size;
    double once = size * model_.elements(program_.vars[e->index].extent);
    if (positions.number > 0) once = positions.visited / positions.number;
    once = pass_->sideBySide.insert(e->index).second ? std::min(once, all) : 0;
    const bool near = !again_ && codegen::stepOf(e->operands[0], 2) == codegen::Step::One;
    constexpr double kPiece = 32;
    constexpr double kRowsOfProduct = 8;  // that a place serves
    const double serves = product_ ? tiles_.serves : structure_.twoIndices ? kRowsOfProduct : 1;
    const double again = (all - once) / kPiece / serves;
    addLoads({once * model_.costs().byte, near ? 0 : again * model_.costs().sharedLoad,
              near ? again * model_.costs().cachedLoad : 0},
             repeated);
  }
  /// What a core's cache takes longer where maps go by segments: each lane of a warp has a piece of its own.
  double waitsBySegments(const Pass& pass) const {
    constexpr double kHidden = 0.53;  // of the shorter of it and memory
    const double memory = pass.memory.loads + pass.memory.stores, own = n_ * model_.costs().columnElement;
    return std::max(memory, own) + (1 - kHidden) * std::min(memory, own) - memory;
  }

  /// A position that a scan of this kernel tells, as that of the next one that is kept, or of the last that
  /// something is true of: neighbours load side by side.
  bool goesWithScan(ExprRef at) const {
    bool found = false;
    const std::function<bool(ExprRef)> goes = [&](ExprRef e) {
      switch (e->kind) {
        case ExprKind::Load:
          found = found || scanned(e->index);
          return scanned(e->index) && codegen::loadsInOrder(e);
        case ExprKind::Op:
          return (e->op == ScalarOp::Add || e->op == ScalarOp::Sub || e->op == ScalarOp::Max ||
                  e->op == ScalarOp::Min) &&
                 std::all_of(e->operands.begin(), e->operands.end(), goes);
        case ExprKind::Check:
          return goes(e->operands[1]);
        case ExprKind::Project: {  // of a branch: either value
          const ExprRef branch = e->operands[0];
          if (branch->kind != ExprKind::If) return false;
          const size_t values = (branch->operands.size() - 1) / 2;
          return goes(branch->operands[1 + e->index]) && goes(branch->operands[1 + values + e->index]);
        }
        case ExprKind::Param:
        case ExprKind::Constant:
        case ExprKind::Host:
          return true;
        default:
          return false;
      }
    };
    return goes(at) && found;
  }
  bool scanned(VarId array) const {
    return std::any_of(kernel_.bindings.begin(), kernel_.bindings.end(), [&](const Soac& soac) {
      return soac.kind == SoacKind::Scan &&
             std::find(soac.results.begin(), soac.results.end(), array) != soac.results.end();
    });
  }
  void addLoads(const GatherTime& time, bool repeated) {
    if (repeated) {
      pass_->repeated.memory += time.memory;
      pass_->repeated.shared += time.shared;
      pass_->repeated.own += time.own;
    } else {
      pass_->memory.loads += time.memory;
      pass_->memory.shared += time.shared;
      pass_->memory.own += time.own;
    }
  }

  /// How often it is evaluated for each element: where rows are taken at once, once for several of them if it
  /// depends on the position alone, and once for all that a thread has of a row if on the segment alone.
  /// Threads that have too few rows work on none in their place.
  double shareOf(ExprRef e) const {
    if (bySegments() && !uses(e, 0)) return shareBySegments(e);
    if (!structure_.rows || uses(e, 0)) return 1;
    const double rows = std::max(1.0, m_), rest = std::fmod(rows, kRowsTogether);
    if (!uses(e, 1)) return std::ceil(rows / kRowsTogether) / rows;
    const double length = std::max(1.0, n_ / rows);
    const bool alone = length <= kRowThreads || rows >= kManyRows;
    if (!uses(e, 2)) return std::min(1.0, (alone ? 1 : kRowThreads) / length);
    // Of the last rows as many are taken at once as suffice: one, two, four or eight.
    return alone || rest == 0 ? 1 : (rows - rest + std::exp2(std::ceil(std::log2(rest)))) / rows;
  }
  /// The same where neighbouring segments go side by side: threads have a few of them, with one position at a
  /// time, and folds go through many positions.
  double shareBySegments(ExprRef e) const {
    if (product_) {
      const auto usesIndex = [&](ExprRef index) {
        return lcu::anyNode({e}, [&](ExprRef n) { return n == index; });
      };
      const bool ofBoth = usesIndex(product_->indices.outer) && usesIndex(product_->indices.place);
      return ofBoth ? tiles_.empty : 1 / tiles_.serves;
    }
    constexpr double kTogether = 4, kTurns = 8;
    if (!uses(e, 1)) return 1 / std::clamp(std::ceil(m_ / kLanes), 1.0, kTogether);
    const bool folds = pass_->bySegments == BySegments::Folds;
    return folds && !uses(e, 2) ? std::min(1.0, kTurns * m_ / std::max(1.0, n_)) : 1;
  }
  ThunkSample::Positions nextPositions() {
    const size_t k = positions_++;
    return k < sample_.positions.size() ? sample_.positions[k] : ThunkSample::Positions();
  }

  ThunkSample::Call nextCall() {
    const size_t k = calls_++;
    return k < sample_.calls.size() ? sample_.calls[k] : ThunkSample::Call();
  }
  std::optional<DivisionSizes> nextDivision() {
    const size_t k = divisions_++;
    if (k >= sample_.divisions.size() || !(sample_.divisions[k].number > 0)) return std::nullopt;
    const ThunkSample::Division& found = sample_.divisions[k];
    const double warps = model_.costs().lockStep ? found.number : found.ofLong + found.ofShort;
    return DivisionSizes{found.ofLong / warps, found.ofShort / warps};
  }

  double survivors(const Soac& soac) const {
    if (soac.kind != SoacKind::Filter) return 0;
    const auto it = sizes_.survivors.find(soac.results.at(0));
    return it != sizes_.survivors.end() ? it->second : model_.elements(survivorExtent(soac, program_));
  }
  double target(const Soac& permute) const {
    const auto it = sizes_.targets.find(permute.results.at(0));
    return it != sizes_.targets.end() ? it->second : model_.elements(permute.target);
  }

  const KernelStructure& structure_;
  const lcu::Kernel& kernel_;
  const lcu::Program& program_;
  const CostModel& model_;
  const LaunchSizes& sizes_;
  const ThunkSample& sample_;
  const codegen::KernelInfo& info_;
  double n_ = 0, m_ = 0;
  std::optional<codegen::Product> product_;  ///< that goes by tiles
  ProductTiles tiles_;                       ///< its own
  bool again_ = false;  ///< segments that have an index in common read the same, at about the same time
  size_t blocks_ = 0, positions_ = 0, divisions_ = 0, calls_ = 0;  ///< of the thunks so far
  std::vector<Pass> passes_ = std::vector<Pass>(1);
  std::map<VarId, size_t> madeBy_;   ///< passes of what outlives its pass
  Pass* pass_ = nullptr;             ///< of the binding at hand
  bool sampled_ = false;             ///< its thunks at hand are
  double remembered_ = 0;            ///< share of the launches; 0: it is not known
  std::map<VarId, double> visited_;  ///< bytes of arrays, as far as samples tell
};

}  // namespace

KernelTimer::KernelTimer(const lcu::Kernel& kernel, const lcu::Program& program, const CostModel& model,
                         const LaunchSizes& sizes, const ThunkSample& sample)
    : structure_(kernel, program, model.costs().lockStep, model.arrayBits()),
      sizes_(sizes),
      sample_(sample),
      written_(kernelBytes(kernel, program, model, sizes).written) {}

double KernelTimer::time(const CostModel& model) const {
  return Account(structure_, model, sizes_, sample_).run(written_);
}

double kernelTime(const lcu::Kernel& kernel, const lcu::Program& program, const CostModel& model,
                  const LaunchSizes& sizes, const ThunkSample& sample) {
  return KernelTimer(kernel, program, model, sizes, sample).time(model);
}

}  // namespace kelpie::fusion

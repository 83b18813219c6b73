#include "flatten/short_segments.h"

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace kelpie::flatten {
namespace {

using lcu::Block;
using lcu::ExprArena;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::SpaceKind;
using lcu::Stmt;
using lcu::VarId;

constexpr int64_t kMostNodes = 512;  ///< of the thunks of one SOAC, unrolled

struct ShortSpace {
  ExprRef segments;
  int64_t length;
  friend bool operator==(const ShortSpace&, const ShortSpace&) = default;
};

/// A SOAC and what it would become: thunks over the segments, whose number is Param 0.
struct Candidate {
  Soac* soac;
  ShortSpace space;
  std::vector<std::vector<ExprRef>>
      values;  ///< of each position: one for each result; of a reduction: one row
  std::vector<ExprRef> effects;
};

/// Reads the constant arrays of a program.
using Constants = std::unordered_map<VarId, Column>;

Soac* soacOf(Stmt& stmt) {
  auto* launch = std::get_if<lcu::Launch>(&stmt.node);
  return launch ? &launch->kernel.bindings.front() : nullptr;
}

std::vector<ExprRef> elementThunks(const Soac& soac) {
  std::vector<ExprRef> thunks = soac.pull;
  thunks.insert(thunks.end(), soac.effects.begin(), soac.effects.end());
  for (ExprRef e : {soac.where, soac.destination})
    if (e) thunks.push_back(e);
  return thunks;
}

bool isParam(ExprRef e, uint32_t number) { return e->kind == ExprKind::Param && e->index == number; }

// ---- one element of a segment -----------------------------------------------------------------------------

/// The thunks of element `position` of each segment, over the segments.
class ElementOfSegment {
 public:
  ElementOfSegment(ExprArena& arena, const Constants& constants, bool segmented, int64_t length,
                   int64_t position)
      : arena_(arena), constants_(constants), segmented_(segmented), length_(length), position_(position) {}

  std::vector<ExprRef> of(const std::vector<ExprRef>& thunks) {
    std::vector<ExprRef> result = arena_.rewrite(thunks, [&](ExprRef e) { return replacement(e); });
    for (;;) {  // constants may tell where in other constants to look
      std::vector<ExprRef> folded = arena_.rewrite(result, [&](ExprRef e) { return constantOf(e); });
      if (folded == result) return result;
      result = std::move(folded);
    }
  }

 private:
  ExprRef replacement(ExprRef e) {
    if (isParam(e, 0)) return element(length_, position_);
    if (segmented_ && isParam(e, 1)) return arena_.param(0);
    if (segmented_ && isParam(e, 2)) return arena_.index(position_);
    if (e->kind == ExprKind::Op && (e->op == ScalarOp::Div || e->op == ScalarOp::Rem) &&
        isParam(e->operands[0], 0))
      return divided(e);
    return nullptr;
  }

  /// An element of a constant array whose position is known; null: it is no such load.
  ExprRef constantOf(ExprRef e) {
    if (e->kind != ExprKind::Load) return nullptr;
    const auto constant = constants_.find(e->index);
    const std::optional<int64_t> at = lcu::asIndex(e->operands[0]);
    if (constant == constants_.end() || !at || *at < 0 || *at >= constant->second.length()) return nullptr;
    return arena_.constant(constant->second.at(*at));
  }

  ExprRef element(int64_t factor, int64_t rest) {
    return arena_.nonNegative(
        arena_.add(arena_.mul(arena_.param(0), arena_.index(factor)), arena_.index(rest)));
  }

  /// The number of the element by a constant, if one of the length and the constant divides the other: it is
  /// length * %i + position, and not negative.
  ExprRef divided(ExprRef e) {
    const std::optional<int64_t> divisor = lcu::asIndex(e->operands[1]);
    if (!divisor || *divisor <= 0) return nullptr;
    const bool quotient = e->op == ScalarOp::Div;
    if (length_ % *divisor == 0)
      return quotient ? element(length_ / *divisor, position_ / *divisor)
                      : arena_.index(position_ % *divisor);
    if (*divisor % length_ != 0) return nullptr;
    ExprRef inner = arena_.op(e->op, arena_.param(0), arena_.index(*divisor / length_));
    return quotient ? inner
                    : arena_.nonNegative(
                          arena_.add(arena_.mul(inner, arena_.index(length_)), arena_.index(position_)));
  }

  ExprArena& arena_;
  const Constants& constants_;
  bool segmented_;
  int64_t length_, position_;
};

// ---- rows -------------------------------------------------------------------------------------------------

/// How far apart places are: of neighbouring segments, and of neighbouring positions in one. What data tell
/// is taken for the same everywhere, what the host knows for large.
struct Strides {
  double segment = 0, position = 0;
};

Strides stridesOf(ExprRef e, bool segmented, int64_t length) {
  constexpr double kLarge = 1e9;
  const auto strides = [&](size_t operand) { return stridesOf(e->operands[operand], segmented, length); };
  if (!e->usesParam) return {};
  switch (e->kind) {
    case ExprKind::Param:
      if (e->index == 0) return {static_cast<double>(length), 1};
      return e->index == 1 ? Strides{1, 0} : Strides{0, 1};
    case ExprKind::Check:
      return strides(1);
    case ExprKind::Convert:
      return strides(0);
    case ExprKind::Op:
      break;
    default:
      return {};
  }
  if (e->operands.size() < 2) return strides(0);
  const auto scaled = [&](const Strides& s, double by) { return Strides{s.segment * by, s.position * by}; };
  if (e->op == ScalarOp::Div || e->op == ScalarOp::Rem) {
    // Numbers of elements by a multiple of the length: those of a segment stay together.
    const std::optional<int64_t> by = lcu::asIndex(e->operands[1]);
    const bool ofElement = e->operands[0]->kind == ExprKind::Param && e->operands[0]->index == 0;
    if (ofElement && by && *by > 0 && *by % length == 0) {
      if (e->op == ScalarOp::Div) return {static_cast<double>(length) / static_cast<double>(*by), 0};
      return {*by == length ? 0 : static_cast<double>(length), 1};
    }
  }
  switch (e->op) {
    case ScalarOp::Add:
    case ScalarOp::Sub: {
      const Strides a = strides(0), b = scaled(strides(1), e->op == ScalarOp::Add ? 1 : -1);
      return {a.segment + b.segment, a.position + b.position};
    }
    case ScalarOp::Mul:
    case ScalarOp::Div: {
      const bool multiplied = e->op == ScalarOp::Mul;
      const size_t factor = multiplied && !e->operands[0]->usesParam ? 0 : 1;
      if (e->operands[factor]->usesParam) return {};
      const std::optional<int64_t> known = lcu::asIndex(e->operands[factor]);
      const double by = known ? static_cast<double>(*known) : kLarge;
      return scaled(strides(1 - factor), multiplied || by == 0 ? by : 1 / by);
    }
    default:
      return {};
  }
}

bool isRow(ExprRef load, bool segmented, int64_t length) {
  const Strides s = stridesOf(load->operands[0], segmented, length);
  return s.position != 0 && std::abs(s.segment) >= static_cast<double>(length) * std::abs(s.position);
}

// ---- blocks -----------------------------------------------------------------------------------------------

class BlockPass {
 public:
  BlockPass(lcu::Program& program, Block& block, const Constants& constants, const std::set<VarId>& fixed)
      : program_(program), arena_(*program.arena), block_(block), constants_(constants), fixed_(fixed) {}

  /// Whether anything was unrolled.
  bool run() {
    collectSpaces();
    for (size_t k = 0; k < block_.stmts.size(); ++k) {
      for (VarId var : lcu::freeVars(block_.stmts[k])) users_[var].push_back(k);
      addCandidate(k);
    }
    for (VarId var : block_.results) leaving_.insert(var);
    while (std::erase_if(candidates_, [&](const auto& c) { return readsRows(c.second); }) +
               std::erase_if(candidates_, [&](const auto& c) { return mustBeKept(c.second); }) >
           0) {
    }
    for (auto& [k, candidate] : candidates_) takeApart(candidate);
    for (auto& [k, candidate] : candidates_) unroll(candidate, block_.stmts[k]);
    for (size_t k = 0; k < block_.stmts.size(); ++k)
      if (Soac* soac = soacOf(block_.stmts[k]); soac && !candidates_.contains(k)) readApart(*soac);
    return !candidates_.empty();
  }

 private:
  /// What is one element number k of a segment: of segment Param `param`.
  struct Place {
    uint32_t param;
    int64_t position;
  };

  static std::optional<ShortSpace> shortSpace(const lcu::Space& space) {
    // Of no segments, what is made over these would be over elements again.
    if (space.kind != SpaceKind::Regular || space.segments == space.extent) return std::nullopt;
    const std::optional<int64_t> length = lcu::asIndex(space.length);
    if (!length || *length < 2 || *length > kLongestUnrolled) return std::nullopt;
    return ShortSpace{space.segments, *length};
  }

  void collectSpaces() {
    std::set<ExprRef> ambiguous;
    for (Stmt& stmt : block_.stmts) {
      const Soac* soac = soacOf(stmt);
      const auto space = soac ? shortSpace(soac->space) : std::nullopt;
      if (!space) continue;
      const auto [it, added] = spaces_.emplace(soac->space.extent, *space);
      if (!added && !(it->second == *space)) ambiguous.insert(soac->space.extent);
    }
    for (ExprRef extent : ambiguous) spaces_.erase(extent);
  }

  void addCandidate(size_t k) {
    Soac* soac = soacOf(block_.stmts[k]);
    if (!soac || soac->kind == SoacKind::Once) return;
    const auto space = spaces_.find(soac->space.extent);
    if (space == spaces_.end()) return;
    const bool segmented = soac->space.segmented();
    if (segmented ? shortSpace(soac->space) != space->second : soac->kind != SoacKind::Map) return;
    const bool known = soac->kind == SoacKind::Map || soac->kind == SoacKind::Reduce ||
                       (soac->kind == SoacKind::Scan && !soac->withTotal);
    if (!known || soac->pull.empty()) return;
    const std::vector<ExprRef> thunks = elementThunks(*soac);
    int64_t nodes = 0;
    bool simple = true;
    const auto count = [&](ExprRef e) {
      ++nodes;
      simple &= !lcu::isUnbounded(e);
    };
    lcu::forEachNode(thunks, count);
    lcu::forEachNode(soac->combine.result, count);
    if (!simple || nodes * space->second.length > kMostNodes) return;
    candidates_.emplace(k, unrolled(*soac, space->second));
  }

  Candidate unrolled(Soac& soac, const ShortSpace& space) {
    Candidate result{&soac, space, {}, {}};
    const bool backward = soac.kind == SoacKind::Scan && soac.backward;
    std::vector<ExprRef> before;
    for (const Scalar& identity : soac.combine.identity) before.push_back(arena_.constant(identity));
    for (int64_t p = 0; p < space.length; ++p) {
      const int64_t position = backward ? space.length - 1 - p : p;
      ElementOfSegment element(arena_, constants_, soac.space.segmented(), space.length, position);
      const std::vector<ExprRef> pulled = element.of(soac.pull);
      for (ExprRef e : element.of(soac.effects)) result.effects.push_back(e);
      if (soac.kind == SoacKind::Map) {
        result.values.push_back(pulled);
        continue;
      }
      std::vector<ExprRef> arguments = before;
      arguments.insert(arguments.end(), pulled.begin(), pulled.end());
      const std::vector<ExprRef> after = arena_.substituteParams(soac.combine.result, arguments);
      if (soac.kind == SoacKind::Scan) result.values.push_back(soac.inclusive ? after : before);
      before = after;
    }
    if (soac.kind == SoacKind::Reduce) result.values.push_back(before);
    if (backward) std::reverse(result.values.begin(), result.values.end());
    return result;
  }

  /// The candidate that makes elements of this array; none if nothing, or something else, does.
  const Candidate* makerOf(VarId array) const {
    for (const auto& [k, candidate] : candidates_) {
      const std::vector<VarId>& made = candidate.soac->results;
      if (candidate.soac->kind != SoacKind::Reduce &&
          std::find(made.begin(), made.end(), array) != made.end())
        return &candidate;
    }
    return nullptr;
  }

  bool readsRows(const Candidate& candidate) const {
    const Soac& soac = *candidate.soac;
    return lcu::anyNode(elementThunks(soac), [&](ExprRef e) {
      return e->kind == ExprKind::Load && !constants_.contains(e->index) &&
             isRow(e, soac.space.segmented(), candidate.space.length) && !makerOf(e->index);
    });
  }

  /// Some of its elements are read otherwise than as such of segments.
  bool mustBeKept(const Candidate& candidate) const {
    if (candidate.soac->kind == SoacKind::Reduce) return false;
    for (VarId made : candidate.soac->results) {
      if (leaving_.contains(made) || fixed_.contains(made)) return true;
      const auto users = users_.find(made);
      if (users == users_.end()) continue;
      for (size_t k : users->second)
        if (!readsElements(k, made, candidate.space)) return true;
    }
    return false;
  }

  bool readsElements(size_t user, VarId array, const ShortSpace& space) const {
    const Soac* soac = soacOf(block_.stmts[user]);
    if (!soac) return false;
    std::vector<ExprRef> hostPart;
    for (ExprRef e : {soac->space.extent, soac->space.segments, soac->space.length, soac->target})
      if (e) hostPart.push_back(e);
    const std::vector<VarId> onHost = lcu::freeVars(hostPart);
    if (std::find(onHost.begin(), onHost.end(), array) != onHost.end() ||
        (soac->space.kind == SpaceKind::Offsets && soac->space.offsets == array) ||
        std::find(soac->onto.begin(), soac->onto.end(), array) != soac->onto.end())
      return false;
    const auto candidate = candidates_.find(user);
    lcu::Space over = soac->space;
    std::vector<ExprRef> thunks = elementThunks(*soac);
    if (candidate != candidates_.end()) {
      over = {.kind = SpaceKind::Flat, .extent = candidate->second.space.segments};
      thunks = candidate->second.effects;
      for (const std::vector<ExprRef>& row : candidate->second.values)
        thunks.insert(thunks.end(), row.begin(), row.end());
    }
    return !lcu::anyNode(thunks, [&](ExprRef e) {
      if ((e->kind != ExprKind::Load && e->kind != ExprKind::Size) || e->index != array) return false;
      return e->kind == ExprKind::Size || !placeOf(e, over, space);
    });
  }

  /// Where a load finds its element, if the SOAC's space tells that it is one of segment %i or %s.
  static std::optional<Place> placeOf(ExprRef load, const lcu::Space& over, const ShortSpace& space) {
    ExprRef at = load->operands[0];
    int64_t position = 0;
    if (at->kind == ExprKind::Op && at->op == ScalarOp::Add && lcu::asIndex(at->operands[1])) {
      position = *lcu::asIndex(at->operands[1]);
      at = at->operands[0];
    }
    if (position < 0 || position >= space.length || at->kind != ExprKind::Op || at->op != ScalarOp::Mul ||
        lcu::asIndex(at->operands[1]) != space.length)
      return std::nullopt;
    if (isParam(at->operands[0], 0) && over.extent == space.segments) return Place{0, position};
    if (over.segmented() && isParam(at->operands[0], 1) && over.segments == space.segments)
      return Place{1, position};
    return std::nullopt;
  }

  struct Apart {
    ShortSpace space;
    std::vector<VarId> arrays;  ///< of each position
  };

  void takeApart(const Candidate& candidate) {
    if (candidate.soac->kind == SoacKind::Reduce) return;
    for (VarId made : candidate.soac->results) {
      Apart& apart = apart_.emplace(made, Apart{candidate.space, {}}).first->second;
      for (int64_t p = 0; p < candidate.space.length; ++p) {
        lcu::VarInfo info = program_.vars[made];
        info.name += "_" + std::to_string(p);
        info.extent = candidate.space.segments;
        apart.arrays.push_back(program_.newVar(info));
      }
    }
  }

  /// Reads arrays that were taken apart.
  ExprRef readApart(ExprRef thunk, const lcu::Space& over) {
    return arena_.rewrite(thunk, [&](ExprRef e) -> ExprRef {
      if (e->kind != ExprKind::Load) return nullptr;
      const auto apart = apart_.find(e->index);
      if (apart == apart_.end()) return nullptr;
      const Place place = *placeOf(e, over, apart->second.space);
      return arena_.load(apart->second.arrays[static_cast<size_t>(place.position)], e->type,
                         arena_.param(place.param));
    });
  }
  void readApart(Soac& soac) {
    for (auto* thunks : {&soac.pull, &soac.effects})
      for (ExprRef& e : *thunks) e = readApart(e, soac.space);
    for (ExprRef* e : {&soac.where, &soac.destination})
      if (*e) *e = readApart(*e, soac.space);
  }

  void unroll(const Candidate& candidate, Stmt& stmt) {
    Soac map;
    map.space = {.kind = SpaceKind::Flat, .extent = candidate.space.segments};
    for (ExprRef e : candidate.effects) map.effects.push_back(readApart(e, map.space));
    const size_t made = candidate.soac->results.size();
    for (size_t p = 0; p < candidate.values.size(); ++p) {
      for (size_t j = 0; j < made; ++j) {
        const VarId result = candidate.soac->results[j];
        map.pull.push_back(readApart(candidate.values[p][j], map.space));
        map.results.push_back(candidate.soac->kind == SoacKind::Reduce ? result
                                                                       : apart_.at(result).arrays[p]);
      }
    }
    map.span = candidate.soac->span;
    map.origin = candidate.soac->origin;
    lcu::Kernel& kernel = std::get<lcu::Launch>(stmt.node).kernel;
    for (const std::string kind : {"_reduce_", "_scan_"})
      if (const size_t at = kernel.name.rfind(kind); at != std::string::npos)
        kernel.name.replace(at, kind.size(), "_map_");
    kernel.returns = stmt.results = map.results;
    kernel.bindings.front() = std::move(map);
  }

  lcu::Program& program_;
  ExprArena& arena_;
  Block& block_;
  const Constants& constants_;
  const std::set<VarId>& fixed_;
  std::map<ExprRef, ShortSpace> spaces_;  ///< by their extents
  std::map<size_t, Candidate> candidates_;
  std::map<VarId, std::vector<size_t>> users_;
  std::set<VarId> leaving_;
  std::map<VarId, Apart> apart_;
};

}  // namespace

void unrollShortSegments(lcu::Program& program) {
  Constants constants;
  lcu::forEachBlock(program, [&](Block& block) {
    for (const Stmt& stmt : block.stmts)
      if (const auto* constant = std::get_if<lcu::ArrayConstant>(&stmt.node))
        for (size_t j = 0; j < stmt.results.size(); ++j)
          constants.emplace(stmt.results[j], constant->columns[j]);
  });
  std::set<VarId> fixed;  // read by the sizes of others
  for (const lcu::VarInfo& var : program.vars)
    if (var.extent)
      for (VarId read : lcu::freeVars(std::vector{var.extent})) fixed.insert(read);
  lcu::forEachBlock(program, [&](Block& block) {
    while (BlockPass(program, block, constants, fixed).run()) {
    }
  });
}

}  // namespace kelpie::flatten

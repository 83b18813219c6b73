#include "fusion/loop_bounds.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <set>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using Difference = KnownBounds::Difference;

namespace {

/// What may be looked at for a loop, and for all of a kernel.
constexpr int kMostOfQuestion = 30000;
constexpr int64_t kMostOfLoop = 200000, kMostOfKernel = 2000000;
/// Constants that are tried for a bound, the nearest first.
constexpr size_t kMostConstants = 6;
constexpr int64_t kWord = UINT32_MAX, kFar = int64_t{1} << 60;

class Candidates {
 public:
  Candidates(KnownBounds& known, ExprRef loop, lcu::ExprArena& arena)
      : known_(known),
        loop_(loop),
        initial_(codegen::loopInitial(loop)),
        next_(codegen::loopNext(loop)),
        end_(known.spent() + kMostOfLoop) {
    for (uint32_t k = 0; k < loop->count; ++k)
      variables_.push_back(arena.loopVar(loop->index, k, loop->operands[k]->type));
  }

  std::vector<Difference> hold() {
    const int allowed = known_.allow(kMostOfQuestion);
    const bool counted = known_.countChecks(true);
    find();
    while (dropOne()) {
    }
    known_.allow(allowed);
    known_.countChecks(counted);
    return isOver() ? std::vector<Difference>() : left();
  }

 private:
  /// Constants that a variable may be between, from the strongest to the weakest: the first is tried.
  struct Ends {
    uint32_t variable;
    std::vector<int64_t> least, most;
  };

  void find() {
    std::vector<ExprRef> comparisons;
    lcu::forEachNode({loop_->operands.begin() + loop_->count, loop_->operands.end()}, [&](ExprRef e) {
      if (e->kind == ExprKind::Op && isComparison(e->op) && e->operands[0]->type == lcu::kIndex)
        comparisons.push_back(e);
    });
    for (uint32_t k = 0; k < loop_->count; ++k) {
      if (variables_[k]->type != lcu::kIndex || next_[k] == variables_[k]) continue;
      betweenConstants(k, constantsFor(k, comparisons));
      atFirst({variables_[k], initial_[k], 0});
      atFirst({initial_[k], variables_[k], 0});
    }
    for (ExprRef e : comparisons) {
      if (!isKnownAtFirst(e->operands[0]) || !isKnownAtFirst(e->operands[1])) continue;
      atFirst({e->operands[0], e->operands[1], 0});
      atFirst({e->operands[1], e->operands[0], 0});
    }
  }

  /// What a variable, or a sum of it and a constant, is compared with, and numbers beside that; if it is with
  /// nothing, what others are.
  std::set<int64_t> constantsFor(uint32_t k, const std::vector<ExprRef>& comparisons) const {
    std::set<int64_t> own, all;
    for (ExprRef e : comparisons) {
      for (const size_t side : {0, 1}) {
        const ExprRef other = e->operands[1 - side];
        const auto value = lcu::asIndex(e->operands[side]);
        if (!value || *value <= -kWord || *value >= kWord) continue;
        const bool sum = other->kind == ExprKind::Op && other->op == ScalarOp::Add;
        const bool isOwn = other == variables_[k] || (sum && other->operands[0] == variables_[k]);
        for (const int64_t c : {*value - 1, *value, *value + 1}) (isOwn ? own : all).insert(c);
      }
    }
    std::set<int64_t>& constants = own.empty() ? all : own;
    constants.insert({-1, 0, 1, kWord});
    return constants;
  }

  void betweenConstants(uint32_t k, std::set<int64_t> constants) {
    const KnownBounds::Interval first = known_.range(initial_[k]);
    for (const int64_t end : {first.least, first.most})
      if (end > -kFar && end < kFar) constants.insert(end);
    Ends& ends = ends_.emplace_back(Ends{k, {}, {}});
    for (auto c = constants.rbegin(); c != constants.rend() && ends.least.size() < kMostConstants; ++c)
      if (*c <= first.least) ends.least.push_back(*c);
    for (int64_t c : constants)
      if (c >= first.most && (ends.most.size() < kMostConstants || c == kWord)) ends.most.push_back(c);
  }

  /// A candidate between values, if it holds before the first turn.
  void atFirst(const Difference& difference) {
    if (lcu::asIndex(difference.a) || lcu::asIndex(difference.b) || isOver()) return;
    if (known_.implies(of(difference, initial_))) differences_.push_back(difference);
  }

  /// A variable of the loop, or what no turn changes.
  bool isKnownAtFirst(ExprRef e) const {
    return isVariable(e) || !lcu::anyNode({e}, [&](ExprRef x) {
             return x->kind == ExprKind::LoopVar || x->kind == ExprKind::Call || lcu::isUnbounded(x);
           });
  }
  bool isVariable(ExprRef e) const { return e->kind == ExprKind::LoopVar && e->index == loop_->index; }

  /// With the values of the variables in their place.
  Difference of(const Difference& difference, const std::vector<ExprRef>& values) const {
    const auto side = [&](ExprRef e) { return e && isVariable(e) ? values[e->count] : e; };
    return {side(difference.a), side(difference.b), difference.most};
  }

  /// Whether some candidate went, and there is time for more.
  bool dropOne() {
    const KnownBounds::Mark before = known_.mark();
    for (const Difference& candidate : left()) known_.learn(candidate);
    known_.learn(codegen::loopCondition(loop_), true);
    size_t dropped = std::erase_if(differences_, [&](const Difference& candidate) {
      return !isOver() && !known_.implies(of(candidate, next_));
    });
    for (Ends& ends : ends_) {
      if (isOver() || (ends.least.empty() && ends.most.empty())) continue;
      const KnownBounds::Interval next = known_.range(next_[ends.variable]);
      dropped += std::erase_if(ends.least, [&](int64_t c) { return next.least < c; });
      dropped += std::erase_if(ends.most, [&](int64_t c) { return next.most > c; });
    }
    known_.forget(before);
    return dropped > 0 && !isOver();
  }

  std::vector<Difference> left() const {
    std::vector<Difference> result = differences_;
    for (const Ends& ends : ends_) {
      const ExprRef variable = variables_[ends.variable];
      if (!ends.least.empty()) result.push_back({nullptr, variable, -ends.least[0]});
      if (!ends.most.empty()) result.push_back({variable, nullptr, ends.most[0]});
    }
    return result;
  }

  bool isOver() const { return known_.spent() > end_; }

  KnownBounds& known_;
  const ExprRef loop_;
  const std::vector<ExprRef> initial_, next_;
  const int64_t end_;  ///< of the work
  std::vector<ExprRef> variables_;
  std::vector<Ends> ends_;
  std::vector<Difference> differences_;
};

void forEachThunkNode(const lcu::Kernel& kernel, const std::function<void(ExprRef)>& visit) {
  for (const lcu::Soac& soac : kernel.bindings) lcu::forEachNode(codegen::thunksOf(soac), visit);
}

}  // namespace

std::vector<Difference> boundsOfLoop(KnownBounds& known, ExprRef loop, lcu::ExprArena& arena) {
  return Candidates(known, loop, arena).hold();
}

void markLoopVariables(const lcu::Kernel& kernel, lcu::ExprArena& arena) {
  std::vector<ExprRef> loops;
  forEachThunkNode(kernel, [&](ExprRef e) {
    if (e->kind == ExprKind::Loop) loops.push_back(e);
  });
  // Outer ones first, as where inner ones begin depends on them.
  std::sort(loops.begin(), loops.end(), [](ExprRef a, ExprRef b) { return a->id > b->id; });
  KnownBounds known;
  for (ExprRef loop : loops) {
    if (known.spent() > kMostOfKernel) return;
    const KnownBounds::Mark before = known.mark();
    for (const Difference& bound : boundsOfLoop(known, loop, arena)) known.learn(bound);
    for (uint32_t k = 0; k < loop->count; ++k) {
      if (loop->operands[k]->type != lcu::kIndex) continue;
      const ExprRef variable = arena.loopVar(loop->index, k, lcu::kIndex);
      const KnownBounds::Interval range = known.range(variable);
      if (range.least >= 0)
        arena.nonNegative(variable, static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(range.most))));
    }
    known.forget(before);
  }
  forEachThunkNode(kernel, [&](ExprRef e) {  // what a variable is at the end
    if (e->kind != ExprKind::Project || e->operands[0]->kind != ExprKind::Loop || e->type != lcu::kIndex)
      return;
    const ExprRef variable = arena.loopVar(e->operands[0]->index, e->index, lcu::kIndex);
    if (variable->nonNegative) arena.nonNegative(e, variable->bits);
  });
}

}  // namespace kelpie::fusion

#include "codegen/uneven_loops.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "codegen/loop_exits.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// Which values differ from element to element, in the turns of one loop.
class Variation {
 public:
  explicit Variation(ExprRef loop);
  bool of(ExprRef root);

 private:
  bool decide(ExprRef e) const;

  ExprRef loop_;
  std::vector<bool> varies_;  ///< by variable
  std::unordered_map<ExprRef, bool> known_;
};

Variation::Variation(ExprRef loop) : loop_(loop), varies_(loop->count) {
  const std::vector<ExprRef> initial = loopInitial(loop), next = loopNext(loop);
  for (bool changes = true; changes;) {
    changes = false;
    known_.clear();
    for (uint32_t k = 0; k < loop->count; ++k) {
      if (varies_[k] || !(of(initial[k]) || of(next[k]))) continue;
      varies_[k] = changes = true;
    }
  }
  known_.clear();
}

bool Variation::of(ExprRef root) {
  lcu::forEachNode({root}, [&](ExprRef e) {  // operands before what uses them
    if (!known_.contains(e)) known_[e] = decide(e);
  });
  return known_.at(root);
}

bool Variation::decide(ExprRef e) const {
  const auto known = [&](ExprRef operand) { return known_.at(operand); };
  switch (e->kind) {
    case ExprKind::Param:
      return true;
    case ExprKind::LoopVar:
      return e->index != loop_->index || varies_[e->count];
    case ExprKind::Project:
      if (const ExprRef of = e->operands[0]; of->kind == ExprKind::If)
        return known(of->operands[0]) || known(thenValues(of)[e->index]) || known(elseValues(of)[e->index]);
      return known(e->operands[0]);
    default:
      return std::any_of(e->operands.begin(), e->operands.end(), known);
  }
}

}  // namespace

bool turnsUnevenly(ExprRef loop) {
  Variation varies(loop);
  const auto flag = endFlag(loop);
  return varies.of(flag ? loopNext(loop)[*flag] : loopCondition(loop));
}

std::unordered_set<ExprRef> unevenLoops(const Schedule& schedule) {
  std::unordered_set<ExprRef> uneven;
  for (const ScheduleBlock& block : schedule.blocks) {
    for (const ScheduleStep& step : block.steps) {
      if (step.node->kind == ExprKind::Recursion ||
          (step.node->kind == ExprKind::Loop && turnsUnevenly(step.node)))
        uneven.insert(step.node);
    }
  }
  return uneven;
}

}  // namespace kelpie::codegen

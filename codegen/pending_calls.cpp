#include "codegen/pending_calls.h"

#include <algorithm>
#include <set>

#include "codegen/loop_exits.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

using Uses = std::set<ExprRef, ById>;

class Walk {
 public:
  Walk(const Schedule& schedule, uint32_t recursion) : schedule_(schedule), recursion_(recursion) {}

  /// From the end of a block to its beginning: `uses` is what comes after it, then also what is in it.
  /// `ends`: the results of the function, where nothing comes after it.
  void block(uint32_t number, Uses& uses, const std::optional<std::vector<ExprRef>>& ends = std::nullopt) {
    const ScheduleBlock& b = schedule_.blocks[number];
    uses.insert(b.roots.begin(), b.roots.end());
    const size_t none = b.steps.size(), last = ends ? lastIf(b, *ends).value_or(none) : none;
    for (size_t k = b.steps.size(); k-- > 0;) {
      const ScheduleStep& step = b.steps[k];
      const ExprRef e = step.node;
      if (e->kind == ExprKind::Call) {
        calls.uses[e].assign(uses.begin(), uses.end());
        if (ends) lastCall(b, k, *ends);
      }
      nested |= e->kind == ExprKind::Recursion || (e->kind == ExprKind::Call && e->index != recursion_);
      if (e->kind == ExprKind::If) {
        const auto branchEnds = [&](bool then) {
          return last == k ? std::optional(endsOfBranch(e, then, *ends)) : std::nullopt;
        };
        Uses otherwise = uses;
        block(step.first, uses, branchEnds(true));
        block(step.second, otherwise, branchEnds(false));
        uses.merge(otherwise);
      } else if (step.first != 0) {
        // What a turn uses first, the turn before it has to keep: the second time everything is there.
        for (int turn = 0; turn < 2; ++turn) {
          if (step.second != 0) block(step.second, uses);
          block(step.first, uses);
        }
      }
      uses.insert(e->operands.begin(), e->operands.end());
    }
  }

  PendingCalls calls;
  bool nested = false;  ///< inside of another recursion, or around one

 private:
  /// Notes a call if everything behind it combines its results.
  void lastCall(const ScheduleBlock& b, size_t place, const std::vector<ExprRef>& ends) {
    const ExprRef call = b.steps[place].node;
    std::set<ExprRef, ById> behind;
    for (size_t k = place + 1; k < b.steps.size(); ++k) behind.insert(b.steps[k].node);
    const auto isBehind = [&](ExprRef e) {
      return behind.contains(e) || (e->kind == ExprKind::Project && e->operands[0] == call);
    };
    std::set<ExprRef, ById> combining;
    std::vector<std::vector<ExprRef>> others;
    std::vector<std::optional<ReduceOp>> operations = calls.operations;
    operations.resize(ends.size());
    for (size_t result = 0; result < ends.size(); ++result) {
      others.emplace_back();
      ExprRef e = ends[result];
      while (e->kind == ExprKind::Op && behind.contains(e)) {
        const std::optional<ReduceOp> operation = inAnyOrder(e);
        if (!operation || (operations[result] && operations[result] != operation)) return;
        const bool left = isBehind(e->operands[0]);
        if (left == isBehind(e->operands[1])) return;
        operations[result] = operation;
        combining.insert(e);
        others.back().push_back(e->operands[left ? 1 : 0]);
        e = e->operands[left ? 0 : 1];
      }
      if (e->kind != ExprKind::Project || e->operands[0] != call || e->index != result) return;
    }
    if (ends.size() != call->count || combining.size() != behind.size()) return;
    calls.last[call] = std::move(others);
    calls.operations = std::move(operations);
  }
  static std::optional<ReduceOp> inAnyOrder(ExprRef e) {
    if (isFloat(e->type)) return std::nullopt;
    for (const ReduceOp op : {ReduceOp::Add, ReduceOp::Mul, ReduceOp::Max, ReduceOp::Min, ReduceOp::And,
                              ReduceOp::Or, ReduceOp::Xor})
      if (scalarOp(op) == e->op) return op;
    return std::nullopt;
  }

  const Schedule& schedule_;
  const uint32_t recursion_;
};

}  // namespace

std::optional<PendingCalls> pendingCalls(const Schedule& schedule, const ScheduleStep& recursion) {
  Walk walk(schedule, recursion.node->index);
  Uses uses;
  walk.calls.operations.resize(schedule.blocks[recursion.first].roots.size());
  walk.block(recursion.first, uses, schedule.blocks[recursion.first].roots);
  if (walk.nested) return std::nullopt;
  return std::move(walk.calls);
}

}  // namespace kelpie::codegen

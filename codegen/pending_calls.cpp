#include "codegen/pending_calls.h"

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
        if (ends && k + 1 == none && areResults(*ends, e)) calls.last.insert(e);
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
  static bool areResults(const std::vector<ExprRef>& ends, ExprRef call) {
    for (size_t k = 0; k < ends.size(); ++k)
      if (ends[k]->kind != ExprKind::Project || ends[k]->operands[0] != call || ends[k]->index != k)
        return false;
    return ends.size() == call->count;
  }

  const Schedule& schedule_;
  const uint32_t recursion_;
};

}  // namespace

std::optional<PendingCalls> pendingCalls(const Schedule& schedule, const ScheduleStep& recursion) {
  Walk walk(schedule, recursion.node->index);
  Uses uses;
  walk.block(recursion.first, uses, schedule.blocks[recursion.first].roots);
  if (walk.nested) return std::nullopt;
  return std::move(walk.calls);
}

}  // namespace kelpie::codegen

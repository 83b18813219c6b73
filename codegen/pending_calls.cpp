#include "codegen/pending_calls.h"

#include <algorithm>
#include <set>

#include "codegen/loop_exits.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

using Uses = std::set<ExprRef, ById>;

std::optional<ReduceOp> inAnyOrder(ExprRef e) {
  if (isFloat(e->type)) return std::nullopt;
  for (const ReduceOp op : {ReduceOp::Add, ReduceOp::Mul, ReduceOp::Max, ReduceOp::Min, ReduceOp::And,
                            ReduceOp::Or, ReduceOp::Xor})
    if (scalarOp(op) == e->op) return op;
  return std::nullopt;
}

/// What becomes of the values that a function computes.
class Flow {
 public:
  Flow(const Schedule& schedule, ExprRef recursion)
      : results_(recursionResults(recursion)), around_(schedule.blocks.size()) {
    for (ExprRef result : results_) ++uses_[result];
    lcu::forEachNode(results_, [&](ExprRef e) {
      for (ExprRef operand : e->operands) {
        ++uses_[operand];
        user_[operand] = e;
      }
      if (e->kind == ExprKind::Project) projects_[{e->operands[0], e->index}] = e;
    });
    for (uint32_t b = 0; b < schedule.blocks.size(); ++b) {
      for (const ScheduleStep& step : schedule.blocks[b].steps) {
        if (step.node->kind == ExprKind::Call) blocksOf_[step.node].push_back(b);
        for (const uint32_t nested : {step.first, step.second})
          if (nested != 0) around_[nested] = {b, step.node, nested == step.first};
      }
    }
  }

  size_t placesOf(ExprRef call) const { return blocksOf_.at(call).size(); }

  /// Whether a result of a call is combined once into that of the function, whenever the call is made.
  bool isOnlyCombined(ExprRef call, uint32_t result, ReduceOp operation) const {
    const auto value = projects_.find({call, result});
    if (value == projects_.end() || placesOf(call) != 1) return false;
    ExprRef e = value->second;
    while (uses_.at(e) == 1) {
      if (e == results_[result]) return true;
      const auto user = user_.find(e);
      if (user == user_.end()) return false;
      const ExprRef by = user->second;
      if (by->kind == ExprKind::Op && inAnyOrder(by) == operation) {
        e = by;
        continue;
      }
      if (by->kind != ExprKind::If) return false;
      const size_t place =
          static_cast<size_t>(std::find(by->operands.begin(), by->operands.end(), e) - by->operands.begin());
      const size_t values = by->operands.size() / 2;
      const bool then = place <= values;
      if (place == 0 || !isIn(blocksOf_.at(call)[0], by, then)) return false;
      const auto chosen = projects_.find({by, static_cast<uint32_t>(place - 1 - (then ? 0 : values))});
      if (chosen == projects_.end()) return false;
      e = chosen->second;
    }
    return false;
  }

 private:
  struct Around {
    uint32_t block = 0;
    ExprRef step = nullptr;
    bool first = false;
  };
  /// Whether a block is (in) a branch.
  bool isIn(uint32_t block, ExprRef choice, bool then) const {
    for (; block != 0; block = around_[block].block)
      if (around_[block].step == choice) return around_[block].first == then;
    return false;
  }

  const std::vector<ExprRef> results_;
  std::vector<Around> around_;  ///< by block
  std::map<ExprRef, int, ById> uses_;
  std::map<ExprRef, ExprRef, ById> user_;
  std::map<std::pair<ExprRef, uint32_t>, ExprRef> projects_;
  std::map<ExprRef, std::vector<uint32_t>, ById> blocksOf_;  ///< of calls
};

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
        // One call may be made at several places, as branches share what is alike in them: a frame has what
        // any of these uses, and is spared if none does. (What is not there at a place is not kept there.)
        Uses anywhere(calls.uses[e].begin(), calls.uses[e].end());
        anywhere.insert(uses.begin(), uses.end());
        calls.uses[e].assign(anywhere.begin(), anywhere.end());
        if (!ends || !lastCall(b, k, *ends)) notLast_.insert(e);
      }
      // A load may be made before its step, with that of another column of its element.
      const size_t used = e->kind == ExprKind::Load ? 1 : std::erase_if(uses, [&](ExprRef other) {
        return other == e || (other->kind == ExprKind::Project && other->operands[0] == e);
      });
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
      const bool counts = used > 0 || (e->kind != ExprKind::Op && e->kind != ExprKind::Convert);
      if (counts && !neverHolds(e)) uses.insert(e->operands.begin(), e->operands.end());
    }
  }

  /// What the steps of all blocks tell, once these have been walked.
  void finish(ExprRef recursion) {
    for (const ExprRef call : notLast_) calls.last.erase(call);
    calls.invariant.assign(recursionArguments(recursion).size(), true);
    const Flow flow(schedule_, recursion);
    for (const auto& [call, uses] : calls.uses) {
      for (uint32_t k = 0; k < call->operands.size(); ++k) {
        const ExprRef given = call->operands[k];
        const bool own = given->kind == ExprKind::LoopVar && given->index == recursion_ && given->count == k;
        calls.invariant[k] = calls.invariant[k] && own;
      }
    }
    for (const auto& [call, uses] : calls.uses) {
      if (calls.last.contains(call)) continue;
      calls.places += flow.placesOf(call);
      std::vector<bool>& goesOn = calls.goesOn[call];
      for (uint32_t k = 0; k < calls.operations.size(); ++k)
        goesOn.push_back(calls.operations[k] && flow.isOnlyCombined(call, k, *calls.operations[k]));
      calls.values[call] = valuesOf(call, uses);
      for (uint32_t k = 0; k < goesOn.size(); ++k) calls.values[call] += calls.operations[k] && !goesOn[k];
    }
  }

  PendingCalls calls;
  bool nested = false;  ///< inside of another recursion, or around one

 private:
  /// How many of them have to be kept: the others do not change, or are computed from these again.
  size_t valuesOf(ExprRef call, const std::vector<ExprRef>& uses) const {
    const auto isKept = [&](ExprRef e) {
      switch (e->kind) {
        case ExprKind::Project:
          return e->operands[0] != call;
        case ExprKind::Constant:
        case ExprKind::Param:
        case ExprKind::Host:
        case ExprKind::Size:
          return false;
        case ExprKind::LoopVar:
          return e->index != recursion_ || !calls.invariant[e->count];
        default:
          return true;
      }
    };
    const auto isQuick = [](ExprRef e) {
      return e->kind == ExprKind::Op && e->op != ScalarOp::Div && e->op != ScalarOp::Rem;
    };
    const auto isThere = [&](ExprRef e) {
      return !isKept(e) || std::binary_search(uses.begin(), uses.end(), e, ById());
    };
    const auto isNear = [&](ExprRef e) {  // or computed from what is there
      return isThere(e) || (isQuick(e) && std::all_of(e->operands.begin(), e->operands.end(), isThere));
    };
    return static_cast<size_t>(std::count_if(uses.begin(), uses.end(), [&](ExprRef e) {
      return isKept(e) && !(isQuick(e) && std::all_of(e->operands.begin(), e->operands.end(), isNear));
    }));
  }
  /// Notes a call if everything behind it combines its results, as at the other places where it is made.
  bool lastCall(const ScheduleBlock& b, size_t place, const std::vector<ExprRef>& ends) {
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
        if (!operation || (operations[result] && operations[result] != operation)) return false;
        const bool left = isBehind(e->operands[0]);
        if (left == isBehind(e->operands[1])) return false;
        operations[result] = operation;
        combining.insert(e);
        others.back().push_back(e->operands[left ? 1 : 0]);
        e = e->operands[left ? 0 : 1];
      }
      if (e->kind != ExprKind::Project || e->operands[0] != call || e->index != result) return false;
    }
    if (ends.size() != call->count || combining.size() != behind.size()) return false;
    const auto known = calls.last.find(call);
    if (known != calls.last.end() && known->second != others) return false;
    calls.last[call] = std::move(others);
    calls.operations = std::move(operations);
    return true;
  }

  const Schedule& schedule_;
  const uint32_t recursion_;
  std::set<ExprRef, ById> notLast_;  ///< calls that leave something pending where they are made
};

}  // namespace

std::optional<PendingCalls> pendingCalls(const Schedule& schedule, const ScheduleStep& recursion) {
  Walk walk(schedule, recursion.node->index);
  Uses uses;
  walk.calls.operations.resize(schedule.blocks[recursion.first].roots.size());
  walk.block(recursion.first, uses, schedule.blocks[recursion.first].roots);
  if (walk.nested) return std::nullopt;
  walk.finish(recursion.node);
  return std::move(walk.calls);
}

}  // namespace kelpie::codegen

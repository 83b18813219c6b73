#include "fusion/merged_checks.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"
#include "fusion/sizes.h"
#include "ir/failures.h"

namespace kelpie::fusion {

using codegen::Schedule;
using codegen::ScheduleStep;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;

namespace {

/// What a Check decides: its condition, the value that it lets through, and what else comes of it.
using Decision = std::array<ExprRef, 3>;
Decision decisionOf(ExprRef check) { return {check->operands[0], check->operands[1], check->operands[2]}; }

bool decideTheSame(const std::vector<ExprRef>& roots) {
  std::map<Decision, ExprRef> seen;
  return lcu::anyNode(roots, [&](ExprRef e) {
    return e->kind == ExprKind::Check && seen.emplace(decisionOf(e), e).first->second != e;
  });
}

/// Finds for Checks others that can stand for them.
class Deciders {
 public:
  /// Of thunks that are evaluated for every element; known for all that follow.
  void eager(const std::vector<ExprRef>& roots) { walk(codegen::scheduleExpressions(roots)); }
  /// Of thunks that are evaluated for some elements.
  void late(const std::vector<ExprRef>& roots) {
    walk(codegen::scheduleExpressions(roots));
    restore(0);
  }
  void forget() { known_.clear(); }

  /// What can stand for the Check wherever that occurs; null: nothing.
  ExprRef of(ExprRef check) const {
    const auto found = deciders_.find(check);
    return found == deciders_.end() ? nullptr : found->second;
  }

 private:
  /// A Check that is evaluated whenever the block at hand is.
  struct Known {
    ExprRef check = nullptr;
    size_t depth = 0;  ///< of its block
  };
  struct Around {
    ExprRef loop;
    size_t depth;  ///< of the block that it is in
  };

  /// Goes through the blocks with what is known in each.
  void walk(const Schedule& schedule) {
    struct Task {
      uint32_t block = 0;
      size_t depth = 0;
      ExprRef loop = nullptr;  ///< the block is its condition ...
      uint32_t body = 0;       ///< ... and this its body
      bool leaves = false;
      size_t changes = 0, loops = 0;  ///< so many were there before the block
    };
    std::vector<Task> tasks{Task{}};
    changes_.clear();
    while (!tasks.empty()) {
      const Task task = tasks.back();
      tasks.pop_back();
      if (task.leaves) {
        restore(task.changes);
        loops_.resize(task.loops);
        continue;
      }
      if (task.depth > 0) tasks.push_back({0, 0, nullptr, 0, true, changes_.size(), loops_.size()});
      if (task.loop) loops_.push_back({task.loop, task.depth - 1});
      decide(schedule.blocks[task.block].steps, task.depth);
      for (const ScheduleStep& step : schedule.blocks[task.block].steps) {
        if (step.first == 0) continue;
        const bool loop = step.node->kind == ExprKind::Loop;
        tasks.push_back({step.first, task.depth + 1, loop ? step.node : nullptr, loop ? step.second : 0});
        if (!loop && step.second != 0) tasks.push_back({step.second, task.depth + 1});
      }
      if (task.body != 0) tasks.push_back({task.body, task.depth + 1});
    }
  }

  void decide(const std::vector<ScheduleStep>& steps, size_t depth) {
    std::map<Decision, ExprRef> first;  // of those that stay, the one with the lowest site
    for (const bool offers : {false, true}) {
      for (const ScheduleStep& step : steps) {
        const ExprRef check = step.node;
        if (check->kind != ExprKind::Check) continue;
        const Decision decision = decisionOf(check);
        const auto known = known_.find(decision);
        if (known != known_.end() && known->second.check && standsFor(known->second, check)) {
          if (offers) offer(check, known->second.check);
        } else if (offers) {
          offer(check, first.at(decision));
        } else {
          ExprRef& least = first.emplace(decision, check).first->second;
          if (check->index < least->index) least = check;
        }
      }
    }
    for (const auto& [decision, check] : first) {
      Known& known = known_[decision];
      changes_.push_back({decision, known});
      known = {check, depth};
    }
  }

  /// Whether no launch reports another error when `known` stands for the Check.
  bool standsFor(const Known& known, ExprRef check) const {
    if (known.check->index <= check->index) return true;
    return std::any_of(loops_.begin(), loops_.end(), [&](const Around& around) {
      return around.depth >= known.depth && lcu::comesBefore(known.check, around.loop);
    });
  }

  void offer(ExprRef check, ExprRef decider) {
    const ExprRef other = decider == check ? nullptr : decider;
    const auto [offered, fresh] = deciders_.emplace(check, other);
    if (!fresh && offered->second != other) offered->second = nullptr;
  }

  void restore(size_t changes) {
    for (; changes_.size() > changes; changes_.pop_back())
      known_[changes_.back().first] = changes_.back().second;
  }

  std::map<Decision, Known> known_;
  std::vector<std::pair<Decision, Known>> changes_;  ///< what was known before, latest last
  std::vector<Around> loops_;                        ///< around the block at hand
  std::unordered_map<ExprRef, ExprRef> deciders_;    ///< null: none everywhere
};

/// Whether anything changed.
bool mergeOnce(lcu::Kernel& kernel, lcu::ExprArena& arena) {
  Deciders deciders;
  const Soac* before = nullptr;
  for (const Soac& soac : kernel.bindings) {
    const bool once = soac.kind == lcu::SoacKind::Once;
    if (once || !before || before->space.extent != soac.space.extent) deciders.forget();
    deciders.eager(codegen::eagerThunks(soac));
    deciders.late(codegen::lateThunks(soac));
    before = once ? nullptr : &soac;
  }
  bool changed = false;
  for (Soac& soac : kernel.bindings) {
    changeExpressions(soac, [&](ExprRef thunk) {
      const ExprRef merged = arena.rewriteInOrder(
          thunk, [&](ExprRef e) { return e->kind == ExprKind::Check ? deciders.of(e) : nullptr; });
      changed |= merged != thunk;
      return merged;
    });
  }
  return changed;
}

void mergeAll(lcu::Kernel& kernel, lcu::ExprArena& arena) {
  constexpr int kMostRounds = 16;  // checks of what checked indices load follow in the next round
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<ExprRef> thunks;
    for (const Soac& soac : kernel.bindings) {
      const std::vector<ExprRef> own = codegen::thunksOf(soac);
      thunks.insert(thunks.end(), own.begin(), own.end());
    }
    if (!decideTheSame(thunks) || !mergeOnce(kernel, arena)) return;
  }
}

}  // namespace

void mergeChecks(lcu::Kernel& kernel, lcu::ExprArena& arena) {
  mergeAll(kernel, arena);
  for (Soac& soac : kernel.bindings) {
    const std::vector<ExprRef> effects = std::exchange(soac.effects, {});
    soac.effects = lcu::failuresBeside(effects, codegen::eagerThunks(soac));
    if (soac.results.empty() && soac.effects.empty()) soac.effects = effects;  // no binding has nothing
  }
}

}  // namespace kelpie::fusion

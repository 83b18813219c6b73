#include "fusion/slowest_turns.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "codegen/uneven_loops.h"

namespace kelpie::fusion {

using codegen::Schedule;
using codegen::ScheduleStep;
using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// Multiplies what is in loops by longerOf(step of an outermost loop, block of its turns).
void lengthenLoops(const Schedule& schedule, std::vector<double>& inStep,
                   const std::function<double(const ScheduleStep&, uint32_t)>& longerOf) {
  std::vector<double> longer(schedule.blocks.size(), 1);
  std::vector<bool> inside(schedule.blocks.size(), false);
  for (size_t b = 0; b < schedule.blocks.size(); ++b) {  // blocks come after those they are in
    for (const ScheduleStep& step : schedule.blocks[b].steps) {
      const bool loops = step.node->kind == ExprKind::Loop || step.node->kind == ExprKind::Recursion;
      const uint32_t turns = step.second != 0 ? step.second : step.first;
      const double own = loops && !inside[b] && turns != 0 ? std::max(1.0, longerOf(step, turns)) : longer[b];
      for (const uint32_t nested : {step.first, step.second}) {
        if (nested == 0) continue;
        inside[nested] = inside[b] || loops;
        longer[nested] = own;
      }
    }
  }
  for (size_t b = 0; b < inStep.size(); ++b) inStep[b] *= longer[b];
}

}  // namespace

void waitForSlowest(const Schedule& schedule, double items, const std::vector<double>& slowest,
                    std::vector<double>& inStep) {
  constexpr double kUnknown = 6;
  std::unordered_set<ExprRef> uneven;
  if (slowest.empty()) uneven = codegen::unevenLoops(schedule);
  lengthenLoops(schedule, inStep, [&](const ScheduleStep& step, uint32_t turns) {
    const double most = !slowest.empty()             ? slowest[turns] / std::max(1.0, inStep[turns])
                        : uneven.contains(step.node) ? kUnknown
                                                     : 1;
    return (most + items - 1) / std::max(1.0, items);
  });
}

void waitForBlocks(const Schedule& schedule, const std::vector<double>& ofFour, std::vector<double>& inStep) {
  // Warps that are left have more of their multiprocessor.
  constexpr double kShare = 0.6;
  if (ofFour.empty()) return;
  lengthenLoops(schedule, inStep, [&](const ScheduleStep&, uint32_t turns) {
    return inStep[turns] > 0 ? 1 + kShare * (ofFour[turns] / inStep[turns] - 1) : 1;
  });
}

}  // namespace kelpie::fusion

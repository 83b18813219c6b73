#include "fusion/refilled_turns.h"

#include <algorithm>

namespace kelpie::fusion {

using codegen::ScheduleStep;

void refillTurns(const codegen::Schedule& schedule, const codegen::RefilledLoop& refilled, double elements,
                 double ofLane, const std::vector<double>& entered, std::vector<double>& inStep) {
  // Lanes that have nothing to do wait for others now and then, and what is not in the loop is done for about
  // half of a warp at a time.
  // The first elements of a warp are done in step, unless they wait for very long (lane_queue.cuh), and
  // behind the last ones nothing is left to take.
  constexpr double kWaiting = 1.4, kOften = 2, kLanes = 32;
  double ofLaneInStep = 2;
  if (ofLane <= ofLaneInStep) return;
  std::vector<bool> inside(schedule.blocks.size(), false);
  uint32_t turns = 0;
  for (size_t b = 0; b < schedule.blocks.size(); ++b) {
    for (const ScheduleStep& step : schedule.blocks[b].steps) {
      if (step.node == refilled.loop) turns = step.second;
      for (const uint32_t nested : {step.first, step.second})
        if (nested != 0) inside[nested] = inside[b] || step.node == refilled.loop;
    }
  }
  if (turns == 0 || inStep[turns] <= 0) return;
  const double waited = (inStep[turns] - entered[turns]) * refilled.ofTurn;
  if (waited < refilled.worth() * elements) return;
  if (waited > codegen::RefilledLoop::kVeryLong * refilled.worth() * elements) ofLaneInStep = 1;
  const double share = kWaiting * entered[turns] / inStep[turns], queued = 1 - ofLaneInStep / ofLane;
  for (size_t b = 0; b < inStep.size(); ++b) {
    const double apart = inside[b] ? std::max(entered[b], share * inStep[b])
                                   : std::min(kOften * inStep[b], std::max(inStep[b], kLanes * entered[b]));
    inStep[b] += queued * (apart - inStep[b]);
  }
}

}  // namespace kelpie::fusion

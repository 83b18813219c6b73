#include "fusion/segment_look_ups.h"

#include <algorithm>

#include "codegen/thunk_sample.h"

namespace kelpie::fusion {

using codegen::ScheduleStep;
using lcu::ExprKind;
using lcu::SoacKind;

namespace {

double timeOfLookUp(SoacKind kind, const TargetCosts& costs) {
  constexpr double kElsewhere = 1.4;  // folds keep the segments of a tile at hand
  return (kind == SoacKind::Reduce ? 1 : kElsewhere) * costs.besideLoad;
}

}  // namespace

double SegmentLookUps::ofStep(const codegen::Schedule& schedule, const Place& place,
                              const std::vector<bool>& behindBranches, const std::vector<double>& entered,
                              SoacKind kind, const TargetCosts& costs) {
  const ScheduleStep& step = place.step;
  if (step.node->kind == ExprKind::Load) {
    if (codegen::loadsOfSegment(step.node))  // in front of all branches
      return loaded_.insert(step.node).second ? entered[0] * timeOfLookUp(kind, costs) : 0;
    return codegen::loadsOfSegmentNearby(step.node) ? entered[place.block] * timeOfLookUp(kind, costs) : 0;
  }
  double time = 0;
  for (const uint32_t branch : {step.first, step.second}) {
    if (kind != SoacKind::Reduce || step.node->kind != ExprKind::If || !behindBranches[branch]) continue;
    const std::vector<ScheduleStep>& steps = schedule.blocks[branch].steps;
    if (std::any_of(steps.begin(), steps.end(), [](const ScheduleStep& inside) {
          return inside.node->kind == ExprKind::Load && !codegen::loadsOfSegment(inside.node);
        }))
      time += entered[branch] * costs.guardedLoad;
  }
  return time;
}

double SegmentLookUps::ofPositions(const std::vector<lcu::ExprRef>& thunks, SoacKind kind, double times,
                                   const TargetCosts& costs) {
  const bool looks = kind == SoacKind::Map || kind == SoacKind::Permute;  // folds have it at hand
  const auto isPosition = [](lcu::ExprRef e) { return e->kind == ExprKind::Param && e->index == 2; };
  if (!looks || located_ || !lcu::anyNode(thunks, isPosition)) return 0;
  located_ = true;
  return times * timeOfLookUp(kind, costs);
}

}  // namespace kelpie::fusion

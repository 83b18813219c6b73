#include "codegen/cuda/segment_values.h"

#include <algorithm>
#include <unordered_set>

#include "codegen/expression_schedule.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::VarId;

bool loadsAtSegment(ExprRef e, const KernelInfo& info) {
  return e->kind == ExprKind::Load && e->operands[0]->kind == ExprKind::Param && e->operands[0]->index == 1 &&
         info.parameter(ParameterKind::Array, e->index);
}

bool loadsValueOfSegment(ExprRef e, const KernelInfo& info, const lcu::Program& program) {
  if (!loadsAtSegment(e, info)) return false;
  const ExprRef extent = program.vars.at(e->index).extent, segments = info.space.segments;
  if (!extent) return false;
  if (extent == segments) return true;
  const bool isSum = extent->kind == ExprKind::Op && extent->op == ScalarOp::Add;
  return isSum && extent->operands[0] == segments && lcu::asIndex(extent->operands[1]).value_or(-1) >= 0;
}

namespace {

/// What thunks load for every element.
std::unordered_set<ExprRef> loadsOfAll(const lcu::Kernel& kernel) {
  std::vector<ExprRef> thunks;
  for (const Soac& soac : kernel.bindings) {
    const auto own = eagerThunks(soac);
    thunks.insert(thunks.end(), own.begin(), own.end());
  }
  std::unordered_set<ExprRef> loads;
  const Schedule schedule = scheduleExpressions(thunks);
  for (const ScheduleStep& step : schedule.blocks[0].steps)
    if (step.node->kind == ExprKind::Load) loads.insert(step.node);
  for (const ScheduleStep& step : schedule.blocks[0].steps) {
    const ExprRef e = step.node;
    const bool stops = e->kind == ExprKind::Op && e->type == ScalarType::Bool &&
                       (e->op == ScalarOp::And || e->op == ScalarOp::Or);
    if (stops) lcu::forEachNode({e->operands[1]}, [&](ExprRef behind) { loads.erase(behind); });
  }
  return loads;
}

}  // namespace

std::vector<VarId> sharedSegmentValues(const lcu::Kernel& kernel, const KernelInfo& info,
                                       const lcu::Program& program) {
  constexpr int kMostBytes = 8;  // of a segment
  const std::unordered_set<ExprRef> always = loadsOfAll(kernel);
  std::vector<VarId> arrays;
  int bytes = 0;
  bool loops = false;
  for (const Soac& soac : kernel.bindings) {
    lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
      loops |= lcu::isUnbounded(e);
      if (!loadsAtSegment(e, info)) return;
      if (!always.contains(e) && !loadsValueOfSegment(e, info, program)) return;
      if (std::find(arrays.begin(), arrays.end(), e->index) != arrays.end()) return;
      if (bytes + sizeOf(e->type) > kMostBytes) return;
      bytes += sizeOf(e->type);
      arrays.push_back(e->index);
    });
  }
  return loops ? std::vector<VarId>() : arrays;
}

}  // namespace kelpie::codegen::cuda

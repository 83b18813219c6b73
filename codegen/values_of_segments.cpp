#include "codegen/values_of_segments.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "codegen/expression_schedule.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

constexpr uint32_t kSegment = 1;

bool isSegment(ExprRef e) { return e->kind == ExprKind::Param && e->index == kSegment; }

bool divides(ExprRef e) {
  return e->kind == ExprKind::Op && (e->op == ScalarOp::Div || e->op == ScalarOp::Rem);
}

/// Whether its second operand may not be evaluated.
bool stopsBefore(ExprRef e) {
  return e->kind == ExprKind::Op && e->type == ScalarType::Bool &&
         (e->op == ScalarOp::And || e->op == ScalarOp::Or);
}

bool isLong(ExprRef e) { return divides(e) || (e->kind == ExprKind::Op && e->op >= ScalarOp::Sqrt); }

/// What thunks evaluate for every element: not in branches or loops.
std::unordered_set<ExprRef> strictlyEvaluated(const std::vector<ExprRef>& thunks) {
  const Schedule schedule = scheduleExpressions(thunks);
  std::unordered_set<ExprRef> all;
  for (const ScheduleStep& step : schedule.blocks[0].steps) all.insert(step.node);
  return all;
}

/// Made of the segment alone, and harmless where an element would not reach it.
class OfSegments {
 public:
  OfSegments(const std::vector<ExprRef>& thunks, const KernelInfo& info, const lcu::Program& program)
      : always_(evaluatedForAll(thunks)), info_(info), program_(program) {}

  bool operator()(ExprRef e) {
    if (const auto known = known_.find(e); known != known_.end()) return known->second;
    const bool result = find(e);
    known_.emplace(e, result);
    return result;
  }

 private:
  bool find(ExprRef e) {
    switch (e->kind) {
      case ExprKind::Constant:
      case ExprKind::Host:
      case ExprKind::Size:
        return true;
      case ExprKind::Param:
        return isSegment(e);
      case ExprKind::Load:
        return isSegment(e->operands[0]) && (always_.contains(e) || loadsValueOfSegment(e, info_, program_));
      case ExprKind::Op:
        if (divides(e) && !isFloat(e->type) && !always_.contains(e) &&
            lcu::asIndex(e->operands[1]).value_or(0) == 0)
          return false;
        [[fallthrough]];
      case ExprKind::Convert:
        return std::all_of(e->operands.begin(), e->operands.end(), [this](ExprRef o) { return (*this)(o); });
      default:
        return false;
    }
  }

  const std::unordered_set<ExprRef> always_;
  const KernelInfo& info_;
  const lcu::Program& program_;
  std::unordered_map<ExprRef, bool> known_;
};

}  // namespace

bool loadsAtSegment(ExprRef e, const KernelInfo& info) {
  return e->kind == ExprKind::Load && isSegment(e->operands[0]) &&
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

std::unordered_set<ExprRef> evaluatedForAll(const std::vector<ExprRef>& thunks) {
  std::unordered_set<ExprRef> all = strictlyEvaluated(thunks);
  const std::vector<ExprRef> nodes(all.begin(), all.end());
  for (ExprRef e : nodes)
    if (stopsBefore(e)) lcu::forEachNode({e->operands[1]}, [&](ExprRef behind) { all.erase(behind); });
  return all;
}

std::vector<ExprRef> longValuesOfSegments(const std::vector<ExprRef>& thunks, const KernelInfo& info,
                                          const lcu::Program& program) {
  OfSegments isOfSegments(thunks, info, program);
  std::vector<ExprRef> found;
  std::unordered_set<ExprRef> seen;
  std::vector<ExprRef> work(thunks);
  while (!work.empty()) {  // from the thunks down: what is part of a value alone is computed with it
    const ExprRef e = work.back();
    work.pop_back();
    if (!seen.insert(e).second) continue;
    if (isLong(e) && isOfSegments(e) && lcu::anyNode({e}, isSegment))
      found.push_back(e);
    else
      work.insert(work.end(), e->operands.begin(), e->operands.end());
  }
  std::sort(found.begin(), found.end(), [](ExprRef a, ExprRef b) { return a->id < b->id; });
  return found;
}

std::vector<ExprRef> guardedValuesOfSegments(const std::vector<ExprRef>& eager,
                                             const std::vector<ExprRef>& late, const KernelInfo& info,
                                             const lcu::Program& program, size_t most) {
  std::vector<ExprRef> loads, thunks(eager);
  thunks.insert(thunks.end(), late.begin(), late.end());
  const Schedule schedule = scheduleExpressions(thunks);
  if (schedule.hasRecursion) return loads;
  const std::unordered_set<ExprRef> always = strictlyEvaluated(eager);
  const auto add = [&](ExprRef e) {
    if (loads.size() >= most || std::find(loads.begin(), loads.end(), e) != loads.end()) return;
    if (always.contains(e) ? loadsAtSegment(e, info) : loadsValueOfSegment(e, info, program))
      loads.push_back(e);
  };
  for (size_t b = 1; b < schedule.blocks.size(); ++b)
    for (const ScheduleStep& step : schedule.blocks[b].steps) add(step.node);
  for (const ScheduleStep& step : schedule.blocks[0].steps)
    if (stopsBefore(step.node)) lcu::forEachNode({step.node->operands[1]}, add);
  return loads;
}

}  // namespace kelpie::codegen

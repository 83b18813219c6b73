#include "codegen/refilled_loop.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"
#include "codegen/loop_exits.h"
#include "codegen/uneven_loops.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

std::vector<ExprRef> stepsOf(ExprRef loop) {
  std::vector<ExprRef> steps = loopNext(loop);
  steps.push_back(loopCondition(loop));
  return steps;
}

std::unordered_set<ExprRef> outermostOf(const Schedule& schedule) {
  std::unordered_set<ExprRef> nodes;
  for (const ScheduleStep& step : schedule.blocks[0].steps) nodes.insert(step.node);
  return nodes;
}

/// Finds what the steps of the loop need and do not change; gives what they change. `always`: what is
/// computed for each element.
std::unordered_set<ExprRef> findUnchanged(RefilledLoop& found, const std::unordered_set<ExprRef>& always) {
  const std::vector<ExprRef> steps = stepsOf(found.loop);
  // What every turn computes, if there is always one.
  std::unordered_set<ExprRef> everyTurn;
  if (endFlag(found.loop)) everyTurn = outermostOf(scheduleExpressions(loopNext(found.loop)));
  std::unordered_set<ExprRef> changed, ahead, needed(steps.begin(), steps.end());
  std::vector<ExprRef> nodes;
  lcu::forEachNode(steps, [&](ExprRef e) {  // operands before what uses them
    nodes.push_back(e);
    const auto all = [&](const std::unordered_set<ExprRef>& set) {
      return std::all_of(e->operands.begin(), e->operands.end(), [&](ExprRef o) { return set.contains(o); });
    };
    const bool changes =
        e->kind == ExprKind::LoopVar ||
        std::any_of(e->operands.begin(), e->operands.end(), [&](ExprRef o) { return changed.contains(o); });
    if (changes) changed.insert(e);
    const bool atom = isAtom(e) && e->kind != ExprKind::Project && e->kind != ExprKind::LoopVar;
    const bool operation = e->kind == ExprKind::Op || e->kind == ExprKind::Convert;
    const bool computed = always.contains(e) || (everyTurn.contains(e) && !changes);
    if (atom || computed || (operation && all(ahead))) {
      ahead.insert(e);
    } else if (e->kind == ExprKind::Project && ahead.contains(e->operands[0])) {
      ahead.insert(e);
    } else {
      needed.insert(e->operands.begin(), e->operands.end());
    }
  });
  for (ExprRef e : nodes) {
    if (!ahead.contains(e) || !needed.contains(e) || (isAtom(e) && e->kind != ExprKind::Project)) continue;
    const ExprRef computed = e->kind == ExprKind::Project ? e->operands[0] : e;
    (always.contains(computed) ? found.always : found.unchanged).push_back(e);
  }
  return changed;
}

/// What a turn takes besides its operations, and to take an element.
constexpr int kOfTurn = 4, kOfElement = 20;
/// About how many simple operations an operation takes.
int workOf(ExprRef e) {
  constexpr int kLong = 30, kLoad = 4, kDivision = 10;
  if (e->kind == ExprKind::Load) return kLoad;
  if (isAtom(e)) return 0;
  if (e->kind == ExprKind::Op && (e->op == ScalarOp::Div || e->op == ScalarOp::Sqrt)) return kDivision;
  return takesLong(e) ? (isFloat(e->type) ? kLong : kDivision) : 1;
}

/// Whether a queue can compute `root` before all else: it reads nothing that the kernel makes, and no
/// segment.
bool isAhead(const lcu::Kernel& kernel, ExprRef root, QueueOf queue) {
  std::unordered_set<VarId> made;
  for (const Soac& soac : kernel.bindings) made.insert(soac.results.begin(), soac.results.end());
  return !lcu::anyNode({root}, [&](ExprRef e) {
    return (e->kind == ExprKind::Load && made.contains(e->index)) ||
           (queue == QueueOf::Tile && e->kind == ExprKind::Param && e->index != 0);
  });
}

/// Whether what filters make of survivors has the loop, which need not be in the branch that it is in
/// otherwise.
bool isInLateThunks(const lcu::Kernel& kernel, const std::vector<uint32_t>& bindings, ExprRef loop) {
  return std::any_of(bindings.begin(), bindings.end(), [&](uint32_t b) {
    return lcu::anyNode(lateThunks(kernel.bindings[b]), [&](ExprRef e) { return e == loop; });
  });
}

bool isSuited(const Soac& soac) {
  return soac.kind == SoacKind::Map || (soac.kind == SoacKind::Permute && soac.writesInAnyOrder()) ||
         (soac.kind == SoacKind::Reduce && !soac.space.segmented());
}

}  // namespace

std::optional<RefilledLoop> refilledLoop(const lcu::Kernel& kernel, const std::vector<uint32_t>& bindings,
                                         QueueOf queue) {
  std::vector<ExprRef> thunks;
  for (uint32_t b : bindings) {
    if (queue == QueueOf::Block && !isSuited(kernel.bindings[b])) return std::nullopt;
    const auto own = eagerThunks(kernel.bindings[b]);
    thunks.insert(thunks.end(), own.begin(), own.end());
  }
  if (!lcu::anyNode(thunks, [](ExprRef e) { return e->kind == ExprKind::Loop; })) return std::nullopt;
  const Schedule schedule = scheduleExpressions(thunks);
  if (schedule.hasRecursion) return std::nullopt;

  std::optional<RefilledLoop> found;
  struct Place {
    uint32_t block;
    std::vector<std::pair<ExprRef, bool>> around;
  };
  std::vector<Place> places{{0, {}}};
  while (!places.empty()) {
    const Place place = std::move(places.back());
    places.pop_back();
    for (const ScheduleStep& step : schedule.blocks[place.block].steps) {
      if (step.node->kind == ExprKind::Loop) {
        if (found) return std::nullopt;
        found = RefilledLoop{step.node, {}, place.around, {}, {}, kOfTurn, kOfElement};
      } else if (step.node->kind == ExprKind::If) {
        for (const bool then : {true, false}) {
          places.push_back({then ? step.first : step.second, place.around});
          places.back().around.emplace_back(step.node, then);
        }
      }
    }
  }
  if (!found || !isAhead(kernel, found->loop, queue)) return std::nullopt;
  for (const auto& [branch, then] : found->around)
    if (!isAhead(kernel, branch->operands[0], queue)) return std::nullopt;
  if (!found->around.empty() && isInLateThunks(kernel, bindings, found->loop)) return std::nullopt;
  if (!turnsUnevenly(found->loop)) return std::nullopt;
  std::vector<ExprRef> all;
  for (uint32_t b : bindings) {
    const auto own = thunksOf(kernel.bindings[b]);
    all.insert(all.end(), own.begin(), own.end());
  }
  lcu::forEachNode(all, [&](ExprRef e) {
    if (e->kind == ExprKind::Project && e->operands[0] == found->loop) found->values.push_back(e);
  });
  const auto changed = findUnchanged(*found, outermostOf(schedule));
  // Neighbours in step load what lies side by side.
  if (std::any_of(changed.begin(), changed.end(), [](ExprRef e) { return e->kind == ExprKind::Load; }))
    return std::nullopt;
  lcu::forEachNode(thunks,
                   [&](ExprRef e) { (changed.contains(e) ? found->ofTurn : found->besides) += workOf(e); });
  return found;
}

}  // namespace kelpie::codegen

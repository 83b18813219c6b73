#include "fusion/merged_choices.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"
#include "fusion/sizes.h"

namespace kelpie::fusion {

using codegen::Schedule;
using codegen::ScheduleBlock;
using codegen::ScheduleStep;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;

namespace {

/// What is not to be computed twice.
bool isWork(ExprRef e) {
  return e->kind == ExprKind::Loop || e->kind == ExprKind::Recursion || codegen::takesLong(e);
}

bool share(const ScheduleBlock& a, const ScheduleBlock& b) {
  return std::any_of(a.steps.begin(), a.steps.end(), [&](const ScheduleStep& step) {
    return isWork(step.node) && std::any_of(b.steps.begin(), b.steps.end(), [&](const ScheduleStep& other) {
             return other.node == step.node;
           });
  });
}

bool dependsOn(ExprRef e, ExprRef other) {
  return lcu::anyNode({e}, [&](ExprRef x) { return x == other; });
}

/// How many blocks have an If: one that two branches or loops need is in each.
using Places = std::unordered_map<ExprRef, int>;
void addPlaces(const Schedule& schedule, Places& places) {
  for (const ScheduleBlock& block : schedule.blocks)
    for (const ScheduleStep& step : block.steps)
      if (step.node->kind == ExprKind::If) ++places[step.node];
}

/// Two Ifs that may be one: wherever one is evaluated, the other is, too.
std::optional<std::pair<ExprRef, ExprRef>> findPair(const Schedule& schedule, const Places& places) {
  for (const ScheduleBlock& block : schedule.blocks) {
    std::unordered_map<ExprRef, std::vector<const ScheduleStep*>> byCondition;
    for (const ScheduleStep& step : block.steps) {
      if (step.node->kind != ExprKind::If || places.at(step.node) != 1) continue;
      std::vector<const ScheduleStep*>& others = byCondition[step.node->operands[0]];
      for (const ScheduleStep* other : others) {
        const bool alike = share(schedule.blocks[step.first], schedule.blocks[other->first]) ||
                           share(schedule.blocks[step.second], schedule.blocks[other->second]);
        if (alike && !dependsOn(step.node, other->node) && !dependsOn(other->node, step.node))
          return std::pair(other->node, step.node);
      }
      others.push_back(&step);
    }
  }
  return std::nullopt;
}

/// Whether anything changed.
bool mergeOnce(Soac& soac, lcu::ExprArena& arena) {
  const Schedule eager = codegen::scheduleExpressions(codegen::eagerThunks(soac));
  const Schedule late = codegen::scheduleExpressions(codegen::lateThunks(soac));
  Places places;
  addPlaces(eager, places);
  addPlaces(late, places);
  auto found = findPair(eager, places);
  if (!found) found = findPair(late, places);
  if (!found) return false;
  const auto& [a, b] = *found;
  std::vector<ExprRef> then = codegen::thenValues(a), otherwise = codegen::elseValues(a);
  const size_t ofA = then.size();
  for (ExprRef e : codegen::thenValues(b)) then.push_back(e);
  for (ExprRef e : codegen::elseValues(b)) otherwise.push_back(e);
  const std::vector<ExprRef> both = arena.select(a->operands[0], std::move(then), std::move(otherwise));
  changeExpressions(soac, [&, a = a, b = b](ExprRef thunk) {
    return arena.rewrite(thunk, [&](ExprRef e) -> ExprRef {
      if (e->kind != ExprKind::Project) return nullptr;
      if (e->operands[0] == a) return both[e->index];
      if (e->operands[0] == b) return both[ofA + e->index];
      return nullptr;
    });
  });
  return true;
}

}  // namespace

void mergeChoices(lcu::Kernel& kernel, lcu::ExprArena& arena) {
  for (Soac& soac : kernel.bindings) {
    // Each round takes one If away from those that there are, and a schedule, which takes time with the
    // square of what there is.
    constexpr size_t kMostWork = 1'000'000'000;
    size_t choices = 0, nodes = 0;
    lcu::forEachNode(codegen::thunksOf(soac), [&](ExprRef e) {
      ++nodes;
      if (e->kind == ExprKind::If) ++choices;
    });
    const size_t rounds = std::min(choices, 1 + kMostWork / (1 + nodes * nodes));
    for (size_t round = 1; round < rounds && mergeOnce(soac, arena); ++round) {
    }
  }
}

}  // namespace kelpie::fusion

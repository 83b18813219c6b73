#include "codegen/work_ahead.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::VarId;

namespace {

bool isLong(ExprRef e) { return e->kind == ExprKind::Loop || e->kind == ExprKind::Recursion || takesLong(e); }

/// Thunks that are computed together, in the order in which they are.
std::vector<std::vector<ExprRef>> groupsOf(const Soac& soac) {
  std::vector<ExprRef> eager = eagerThunks(soac);
  eager.erase(eager.begin(), eager.begin() + static_cast<std::ptrdiff_t>(soac.effects.size()));
  return {soac.effects, std::move(eager)};
}

/// What has a value that the kernel makes in it.
std::unordered_set<ExprRef> usersOfResults(const lcu::Kernel& kernel, const std::vector<ExprRef>& thunks) {
  std::unordered_set<VarId> made;
  for (const Soac& soac : kernel.bindings) made.insert(soac.results.begin(), soac.results.end());
  std::unordered_set<ExprRef> with;
  lcu::forEachNode(thunks, [&](ExprRef e) {  // operands before what uses them
    const bool own = e->kind == ExprKind::Load && made.contains(e->index);
    if (own ||
        std::any_of(e->operands.begin(), e->operands.end(), [&](ExprRef o) { return with.contains(o); }))
      with.insert(e);
  });
  return with;
}

}  // namespace

std::vector<WorkAhead> longWorkAhead(const lcu::Kernel& kernel, const std::vector<uint32_t>& bindings) {
  std::vector<ExprRef> thunks;
  for (uint32_t b : bindings) {
    const auto own = thunksOf(kernel.bindings[b]);
    thunks.insert(thunks.end(), own.begin(), own.end());
  }
  std::unordered_map<ExprRef, ExprRef> valueOf;  // of what has several: one that is used
  bool branches = false;
  lcu::forEachNode(thunks, [&](ExprRef e) {
    branches = branches || e->kind == ExprKind::If;
    if (e->kind == ExprKind::Project) valueOf.emplace(e->operands[0], e);
  });
  if (!branches) {
    for (uint32_t b : bindings) branches = branches || !lateThunks(kernel.bindings[b]).empty();
    if (!branches) return {};
  }
  const auto results = usersOfResults(kernel, thunks);

  std::unordered_set<ExprRef> inBranches, computed;
  std::vector<WorkAhead> ahead;
  const auto addBranch = [&](ExprRef e) {
    if (isLong(e) && !computed.contains(e)) inBranches.insert(e);
  };
  for (uint32_t b : bindings) {
    for (const auto& group : groupsOf(kernel.bindings[b])) {
      const Schedule schedule = scheduleExpressions(group);
      for (const ScheduleStep& step : schedule.blocks[0].steps) {
        const ExprRef e = step.node;
        if (!computed.insert(e).second || !inBranches.contains(e) || results.contains(e)) continue;
        const auto value = valueOf.find(e);
        if (ahead.empty() || ahead.back().binding != b) ahead.push_back({b, {}});
        ahead.back().values.push_back(value == valueOf.end() ? e : value->second);
      }
      for (size_t k = 1; k < schedule.blocks.size(); ++k)
        for (const ScheduleStep& step : schedule.blocks[k].steps) addBranch(step.node);
    }
    lcu::forEachNode(lateThunks(kernel.bindings[b]), addBranch);
  }
  return ahead;
}

}  // namespace kelpie::codegen

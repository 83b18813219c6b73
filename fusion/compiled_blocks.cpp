#include "fusion/compiled_blocks.h"

#include <algorithm>
#include <utility>

#include "codegen/loop_exits.h"
#include "codegen/pending_calls.h"

namespace kelpie::fusion {

using codegen::Schedule;
using codegen::ScheduleStep;
using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// What depends on the variables of a loop.
std::unordered_set<ExprRef> changing(uint32_t loop, const std::vector<ExprRef>& roots) {
  std::unordered_set<ExprRef> found;
  lcu::forEachNode(roots, [&](ExprRef e) {
    const bool own = e->kind == ExprKind::LoopVar && e->index == loop;
    const auto depends = [&](ExprRef operand) { return found.contains(operand); };
    if (own || std::any_of(e->operands.begin(), e->operands.end(), depends)) found.insert(e);
  });
  return found;
}

constexpr double kUnrolledTurns = 64;

/// Whether it depends on nothing but these variables of the loop.
bool depends(ExprRef e, ExprRef loop, const std::vector<bool>& counters) {
  return !lcu::anyNode({e}, [&](ExprRef x) {
    switch (x->kind) {
      case ExprKind::Constant:
      case ExprKind::Op:
      case ExprKind::Convert:
      case ExprKind::Check:
        return false;
      case ExprKind::LoopVar:
        return x->index != loop->index || !counters[x->count];
      default:
        return true;
    }
  });
}

/// Of a loop's variables those that begin with constants and go on from each other.
std::vector<bool> countersOf(ExprRef loop) {
  const std::vector<ExprRef> initial = codegen::loopInitial(loop), next = codegen::loopNext(loop);
  std::vector<bool> counters(initial.size());
  for (size_t k = 0; k < initial.size(); ++k) counters[k] = initial[k]->kind == ExprKind::Constant;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = 0; k < next.size(); ++k) {
      if (!counters[k] || depends(next[k], loop, counters)) continue;
      counters[k] = false;
      changed = true;
    }
  }
  return counters;
}

}  // namespace

Homes::Homes(const Schedule& schedule, const std::vector<ExprRef>& roots) : entries_(schedule.blocks.size()) {
  for (size_t b = 0; b < schedule.blocks.size(); ++b) {
    for (const ScheduleStep& step : schedule.blocks[b].steps) {
      for (const uint32_t nested : {step.first, step.second})
        if (nested != 0) entries_[nested] = {b, step.node};
      if (step.node->kind == ExprKind::Loop) changing_[step.node] = changing(step.node->index, roots);
    }
  }
}

size_t Homes::of(ExprRef e, size_t block) const {
  size_t home = block;
  if (e->kind != ExprKind::Op && e->kind != ExprKind::Convert) return home;
  while (block != 0) {
    const auto& [outer, by] = entries_[block];
    if (by->kind == ExprKind::Recursion) break;
    if (by->kind == ExprKind::Loop) {
      if (changing_.at(by).contains(e)) break;
      home = outer;
    }
    block = outer;
  }
  return home;
}

std::unordered_set<ExprRef> countedInLoops(const Schedule& schedule, const std::vector<double>& entered) {
  std::unordered_set<ExprRef> counted;
  for (size_t b = 0; b < schedule.blocks.size(); ++b) {
    for (const ScheduleStep& step : schedule.blocks[b].steps) {
      if (step.node->kind != ExprKind::Loop) continue;
      const bool few = entered[step.second] <= kUnrolledTurns * entered[b];
      const std::vector<bool> counters = countersOf(step.node);
      if (!few || !depends(codegen::loopCondition(step.node), step.node, counters)) continue;
      counted.insert(step.node);
      for (const uint32_t nested : {step.first, step.second})
        for (const ScheduleStep& inside : schedule.blocks[nested].steps)
          if (depends(inside.node, step.node, counters)) counted.insert(inside.node);
    }
  }
  return counted;
}

Frames framesOf(const Schedule& schedule) {
  Frames frames;
  for (const codegen::ScheduleBlock& block : schedule.blocks) {
    for (const ScheduleStep& step : block.steps) {
      if (step.node->kind != ExprKind::Recursion) continue;
      const auto pending = codegen::pendingCalls(schedule, step);
      if (!pending) continue;
      for (const auto& [call, others] : pending->last) frames[call] = std::nullopt;
      for (const auto& [call, values] : pending->values) frames[call] = values;
    }
  }
  return frames;
}

std::unordered_set<ExprRef> exitsOfLoop(const Schedule& schedule, const ScheduleStep& loop) {
  std::unordered_set<ExprRef> exits;
  if (!codegen::endFlag(loop.node)) return exits;
  struct End {
    uint32_t block;
    std::vector<ExprRef> values;
  };
  exits.insert(codegen::loopCondition(loop.node));
  std::vector<End> ends = {{loop.second, codegen::loopNext(loop.node)}};
  while (!ends.empty()) {
    const End end = std::move(ends.back());
    ends.pop_back();
    const codegen::ScheduleBlock& block = schedule.blocks[end.block];
    const auto last = codegen::lastIf(block, end.values);
    if (!last) continue;
    const ScheduleStep& step = block.steps[*last];
    exits.insert(step.node);
    ends.push_back({step.first, codegen::endsOfBranch(step.node, true, end.values)});
    ends.push_back({step.second, codegen::endsOfBranch(step.node, false, end.values)});
  }
  return exits;
}

std::unordered_set<ExprRef> exitsOfLoops(const Schedule& schedule) {
  std::unordered_set<ExprRef> exits;
  for (const codegen::ScheduleBlock& block : schedule.blocks)
    for (const ScheduleStep& step : block.steps)
      if (step.node->kind == ExprKind::Loop) exits.merge(exitsOfLoop(schedule, step));
  return exits;
}

}  // namespace kelpie::fusion

#include "fusion/compiled_blocks.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "codegen/loop_exits.h"
#include "codegen/pending_calls.h"
#include "codegen/thunk_sample.h"

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

/// About how many instructions a step of 64 bits takes. What a segment has is loaded in front of all
/// branches.
int instructions(ExprRef e) {
  constexpr int kLoad = 3, kCheck = 5, kProduct = 4, kOperation = 2, kLong = 20;
  switch (e->kind) {
    case ExprKind::Load:
      return codegen::loadsOfSegment(e) ? 0 : kLoad;
    case ExprKind::Check:
      return kCheck;
    case ExprKind::Op:
      if (codegen::takesLong(e) || e->op == ScalarOp::Div || e->op == ScalarOp::Rem) return kLong;
      return e->op == ScalarOp::Mul ? kProduct : kOperation;
    case ExprKind::Call:
      return kLong;
    default:
      return kOperation;
  }
}

/// Whether values depend on nothing but these variables of a loop.
class CountedValues {
 public:
  CountedValues(ExprRef loop, const std::vector<bool>& counters) : loop_(loop), counters_(counters) {}
  bool contains(ExprRef e) {
    if (const auto it = known_.find(e); it != known_.end()) return it->second;
    const auto all = [&](const auto& operands) {
      return std::all_of(operands.begin(), operands.end(), [&](ExprRef x) { return contains(x); });
    };
    bool result = false;
    if (e->kind == ExprKind::Constant) {
      result = true;
    } else if (e->kind == ExprKind::LoopVar) {
      result = e->index == loop_->index && counters_[e->count];
    } else if (e->kind == ExprKind::Op || e->kind == ExprKind::Convert || e->kind == ExprKind::Check) {
      result = all(e->operands);
    } else if (e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::If) {
      const ExprRef choice = e->operands[0];
      result = all(std::vector<ExprRef>{choice->operands[0], codegen::thenValues(choice)[e->index],
                                        codegen::elseValues(choice)[e->index]});
    }
    return known_[e] = result;
  }

 private:
  ExprRef loop_;
  const std::vector<bool>& counters_;
  std::unordered_map<ExprRef, bool> known_;
};

/// Of a loop's variables those that begin with constants and go on from each other.
std::vector<bool> countersOf(ExprRef loop) {
  const std::vector<ExprRef> initial = codegen::loopInitial(loop), next = codegen::loopNext(loop);
  std::vector<bool> counters(initial.size());
  for (size_t k = 0; k < initial.size(); ++k) counters[k] = initial[k]->kind == ExprKind::Constant;
  for (bool changed = true; changed;) {
    changed = false;
    CountedValues counted(loop, counters);
    for (size_t k = 0; k < next.size(); ++k) {
      if (!counters[k] || counted.contains(next[k])) continue;
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
      CountedValues values(step.node, counters);
      if (!few || !values.contains(codegen::loopCondition(step.node))) continue;
      counted.insert(step.node);
      const std::function<void(uint32_t)> addInside = [&](uint32_t block) {
        for (const ScheduleStep& inside : schedule.blocks[block].steps) {
          if (values.contains(inside.node)) counted.insert(inside.node);
          for (const uint32_t nested : {inside.first, inside.second})
            if (nested != 0) addInside(nested);
        }
      };
      for (const uint32_t nested : {step.first, step.second}) addInside(nested);
    }
  }
  return counted;
}

std::vector<bool> predicatedBlocks(const Schedule& schedule) {
  // The assembler of CUDA 13 does so with up to this many, by the code of thirty kernels.
  constexpr int kShort = 17;
  const auto isShort = [&](uint32_t block) {
    const std::vector<ScheduleStep>& steps = schedule.blocks[block].steps;
    int count = 0, loads = 0;
    for (const ScheduleStep& step : steps) {
      count += instructions(step.node);
      loads += step.node->kind == ExprKind::Load && !codegen::loadsOfSegment(step.node);
    }
    return count <= kShort && loads <= 1 &&
           std::all_of(steps.begin(), steps.end(),
                       [](const ScheduleStep& step) { return step.first == 0 && step.second == 0; });
  };
  std::vector<bool> predicated(schedule.blocks.size(), false);
  for (const codegen::ScheduleBlock& block : schedule.blocks) {
    for (const ScheduleStep& step : block.steps) {
      if (step.node->kind != ExprKind::If || (step.first == 0 && step.second == 0)) continue;
      const bool both =
          (step.first == 0 || isShort(step.first)) && (step.second == 0 || isShort(step.second));
      for (const uint32_t side : {step.first, step.second})
        if (side != 0) predicated[side] = both;
    }
  }
  return predicated;
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

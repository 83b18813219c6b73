#include "fusion/compiled_blocks.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "codegen/float_division.h"
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

bool isDividedByPowerOfTwo(ExprRef e) {
  const ExprRef divisor = e->operands[1];
  if (isFloat(e->type)) return codegen::isPowerOfTwo(divisor);
  return divisor->kind == ExprKind::Constant &&
         std::has_single_bit(static_cast<uint64_t>(divisor->constant.i));
}

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
      if (e->op == ScalarOp::Div || e->op == ScalarOp::Rem)
        return isDividedByPowerOfTwo(e) ? kOperation : kLong;
      return codegen::takesLong(e) ? kLong : e->op == ScalarOp::Mul ? kProduct : kOperation;
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
    bool result = false;
    if (e->kind == ExprKind::Constant) {
      result = true;
    } else if (e->kind == ExprKind::LoopVar) {
      result = e->index == loop_->index && counters_[e->count];
    } else if (e->kind == ExprKind::Op || e->kind == ExprKind::Convert || e->kind == ExprKind::Check) {
      result = std::all_of(e->operands.begin(), e->operands.end(), [&](ExprRef x) { return contains(x); });
    } else if (e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::If) {
      const ExprRef choice = e->operands[0];
      const size_t values = (choice->operands.size() - 1) / 2;
      result = contains(choice->operands[0]) && contains(choice->operands[1 + e->index]) &&
               contains(choice->operands[1 + values + e->index]);
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

double changedWords(ExprRef loop) {
  constexpr double kWord = 4;
  const std::vector<ExprRef> next = codegen::loopNext(loop);
  double words = 0;
  for (uint32_t k = 0; k < next.size(); ++k) {
    const bool unchanged =
        next[k]->kind == ExprKind::LoopVar && next[k]->index == loop->index && next[k]->count == k;
    if (!unchanged && next[k]->type != ScalarType::Bool)
      words += std::max(1.0, static_cast<double>(sizeOf(next[k]->type)) / kWord);
  }
  return words;
}

std::vector<bool> blocksBehindBranches(const Schedule& schedule) {
  // The assembler of CUDA 13 does so with up to this many, by the code of thirty kernels.
  constexpr int kShort = 17;
  const auto isEmpty = [&](uint32_t block) { return block == 0 || schedule.blocks[block].steps.empty(); };
  const auto isShort = [&](uint32_t block) {
    const std::vector<ScheduleStep>& steps = schedule.blocks[block].steps;
    int count = 0, loads = 0;
    for (const ScheduleStep& step : steps) {
      count += instructions(step.node);
      loads += step.node->kind == ExprKind::Load && !codegen::loadsOfSegment(step.node);
    }
    return count <= kShort && loads <= 1 &&
           std::all_of(steps.begin(), steps.end(),
                       [&](const ScheduleStep& step) { return isEmpty(step.first) && isEmpty(step.second); });
  };
  std::vector<bool> behind(schedule.blocks.size(), false);
  for (size_t b = 0; b < schedule.blocks.size(); ++b) {  // blocks come after those they are in
    for (const ScheduleStep& step : schedule.blocks[b].steps) {
      if (step.first == 0) continue;
      const bool predicated = step.node->kind == ExprKind::If && isShort(step.first) && isShort(step.second);
      for (const uint32_t nested : {step.first, step.second})
        if (nested != 0) behind[nested] = behind[b] || !predicated;
    }
  }
  return behind;
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

void markVariables(ExprRef loop, std::vector<bool>& variables, const std::function<bool(ExprRef)>& has) {
  const std::vector<ExprRef> next = codegen::loopNext(loop);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = 0; k < next.size(); ++k)
      if (!variables[k] && has(next[k])) variables[k] = changed = true;
  }
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

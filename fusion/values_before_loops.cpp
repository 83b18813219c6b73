#include "fusion/values_before_loops.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"
#include "codegen/loop_exits.h"
#include "fusion/sizes.h"
#include "ir/failures.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;

namespace {

constexpr size_t kMostValues = 6;  ///< of a loop that it does not change: each takes a register or two

/// An If whose one branch is evaluated in turns that go on.
struct Choice {
  ExprRef node;
  bool then;

  std::vector<ExprRef> values() const { return then ? codegen::thenValues(node) : codegen::elseValues(node); }
  std::vector<ExprRef> others() const { return then ? codegen::elseValues(node) : codegen::thenValues(node); }
};

/// What is evaluated in every turn that goes on.
struct Turn {
  ExprRef condition = nullptr;  ///< of the first turn; null: there is one
  std::vector<Choice> choices;  ///< none: the loop ends between turns
  std::vector<ExprRef> values;  ///< of all choices; the next values, if there is none
};

class LoopChanger {
 public:
  LoopChanger(Soac& soac, lcu::ExprArena& arena) : soac_(soac), arena_(arena) {
    for (ExprRef root : codegen::eagerThunks(soac)) evaluated_.add(root);
  }

  /// Whether anything changed.
  bool changeOne() {
    std::vector<ExprRef> loops;
    lcu::forEachNode(codegen::thunksOf(soac_), [&](ExprRef e) {
      if (e->kind == ExprKind::Loop) loops.push_back(e);
    });
    std::sort(loops.begin(), loops.end(), [](ExprRef a, ExprRef b) { return a->id < b->id; });  // inner first
    return std::any_of(loops.begin(), loops.end(), [&](ExprRef loop) { return change(loop); });
  }

 private:
  bool change(ExprRef loop) {
    std::optional<Turn> turn = turnOf(loop);
    if (!turn) return false;
    std::vector<ExprRef> values, variables;
    const size_t known = unchangedVariables(loop);
    for (ExprRef e : candidates(loop, turn->values)) {
      if (known + values.size() >= kMostValues) break;
      if (!occurs(e, turn->values)) continue;  // inside of another one alone
      values.push_back(e);
      variables.push_back(
          arena_.loopVar(loop->index, loop->count + static_cast<uint32_t>(variables.size()), e->type));
      const auto replace = [&](ExprRef x) { return x == e ? variables.back() : nullptr; };
      turn->values = arena_.rewrite(turn->values, replace);
    }
    if (values.empty() || changesOrder(loop)) return false;
    std::vector<ExprRef> initial = codegen::loopInitial(loop), next = nextOf(loop, *turn);
    if (turn->condition) {
      std::vector<ExprRef> zeros;
      for (ExprRef e : values) zeros.push_back(arena_.constant(Scalar::zero(e->type)));
      values = arena_.select(turn->condition, std::move(values), std::move(zeros));
    }
    initial.insert(initial.end(), values.begin(), values.end());
    next.insert(next.end(), variables.begin(), variables.end());
    const std::vector<ExprRef> changed =
        arena_.loop(loop->index, initial, codegen::loopCondition(loop), next);
    changeExpressions(soac_, [&](ExprRef thunk) {
      return arena_.rewrite(thunk, [&](ExprRef e) -> ExprRef {
        return e->kind == ExprKind::Project && e->operands[0] == loop ? changed[e->index] : nullptr;
      });
    });
    return true;
  }

  /// None: what decides about a turn takes long itself, or too many things do.
  std::optional<Turn> turnOf(ExprRef loop) {
    Turn turn;
    ExprRef decides = codegen::loopCondition(loop);
    if (const auto flag = codegen::endFlag(loop)) {
      const auto choice = choiceOf(codegen::loopNext(loop)[*flag]);
      if (!choice) return std::nullopt;
      decides = choice->second ? choice->first : arena_.negation(choice->first);
      addChoices(turn, loop, *choice);
    } else {
      turn.values = codegen::loopNext(loop);
    }
    if (decides->canFail ||
        lcu::anyNode({decides}, [](ExprRef e) { return lcu::isUnbounded(e) || codegen::takesLong(e); }))
      return std::nullopt;
    const std::vector<ExprRef> initial = codegen::loopInitial(loop);
    turn.condition = arena_.rewrite(
        decides, [&](ExprRef e) -> ExprRef { return isVariableOf(e, loop) ? initial[e->count] : nullptr; });
    if (turn.condition->kind == ExprKind::Constant) {
      if (!turn.condition->constant.isTrue()) return std::nullopt;
      turn.condition = nullptr;
    }
    return turn;
  }

  /// The condition that the next value of a flag follows, and what it is where the loop goes on.
  static std::optional<std::pair<ExprRef, bool>> choiceOf(ExprRef flag) {
    if (flag->kind != ExprKind::Project) return std::pair(flag, false);
    const ExprRef node = flag->operands[0];
    if (node->kind != ExprKind::If) return std::nullopt;
    const auto isEnd = [](ExprRef e) { return e->kind == ExprKind::Constant && e->constant.isTrue(); };
    const bool endsThen = isEnd(codegen::thenValues(node)[flag->index]);
    if (endsThen == isEnd(codegen::elseValues(node)[flag->index])) return std::nullopt;
    return std::pair(node->operands[0], !endsThen);
  }
  static void addChoices(Turn& turn, ExprRef loop, const std::pair<ExprRef, bool>& choice) {
    for (ExprRef next : codegen::loopNext(loop)) {
      if (next->kind != ExprKind::Project || next->operands[0]->kind != ExprKind::If) continue;
      const ExprRef node = next->operands[0];
      if (node->operands[0] != choice.first || std::any_of(turn.choices.begin(), turn.choices.end(),
                                                           [&](const Choice& c) { return c.node == node; }))
        continue;
      turn.choices.push_back({node, choice.second});
      for (ExprRef e : turn.choices.back().values()) turn.values.push_back(e);
    }
  }

  /// Whether a check behind the loop, or behind what it is part of, would be made before it: what is built
  /// anew has the latest ids, by which schedules go, and of two errors the first one is told.
  bool changesOrder(ExprRef loop) const {
    std::vector<ExprRef> nodes;
    lcu::forEachNode(codegen::thunksOf(soac_), [&](ExprRef e) { nodes.push_back(e); });
    std::sort(nodes.begin(), nodes.end(), lcu::comesBefore);
    std::unordered_set<ExprRef> anew{loop};
    bool behind = false;  // something that is built anew and makes checks
    for (ExprRef e : nodes) {
      const bool isAnew = anew.contains(e) || std::any_of(e->operands.begin(), e->operands.end(),
                                                          [&](ExprRef x) { return anew.contains(x); });
      if (isAnew) anew.insert(e);
      if (behind && !isAnew && e->kind == ExprKind::Check) return true;
      behind |= isAnew && e->canFail;
    }
    return false;
  }

  static size_t unchangedVariables(ExprRef loop) {
    const std::vector<ExprRef> next = codegen::loopNext(loop);
    size_t count = 0;
    for (size_t k = 0; k < next.size(); ++k) count += isVariableOf(next[k], loop) && next[k]->count == k;
    return count;
  }

  static bool isVariableOf(ExprRef e, ExprRef loop) {
    return e->kind == ExprKind::LoopVar && e->index == loop->index;
  }

  /// The next values, with those of the turn.
  std::vector<ExprRef> nextOf(ExprRef loop, const Turn& turn) {
    if (turn.choices.empty()) return turn.values;
    std::vector<ExprRef> next = codegen::loopNext(loop);
    auto values = turn.values.begin();
    for (const Choice& choice : turn.choices) {
      const std::vector<ExprRef> others = choice.others();
      const std::vector<ExprRef> own(values, values + static_cast<ptrdiff_t>(others.size()));
      values += static_cast<ptrdiff_t>(others.size());
      const std::vector<ExprRef> chosen =
          arena_.select(choice.node->operands[0], choice.then ? own : others, choice.then ? others : own);
      for (ExprRef& e : next)
        if (e->kind == ExprKind::Project && e->operands[0] == choice.node) e = chosen[e->index];
    }
    return next;
  }

  static bool occurs(ExprRef e, const std::vector<ExprRef>& in) {
    return lcu::anyNode(in, [&](ExprRef x) { return x == e; });
  }

  /// What every such turn evaluates alike, and takes long, and is not there anyway; outer ones first.
  std::vector<ExprRef> candidates(ExprRef loop, const std::vector<ExprRef>& values) const {
    lcu::Evaluated inTurn;
    for (ExprRef e : values) inTurn.add(e);
    std::vector<ExprRef> result, checks;
    std::unordered_set<uint32_t> inside{loop->index};  // it and loops in its turns
    lcu::forEachNode(values, [&](ExprRef e) {
      if (e->kind == ExprKind::Check && !evaluated_.contains(e)) checks.push_back(e);
      if (e->kind == ExprKind::Loop || e->kind == ExprKind::Recursion) inside.insert(e->index);
    });
    lcu::forEachNode(values, [&](ExprRef e) {
      if (inTurn.contains(e) && !evaluated_.contains(e) && isWork(e) && isSound(e, checks) &&
          !dependsOn(e, inside))
        result.push_back(e);
    });
    std::sort(result.begin(), result.end(), [](ExprRef a, ExprRef b) { return a->id > b->id; });
    return result;
  }

  /// Whether a value has variables or calls of `loops` that are not its own.
  static bool dependsOn(ExprRef e, const std::unordered_set<uint32_t>& loops) {
    std::unordered_set<uint32_t> own, used;
    lcu::forEachNode({e}, [&](ExprRef x) {
      if (x->kind == ExprKind::Loop || x->kind == ExprKind::Recursion) own.insert(x->index);
      if (x->kind == ExprKind::LoopVar || x->kind == ExprKind::Call) used.insert(x->index);
    });
    return std::any_of(used.begin(), used.end(),
                       [&](uint32_t id) { return loops.contains(id) && !own.contains(id); });
  }

  /// What is long, but which the schedule does not compute before the loop.
  static bool isWork(ExprRef e) {
    if (e->kind == ExprKind::Project)
      return e->operands[0]->kind != ExprKind::Call &&
             lcu::anyNode({e}, [](ExprRef x) { return lcu::isUnbounded(x) || codegen::takesLong(x); });
    return codegen::takesLong(e) && lcu::anyNode({e}, [](ExprRef x) {
             return x->kind == ExprKind::Load || x->kind == ExprKind::Project;
           });
  }

  /// Makes no check in front of another one that comes before it in a turn, of `checks`, those that are not
  /// made anyway: schedules go by that order. Nor is a loop in it, which may not end, gone through where that
  /// check fails.
  static bool isSound(ExprRef e, const std::vector<ExprRef>& checks) {
    if (!e->canFail && !lcu::anyNode({e}, lcu::isUnbounded)) return true;
    std::unordered_set<ExprRef> own;
    ExprRef last = nullptr;
    bool recursive = false;
    lcu::forEachNode({e}, [&](ExprRef x) {
      recursive |= x->kind == ExprKind::Recursion;
      const bool check = std::find(checks.begin(), checks.end(), x) != checks.end();
      if (!check && x->kind != ExprKind::Loop) return;
      if (check) own.insert(x);
      if (!last || lcu::comesBefore(last, x)) last = x;
    });
    return !recursive && (!last || std::none_of(checks.begin(), checks.end(), [&](ExprRef other) {
      return lcu::comesBefore(other, last) && !own.contains(other);
    }));
  }

  Soac& soac_;
  lcu::ExprArena& arena_;
  lcu::Evaluated evaluated_;  ///< for each element
};

}  // namespace

void computeBeforeLoops(lcu::Kernel& kernel, lcu::ExprArena& arena) {
  constexpr int kMostRounds = 100;
  for (Soac& soac : kernel.bindings)
    for (int round = 0; round < kMostRounds && LoopChanger(soac, arena).changeOne(); ++round) {
    }
}

}  // namespace kelpie::fusion

#include "fusion/implied_checks.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"
#include "fusion/known_bounds.h"
#include "fusion/loop_bounds.h"
#include "ir/failures.h"

namespace kelpie::fusion {

using codegen::Schedule;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;

namespace {

/// What may be looked at for the bounds of loops of a kernel; and for a question, once that for all of a form
/// (kMostForImpliedChecks) has been used up.
constexpr int64_t kMostOfLoops = 1000000;
constexpr int kMostBeyond = 100;

class Decisions {
 public:
  /// `left`: what may be looked at for the bounds of loops; `leftOfAll`: for anything.
  Decisions(lcu::ExprArena& arena, int64_t& left, int64_t& leftOfAll)
      : arena_(arena), left_(left), leftOfAll_(leftOfAll) {}

  /// Of thunks over a space that are evaluated together; `where` holds for their elements, or is null. All of
  /// a kernel are asked about, also those that cannot fail: what is decided in one is replaced in all.
  void find(const std::vector<ExprRef>& roots, const Soac& soac, ExprRef where) {
    bounds_ = {};
    if (soac.kind != lcu::SoacKind::Once) learnSpace(soac.space);
    if (where) bounds_.learn(where, true);
    const Schedule schedule = codegen::scheduleExpressions(roots);
    block(schedule, 0);
    leftOfAll_ -= bounds_.spent();
  }

  bool any() const {
    return std::any_of(found_.begin(), found_.end(),
                       [](const auto& d) { return d.second != Decision::None; });
  }

  /// What takes the place of a node; null: nothing does.
  ExprRef replacement(ExprRef e) const {
    if (e->kind == ExprKind::Check) return decided(e) == Decision::True ? e->operands[1] : nullptr;
    if (e->kind != ExprKind::Project || e->operands[0]->kind != ExprKind::If) return nullptr;
    const ExprRef conditional = e->operands[0];
    switch (decided(conditional)) {
      case Decision::True:
        return conditional->operands[1 + e->index];
      case Decision::False:
        return conditional->operands[1 + e->index + valueCount(conditional)];
      default:
        return nullptr;
    }
  }

 private:
  enum class Decision : uint8_t { None, True, False };

  Decision decided(ExprRef e) const {
    const auto found = found_.find(e);
    return found == found_.end() ? Decision::None : found->second;
  }

  void learnSpace(const lcu::Space& space) {
    const auto number = [&](uint32_t parameter, ExprRef below) {
      const ExprRef number = arena_.param(parameter);
      bounds_.learn({nullptr, number, 0});
      if (!below) return;
      bounds_.learn({below, arena_.index(int64_t{1} << lcu::kLengthBits), -1});
      bounds_.learn({number, below, -1});
    };
    number(0, space.extent);
    if (!space.segmented()) return;
    number(1, space.segments);
    number(2, space.length);
  }

  void block(const Schedule& schedule, uint32_t number) {
    for (const codegen::ScheduleStep& step : schedule.blocks[number].steps) {
      const ExprRef node = step.node;
      if (bounds_.spent() > leftOfAll_) bounds_.allow(kMostBeyond);
      if (node->kind == ExprKind::Check)
        note(node, bounds_.implies(node->operands[0], true) && losesNoCheck(node) ? Decision::True
                                                                                  : Decision::None);
      if (node->kind == ExprKind::If) {
        const ExprRef condition = node->operands[0];
        note(node, isFree(node) && !hasEffects(node) ? decisionOf(condition) : Decision::None);
        under(schedule, step.first, condition, true);
        under(schedule, step.second, condition, false);
      } else if (node->kind == ExprKind::Loop) {
        const KnownBounds::Mark before = bounds_.mark();
        const bool outer = std::exchange(inLoop_, true);
        if (node->canFail && left_ > 0) learnLoop(node);
        if (step.first != 0) block(schedule, step.first);
        under(schedule, step.second, codegen::loopCondition(node), true);
        inLoop_ = outer;
        bounds_.forget(before);
      } else if (step.first != 0) {  // of a recursion
        const bool outer = std::exchange(inLoop_, true);
        block(schedule, step.first);
        inLoop_ = outer;
      }
    }
  }

  void learnLoop(ExprRef loop) {
    const int64_t before = bounds_.spent();
    for (const KnownBounds::Difference& bound : boundsOfLoop(bounds_, loop, arena_)) bounds_.learn(bound);
    left_ -= bounds_.spent() - before;
  }

  void under(const Schedule& schedule, uint32_t number, ExprRef condition, bool holds) {
    if (number == 0) return;
    const KnownBounds::Mark before = bounds_.mark();
    bounds_.learn(condition, holds);
    block(schedule, number);
    bounds_.forget(before);
  }

  /// Whether the value makes all checks that the condition, and what is told of an error, makes.
  static bool losesNoCheck(ExprRef check) {
    const auto& of = check->operands;
    return lcu::failuresIn({of[0], of[3], of[4]}, {of[1]}).empty();
  }
  /// Whether a choice is made for its values alone: not for checks in its condition, nor to have something
  /// evaluated in front of it, as calls that branches share (flatten/linear_recursion.h).
  static bool isFree(ExprRef choice) {
    const auto values = choice->operands.begin() + 1;
    const auto count = static_cast<ptrdiff_t>(valueCount(choice));
    return !choice->operands[0]->canFail && !std::equal(values, values + count, values + count);
  }

  /// Whether something in its branches may not end or, in a loop, fail: without the choice around it, it
  /// would stand among the others of a body, or where something else needs it under a condition, and not all
  /// that is behind it in a program has a later place there.
  bool hasEffects(ExprRef choice) const {
    return lcu::anyNode({choice->operands.begin() + 1, choice->operands.end()}, [&](ExprRef e) {
      return (inLoop_ && e->kind == ExprKind::Check) || lcu::isUnbounded(e);
    });
  }

  Decision decisionOf(ExprRef condition) {
    if (bounds_.implies(condition, true)) return Decision::True;
    return bounds_.implies(condition, false) ? Decision::False : Decision::None;
  }

  void note(ExprRef node, Decision here) {
    const auto [found, fresh] = found_.emplace(node, here);
    if (!fresh && found->second != here) found->second = Decision::None;
  }

  lcu::ExprArena& arena_;
  int64_t &left_, &leftOfAll_;
  KnownBounds bounds_;
  bool inLoop_ = false;
  std::unordered_map<ExprRef, Decision> found_;  ///< Checks and Ifs
};

bool canFail(const lcu::Kernel& kernel) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(), [](const Soac& soac) {
    const std::vector<ExprRef> thunks = codegen::thunksOf(soac);
    return std::any_of(thunks.begin(), thunks.end(), [](ExprRef e) { return e->canFail; });
  });
}

}  // namespace

void dropImpliedChecks(lcu::Kernel& kernel, lcu::ExprArena& arena, int64_t& leftOfAll) {
  constexpr int kMostRounds = 8;  // what has gone may decide more
  int64_t left = kMostOfLoops;
  for (int round = 0; round < kMostRounds && canFail(kernel); ++round) {
    Decisions decisions(arena, left, leftOfAll);
    for (const Soac& soac : kernel.bindings) {
      decisions.find(codegen::eagerThunks(soac), soac, nullptr);
      decisions.find(codegen::lateThunks(soac), soac, soac.where);
    }
    if (!decisions.any()) break;
    const auto change = [&](ExprRef& thunk) {
      if (thunk)
        thunk = arena.rewriteInOrderInside(thunk, [&](ExprRef e) { return decisions.replacement(e); });
    };
    for (Soac& soac : kernel.bindings) {  // not operators, whose parameters are others
      for (ExprRef& thunk : soac.pull) change(thunk);
      for (ExprRef& thunk : soac.effects) change(thunk);
      change(soac.where);
      change(soac.destination);
    }
  }
  for (Soac& soac : kernel.bindings) {
    if (soac.results.empty()) continue;  // no binding has nothing
    // What may take long stays: it is computed once for each element, and not where branches and loops need
    // it.
    std::erase_if(soac.effects, [](ExprRef e) {
      return !e->canFail &&
             !lcu::anyNode({e}, [](ExprRef x) { return lcu::isUnbounded(x) || codegen::takesLong(x); });
    });
  }
}

}  // namespace kelpie::fusion

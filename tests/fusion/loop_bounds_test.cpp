#include "fusion/loop_bounds.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"
#include "tests/fusion/random_numbers.h"
#include "tests/fusion/read_program.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprArena;
using lcu::ExprKind;
using lcu::ExprRef;

/// Where variables of the loops of a map over n elements lie after markLoopVariables: as "k2:4" for those of
/// so many bits. xs has n integers, m is a length.
std::string marked(const std::string& thunk) {
  lcu::Program program =
      read("site @1 = \"index\" 1:1..2\nfunction f(n: int64, xs: [int64; n], m: int64) {\n" +
           std::string("  kernel k {\n    let r: [int64; n] = MAP flat n { i => ") + thunk +
           " }\n    return r\n  }\n}\nentry main: () {\n}\n");
  if (program.functions.empty()) return "";
  lcu::Kernel& kernel = std::get<lcu::Launch>(program.functions[0].body.stmts.at(0).node).kernel;
  markLoopVariables(kernel, *program.arena);
  std::string result;
  std::vector<ExprRef> loops;
  lcu::forEachNode(codegen::thunksOf(kernel.bindings.at(0)), [&](ExprRef e) {
    if (e->kind == ExprKind::Loop) loops.push_back(e);
  });
  for (ExprRef loop : loops) {
    for (uint32_t k = 0; k < loop->count; ++k) {
      if (loop->operands[k]->type != lcu::kIndex) continue;
      const ExprRef variable = program.arena->loopVar(loop->index, k, lcu::kIndex);
      if (variable->nonNegative)
        result += "k" + std::to_string(k + 1) + ":" + std::to_string(variable->bits) + " ";
    }
  }
  return result;
}

TEST(LoopBounds, Counters) {
  EXPECT_EQ(marked("let (t1, t2) = loop (k1 = 0, k2 = 1) { while k1 < 10 next k1 + 1, k2 * 2 } in t2"),
            "k1:4 ");
  EXPECT_EQ(marked("let (t1, t2) = loop (k1 = 0, k2 = 1) { while k1 != 10 next k1 + 1, k2 * 2 } in t2"),
            "k1:4 ");
  EXPECT_EQ(marked("let (t1, t2) = loop (k1 = 9, k2 = 1) { while k1 > 0 next k1 - 1, k2 * 2 } in t2"),
            "k1:4 ");
  EXPECT_EQ(
      marked("let (t1, t2) = loop (k1 = xs[i] and 1023, k2 = 1) { while k1 != 0 next k1 - 1, k2 * 2 } in t2"),
      "k1:10 ");
}

/// By a check that ends the loop; by a flag, in a branch of its body.
TEST(LoopBounds, EndsInTheBody) {
  EXPECT_EQ(marked("let (t1, t2) = loop (k1 = 0, k2 = xs[i]) { while k2 != 0 next check(k1 < 4194304, k1 + "
                   "1, 0, @1, 0, "
                   "0), k2 and k2 - 1 } in t1"),
            "k1:23 ");
  EXPECT_EQ(
      marked("let (t1, t2, t3) = loop (k1 = false, k2 = 0, k3 = xs[i]) { let (t4, t5, t6) = if k2 == 12 then "
             "(true, k2, k3) else (let (t7, t8) = if k3 < 0 then (k2, 0 - k3) else (k2 + 1, k3 / 2) in "
             "false, t7, t8) in while not(k1) next t4, t5, t6 } in t3"),
      "k2:4 ");
}

/// What depends on an outer loop; what is computed of counters in turns.
TEST(LoopBounds, LoopsInLoops) {
  EXPECT_EQ(
      marked("let (t1, t2) = loop (k1 = 5, k2 = 0) { let (t3, t4) = loop (k3 = k1, k4 = k2) { while k3 < 100 "
             "next k3 + 1, k4 + k3 } in while k1 > 0 next k1 - 1, t4 } in t2"),
      "k1:7 k1:3 ");
}

TEST(LoopBounds, WhatIsNotKnown) {
  // No end that is a constant; a step that passes it by; a start that may lie behind it; one that wraps.
  EXPECT_EQ(marked("let (t1, t2) = loop (k1 = 0, k2 = 1) { while k1 < xs[i] next k1 + 1, k2 * 2 } in t2"),
            "k1:63 ");
  EXPECT_EQ(marked("let (t1, t2) = loop (k1 = 0, k2 = 1) { while k1 != 9 next k1 + 2, k2 * 2 } in t2"), "");
  EXPECT_EQ(marked("let (t1, t2) = loop (k1 = xs[i], k2 = 1) { while k1 != 9 next k1 + 1, k2 * 2 } in t2"),
            "");
  EXPECT_EQ(marked("let (t1, t2) = loop (k1 = 0, k2 = 1) { while k2 != 9 next k1 + 1, k2 * 2 } in t1"), "");
}

// ---- what is found holds in every turn ----

/// Loops of three variables with random starts, conditions and steps; the first ends them, if it comes to
/// that.
TEST(LoopBounds, WhatIsFoundHolds) {
  int found = 0, turns = 0;
  for (uint64_t round = 0; round < 3000; ++round) {
    ExprArena arena;
    const uint32_t loop = arena.newLoop();
    std::vector<ExprRef> parameters = {arena.param(0), arena.nonNegative(arena.param(1))},
                         variables = parameters;
    for (uint32_t k = 0; k < 3; ++k) variables.push_back(arena.loopVar(loop, k, lcu::kIndex));
    RandomNumbers outside(arena, parameters, round), inside(arena, variables, round + 1);
    std::vector<ExprRef> initial, next;
    for (uint32_t k = 0; k < 3; ++k) {
      initial.push_back(outside.number(1));
      const ExprRef variable = variables[2 + k];
      const ExprRef step = inside.below(3) != 0
                               ? arena.add(variable, arena.index(static_cast<int64_t>(inside.below(3)) - 1))
                               : inside.number(1);
      next.push_back(inside.below(2) != 0 ? step : arena.select(inside.condition(1), step, inside.number(1)));
      if (inside.below(4) == 0)
        next.back() = arena.check(inside.condition(0), next.back(), Scalar::ofInt(lcu::kIndex, 0), 0,
                                  arena.index(0), arena.index(0));
    }
    const ExprRef condition = inside.condition(1);
    const std::vector<ExprRef> values = arena.loop(loop, initial, condition, next);
    if (values[0]->kind != ExprKind::Project || values[0]->operands[0]->kind != ExprKind::Loop ||
        values[0]->operands[0]->index != loop || values[0]->operands[0]->count != 3)
      continue;
    KnownBounds known;
    const std::vector<KnownBounds::Difference> bounds = boundsOfLoop(known, values[0]->operands[0], arena);
    found += static_cast<int>(bounds.size());
    for (int start = 0; start < 8; ++start) {
      NumberValues now = outside.values();
      const auto step = [&](const std::vector<ExprRef>& to) {
        std::vector<Scalar> become;
        for (ExprRef e : to) become.push_back(evaluateNumber(e, now));
        for (uint32_t k = 0; k < 3; ++k) now[variables[2 + k]] = become[k];
      };
      step(initial);
      for (int turn = 0; turn < 40; ++turn) {
        for (const KnownBounds::Difference& bound : bounds) {
          const auto of = [&](ExprRef e) { return e ? static_cast<__int128>(evaluateNumber(e, now).i) : 0; };
          ASSERT_LE(of(bound.a) - of(bound.b), bound.most) << "round " << round << ", turn " << turn;
        }
        if (!evaluateNumber(condition, now).isTrue()) break;
        step(next);
        ++turns;
      }
    }
  }
  EXPECT_GT(found, 2000);
  EXPECT_GT(turns, 20000);
}

}  // namespace
}  // namespace kelpie::fusion

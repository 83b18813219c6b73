// How long elements wait for loads that come one after the other.
#include "fusion/load_waits.h"

#include <gtest/gtest.h>

#include <string>

#include "codegen/kernel_analysis.h"
#include "fusion/compiled_blocks.h"
#include "tests/fusion/read_program.h"

namespace kelpie::fusion {
namespace {

using codegen::Schedule;
using lcu::ExprKind;

struct Waited {
  double time;
  size_t awaited;  ///< loads that the next turn of a loop waits for
};

/// Of a map's thunk where each load takes 1, every branch is entered by some of 32 neighbours and loops turn
/// `turns` times; `predicates`: short branches are none.
Waited waitedBy(const std::string& thunk, double turns = 1, bool predicates = false) {
  const std::string text = R"(
global 1: ([int64]) = n: int64, xs: [int64; n]
global 2: ([int64]) = m: int64, ys: [int64; m]
global 3: ([int64]) = l: int64, zs: [int64; l]
entry main: (int64) {
  kernel k { let r: [int64; n] = MAP flat n { i => )" +
                           thunk + R"( } return r }
  let first: int64 = r[0]
  return first
})";
  const lcu::Program program = read(text);
  Waited waited{-1, 0};
  for (const lcu::Stmt& stmt : program.entry.body.stmts) {
    const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
    if (!launch) continue;
    const Schedule schedule = codegen::scheduleExpressions(codegen::eagerThunks(launch->kernel.bindings[0]));
    std::vector<bool> branches(schedule.blocks.size(), true);
    branches[0] = false;
    LoadWaits waits(schedule, predicates ? blocksBehindBranches(schedule) : branches);
    std::vector<double> inStep(schedule.blocks.size(), 1);
    std::vector<bool> inLoop(schedule.blocks.size(), false);
    for (size_t b = 0; b < schedule.blocks.size(); ++b) {
      for (const codegen::ScheduleStep& step : schedule.blocks[b].steps) {
        const bool choice = step.node->kind == ExprKind::If;
        for (const uint32_t nested : {step.first, step.second}) {
          if (nested == 0) continue;
          inStep[nested] = inStep[b] * (choice ? 1 : turns);
          inLoop[nested] = inLoop[b] || !choice;
        }
        if (step.node->kind == ExprKind::Load) waits.add(b, step.node, 1, inLoop[b]);
      }
    }
    waited = {waits.ofElement(inStep), awaitedInLoops(schedule).size()};
  }
  return waited;
}

constexpr double kTogether = 8;  // elements that are loaded for at once where nothing branches

TEST(LoadWaits, WithoutBranchesElementsLoadTogether) {
  EXPECT_DOUBLE_EQ(waitedBy("xs[i] + ys[i + 1]").time, 1 / kTogether);
  EXPECT_DOUBLE_EQ(waitedBy("ys[xs[i]]").time, 2 / kTogether);
}

TEST(LoadWaits, BranchesWaitForTheirConditions) {
  EXPECT_DOUBLE_EQ(waitedBy("if i > 5 then ys[i] else 0").time, 1);
  EXPECT_DOUBLE_EQ(waitedBy("if xs[i] > 5 then ys[i] else 0").time, 1 + 1 / kTogether);
  EXPECT_DOUBLE_EQ(waitedBy("if i > 5 then ys[i] + zs[i] else 0").time, 1);
  EXPECT_DOUBLE_EQ(waitedBy("if i > 5 then ys[zs[i]] else 0").time, 2);
}

/// Short sides without branches are computed on their condition, for several elements at once.
TEST(LoadWaits, ShortBranchesAreNone) {
  const auto wait = [](const std::string& thunk) { return waitedBy(thunk, 1, true).time; };
  EXPECT_DOUBLE_EQ(wait("if i > 5 then ys[i] else 0"), 1 / kTogether);
  EXPECT_DOUBLE_EQ(wait("if xs[i] > 5 then ys[i] else zs[i]"), 2 / kTogether);
  EXPECT_DOUBLE_EQ(wait("if i > 5 then ys[i] * 7 + i else 0"), 1 / kTogether);
  // Two loads, a branch, or much to compute.
  EXPECT_DOUBLE_EQ(wait("if i > 5 then ys[i] + zs[i] else 0"), 1);
  EXPECT_DOUBLE_EQ(wait("if i > 5 then if i > 7 then ys[i] else zs[i] else 0"), 1);
  EXPECT_DOUBLE_EQ(wait("if i > 5 then ys[i] * 7 * i * 9 + xor(i, 3) * 11 else 0"), 1);
  EXPECT_DOUBLE_EQ(wait("if i > 5 then ys[i] % 10 else 0"), 1);
  EXPECT_DOUBLE_EQ(wait("if i > 5 then ys[i] % 8 + (if i > 7 then 3 else 4) else 0"), 1 / kTogether);
}

/// Lanes of the one side do not wait for the other.
TEST(LoadWaits, SidesOfABranchLoadTogether) {
  EXPECT_DOUBLE_EQ(waitedBy("if i > 5 then ys[i] else zs[i]").time, 1);
  // What both sides need is loaded in front of the branch: ys at once, zs once the first side is not taken.
  EXPECT_DOUBLE_EQ(
      waitedBy("if i < xs[i] then ys[i] else if i < ys[i] then zs[i] else if i < zs[i] then xs[i + 1] else 7")
          .time,
      2 + 1 / kTogether);
}

/// What lies behind a branch and needs its value waits for all of it.
TEST(LoadWaits, BranchesOneAfterTheOther) {
  EXPECT_DOUBLE_EQ(
      waitedBy("let a = if i > 5 then ys[i] else 0; b = if i > 7 then zs[i] else 0 in a + b").time, 1);
  EXPECT_DOUBLE_EQ(waitedBy("let a = if i > 5 then ys[i] else 0 in if a > 7 then zs[i] else 0").time, 2);
}

/// What is loaded before all else adds to what then comes, once.
TEST(LoadWaits, LoadsInFrontOfAllBranches) {
  const Schedule nothing = codegen::scheduleExpressions({});
  LoadWaits waits(nothing, {false});
  waits.addBefore(3);
  waits.addBefore(2);
  EXPECT_DOUBLE_EQ(waits.ofElement({1}), 3);
}

constexpr const char* kSum = "let (a, b) = loop (k = 0, s = 0) { while k < m next k + 1, s + ys[k] } in b";
constexpr const char* kSearch =
    "let (a, b) = loop (lo = 0, hi = m) { while hi - lo > 1 next "
    "(let mid = (lo + hi) / 2 in if ys[mid] <= i then mid else lo), "
    "(let mid = (lo + hi) / 2 in if ys[mid] <= i then hi else mid) } in a";
constexpr const char* kUntil = "let (a, b) = loop (k = 0, s = 1) { while s > 0 next k + 1, ys[k] } in a";
constexpr const char* kChain = "let (a, b) = loop (k = 0, p = i) { while k < 9 next k + 1, ys[p] } in b";

/// Compilers load for a few turns at once if no turn depends on what another loads.
TEST(LoadWaits, TurnsThatDoNotWaitForEachOther) {
  EXPECT_EQ(waitedBy(kSum).awaited, 0u);
  EXPECT_DOUBLE_EQ(waitedBy(kSum, 12).time, 12 / 4.0);
}

TEST(LoadWaits, TurnsThatDo) {
  EXPECT_EQ(waitedBy(kSearch).awaited, 1u);
  EXPECT_DOUBLE_EQ(waitedBy(kSearch, 12).time, 12);
  EXPECT_EQ(waitedBy(kChain).awaited, 1u);
  EXPECT_DOUBLE_EQ(waitedBy(kChain, 9).time, 9);
  EXPECT_EQ(waitedBy(kUntil).awaited, 1u);  // whether there is a next turn
  EXPECT_DOUBLE_EQ(waitedBy(kUntil, 5).time, 5);
}

/// Whether an inner loop ends may depend on what the outer one loads; the outer one goes on without.
TEST(LoadWaits, LoopsInLoops) {
  const char* const both =
      "let (a, b) = loop (k = 0, s = 0) { while k < m next k + 1, "
      "s + (let x = ys[k]; (stop, c) = loop (e = false, q = 0) { while not(e) next "
      "(let (t1, t2) = if q == x then (true, q) else (false, q + 1) in t1), "
      "(let (t1, t2) = if q == x then (true, q) else (false, q + 1) in t2) } in c) } in b";
  EXPECT_EQ(waitedBy(both).awaited, 0u);
}

}  // namespace
}  // namespace kelpie::fusion

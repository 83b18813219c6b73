#include "runtime/interp/lock_step.h"

#include <gtest/gtest.h>

namespace kelpie::runtime {
namespace {

using codegen::Schedule;
using lcu::ExprArena;
using lcu::ExprRef;

/// How often `paths` enter the blocks of `schedule` together.
std::vector<double> together(const Schedule& schedule, const std::vector<LockStep::Path>& paths) {
  std::vector<const LockStep::Path*> pointers;
  for (const LockStep::Path& path : paths) pointers.push_back(&path);
  const auto together = LockStep(schedule).of(pointers);
  return together ? together->entered : std::vector<double>();
}

TEST(LockStep, BranchesAreTakenIfOneTakesThem) {
  ExprArena a;
  const ExprRef i = a.param(0);
  const ExprRef odd = a.op(ScalarOp::Equal, a.op(ScalarOp::And, i, a.index(1)), a.index(1));
  const Schedule s = codegen::scheduleExpressions({a.select(odd, a.mul(i, i), a.add(i, a.index(3)))});
  ASSERT_EQ(s.blocks.size(), 3u);
  EXPECT_EQ(together(s, {{1}, {1}, {1}}), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(together(s, {{1}, {2}, {2}}), (std::vector<double>{1, 1, 1}));
}

/// for (j = i; j != 0; --j) for (k = j; k != 0; --k) sum += k;
TEST(LockStep, InnerLoopsBeginAnewInEveryTurn) {
  ExprArena a;
  const uint32_t outer = a.newLoop(), inner = a.newLoop();
  const ExprRef j = a.loopVar(outer, 0, lcu::kIndex), sum = a.loopVar(outer, 1, lcu::kIndex);
  const ExprRef k = a.loopVar(inner, 0, lcu::kIndex), part = a.loopVar(inner, 1, lcu::kIndex);
  const auto notZero = [&](ExprRef e) { return a.op(ScalarOp::NotEqual, e, a.index(0)); };
  const ExprRef folded = a.loop(inner, {j, sum}, notZero(k), {a.sub(k, a.index(1)), a.add(part, k)})[1];
  const ExprRef result =
      a.loop(outer, {a.param(0), a.index(0)}, notZero(j), {a.sub(j, a.index(1)), folded})[1];
  const Schedule s = codegen::scheduleExpressions({result});
  ASSERT_EQ(s.blocks.size(), 5u);
  // Blocks: 1 and 2 test and repeat the outer loop, 3 and 4 the inner one.
  const auto path = [](const std::vector<int>& turns) {
    LockStep::Path p;
    for (const int t : turns) {
      p.insert(p.end(), {1, 2});
      for (int turn = 0; turn < t; ++turn) p.insert(p.end(), {3, 4});
      p.push_back(3);
    }
    p.push_back(1);
    return p;
  };
  EXPECT_EQ(together(s, {path({1, 9}), path({9, 1})}), (std::vector<double>{1, 3, 2, 20, 18}));
  EXPECT_EQ(together(s, {path({1, 9, 2}), path({9, 1})}), (std::vector<double>{1, 4, 3, 23, 20}));
}

/// f(i) = i < 2 ? i : f(i - 1) + 1
TEST(LockStep, RecursionsGoAsDeepAsTheDeepest) {
  ExprArena a;
  const uint32_t f = a.newLoop();
  const ExprRef i = a.loopVar(f, 0, lcu::kIndex);
  const ExprRef deeper = a.add(a.call(f, {a.sub(i, a.index(1))}, {lcu::kIndex})[0], a.index(1));
  const ExprRef results = a.select(a.op(ScalarOp::Less, i, a.index(2)), i, deeper);
  const Schedule s = codegen::scheduleExpressions({a.recursion(f, 0, {a.param(0)}, {results})[0]});
  ASSERT_EQ(s.blocks.size(), 4u);  // 1: the results, 3: what is deeper; 2 has no steps
  EXPECT_EQ(together(s, {{1}, {1, 3, 1, 3, 1}, {1, 3, 1}}), (std::vector<double>{1, 3, 0, 2}));
}

/// (i % 2 == 0 ? p / i : p) % i
TEST(LockStep, DivisionsTakeLongIfThoseOfOneDo) {
  ExprArena a;
  const ExprRef i = a.param(0), p = a.param(1);
  const ExprRef even = a.op(ScalarOp::Equal, a.op(ScalarOp::And, i, a.index(1)), a.index(0));
  const Schedule s =
      codegen::scheduleExpressions({a.op(ScalarOp::Rem, a.select(even, a.op(ScalarOp::Div, p, i), p), i)});
  ASSERT_EQ(s.blocks.size(), 3u);
  // Divisions are numbered by block: the remainder, of block 0, comes first, though it is done last.
  const uint32_t remainder = 3, quotient = 4;
  const std::vector<LockStep::Path> paths = {{1, quotient, remainder}, {1}, {}};
  std::vector<const LockStep::Path*> pointers;
  for (const LockStep::Path& path : paths) pointers.push_back(&path);
  const auto together = LockStep(s).of(pointers);
  ASSERT_TRUE(together);
  ASSERT_EQ(together->divisions.size(), 2u);
  const auto expect = [&](size_t k, double number, double ofLong, double ofShort) {
    EXPECT_EQ(together->divisions[k].number, number);
    EXPECT_EQ(together->divisions[k].ofLong, ofLong);
    EXPECT_EQ(together->divisions[k].ofShort, ofShort);
  };
  expect(0, 1, 1, 1);
  expect(1, 1, 1, 1);
  const LockStep::Path all = {1, quotient};
  const auto alike = LockStep(s).of(std::vector<const LockStep::Path*>{&all, &all});
  ASSERT_TRUE(alike);
  EXPECT_EQ(alike->divisions[1].ofShort, 0);
  EXPECT_EQ(alike->divisions[0].ofLong, 0);
}

/// f(i) = i < 2 ? i : f(i - 1) * f(i - 2) over frames: neighbours turn together wherever each is. The tree of
/// f(3) has 5 calls, of which one after another takes 9 turns: one goes on to a call or to the end of a
/// function. Neighbours that begin a turn later are at other depths.
TEST(LockStep, RecursionsOverFramesTurnTogether) {
  ExprArena a;
  const uint32_t f = a.newLoop();
  const ExprRef i = a.loopVar(f, 0, lcu::kIndex);
  const auto call = [&](int64_t less) { return a.call(f, {a.sub(i, a.index(less))}, {lcu::kIndex})[0]; };
  const ExprRef product = a.sub(call(1), call(2));
  const ExprRef result = a.select(a.op(ScalarOp::Less, i, a.index(2)), i, product);
  const Schedule s = codegen::scheduleExpressions({a.recursion(f, 0, {a.param(0)}, {result})[0]});
  ASSERT_EQ(s.blocks.size(), 4u);  // 1: the function, 2: i, 3: both calls
  const LockStep::Path one = {1, 2}, two = {1, 3, 1, 2, 1, 2}, three = {1, 3, 1, 3, 1, 2, 1, 2, 1, 2};
  const auto of = [&](const std::vector<const LockStep::Path*>& paths) {
    return LockStep(s).of(paths).value();
  };
  const LockStep::Together alone = of({&three});
  EXPECT_EQ(alone.entered, (std::vector<double>{1, 5, 3, 2}));
  ASSERT_EQ(alone.calls.size(), 2u);
  EXPECT_EQ(alone.calls[0].number, 2);
  EXPECT_EQ(alone.calls[0].depths, 2);
  EXPECT_EQ(of({&three, &three}).entered, alone.entered);
  // The one that ends early takes no turns of its own.
  EXPECT_EQ(of({&three, &one}).entered[1], 5);
  // f(2): calls f(1), f(0). Both make their first call in the first turn, at one depth; the second calls of
  // f(2), and of f(2) in f(3), are made in different turns.
  const LockStep::Together both = of({&three, &two});
  EXPECT_EQ(both.entered[1], 5 + 1);
  EXPECT_EQ(both.calls[0].number, 2);
  EXPECT_EQ(both.calls[1].number, 3);
}

TEST(LockStep, PathsThatWereCutShortAreOfNoUse) {
  ExprArena a;
  const ExprRef i = a.param(0);
  const Schedule s =
      codegen::scheduleExpressions({a.select(a.op(ScalarOp::Less, i, a.index(9)), a.mul(i, i), i)});
  EXPECT_TRUE(together(s, {{1}, {1, 1}}).empty());
}

}  // namespace
}  // namespace kelpie::runtime

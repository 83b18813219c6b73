// Loops of elements that keep others waiting.
#include "fusion/slowest_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/kernel_analysis.h"
#include "codegen/uneven_loops.h"
#include "tests/fusion/read_program.h"

namespace kelpie::fusion {
namespace {

using ::testing::ElementsAre;

/// A program of one map, for each element of `xs`.
lcu::Program mapOf(const std::string& thunk) {
  return read(
      "function f(xs: [int64], ys: [int64], n: int64) {\n  kernel k { let r: [int64; #xs] = MAP flat #xs { i "
      "=> " +
      thunk + " } return r }\n  return r\n}");
}
const lcu::Soac& mapIn(const lcu::Program& program) {
  return std::get<lcu::Launch>(program.functions.at(0).body.stmts.at(0).node).kernel.bindings.at(0);
}
size_t uneven(const std::string& thunk) {
  const lcu::Program program = mapOf(thunk);
  return codegen::unevenLoops(codegen::scheduleExpressions(codegen::eagerThunks(mapIn(program)))).size();
}
const std::string kWalk = "let (x, k) = loop (a = xs[i], b = 0) { while a > 0 next ys[a], b + 1 } in k";
const std::string kCounted = "let (x, k) = loop (a = xs[i], b = 0) { while b < n next a * 3, b + 1 } in x";

TEST(SlowestTurns, LoopsAreUnevenWhereElementsDecide) {
  EXPECT_EQ(uneven(kWalk), 1u);
  EXPECT_EQ(uneven(kCounted), 0u);
  // Through another variable, and only after some turns.
  EXPECT_EQ(uneven("let (x, k) = loop (a = 0, b = 9) { while b > 0 next a + xs[i], b - a } in k"), 1u);
  EXPECT_EQ(uneven("let (x, k) = loop (a = 0, b = n) { while b > a next a + 1, b - 2 } in k * xs[i]"), 0u);
  EXPECT_EQ(uneven("xs[i] * 3"), 0u);
}

class Lengthened : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = mapOf(kWalk);
    schedule_ = codegen::scheduleExpressions(codegen::eagerThunks(mapIn(program_)));
    ASSERT_EQ(schedule_.blocks.size(), 3u);
  }
  lcu::Program program_;
  codegen::Schedule schedule_;
};

TEST_F(Lengthened, TheSlowestCountsOnceForAllItems) {
  std::vector<double> inStep{100, 1100, 1000};
  waitForSlowest(schedule_, 4, {100, 21'100, 21'000}, inStep);  // 21 times as long: (21 + 3) / 4
  EXPECT_THAT(inStep, ElementsAre(100, 6600, 6000));
  inStep = {100, 1100, 1000};
  waitForSlowest(schedule_, 1, {100, 1100, 1000}, inStep);
  EXPECT_THAT(inStep, ElementsAre(100, 1100, 1000));
}

TEST_F(Lengthened, WhatIsNotKnownIsGuessed) {
  std::vector<double> inStep{100, 1700, 1600};
  waitForSlowest(schedule_, 5, {}, inStep);
  EXPECT_THAT(inStep, ElementsAre(100, 3400, 3200));
  program_ = mapOf(kCounted);
  inStep = {100, 1700, 1600};
  waitForSlowest(codegen::scheduleExpressions(codegen::eagerThunks(mapIn(program_))), 5, {}, inStep);
  EXPECT_THAT(inStep, ElementsAre(100, 1700, 1600));
}

TEST_F(Lengthened, BlocksWaitForAWarp) {
  std::vector<double> inStep{100, 1100, 1000};
  waitForBlocks(schedule_, {100, 2100, 2000}, inStep);
  EXPECT_EQ(inStep[0], 100);
  EXPECT_GT(inStep[2], 1400);
  EXPECT_LT(inStep[2], 2000);
  inStep = {100, 1100, 1000};
  waitForBlocks(schedule_, {}, inStep);
  EXPECT_THAT(inStep, ElementsAre(100, 1100, 1000));
}

}  // namespace
}  // namespace kelpie::fusion

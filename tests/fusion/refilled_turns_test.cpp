// How often lanes that take elements one by one enter a loop.
#include "fusion/refilled_turns.h"

#include <gtest/gtest.h>

#include "codegen/kernel_analysis.h"
#include "tests/fusion/read_program.h"

namespace kelpie::fusion {
namespace {

using codegen::Schedule;

/// A map with one loop whose turns differ.
class RefilledTurns : public ::testing::Test {
 protected:
  static constexpr double kElements = 1000;

  void SetUp() override {
    program_ = read(R"(
global 1: ([int64]) = n: int64, xs: [int64; n]
entry main: (int64) {
  kernel k { let r: [int64; n] = MAP flat n { i =>
    let (x, k) = loop (a = xs[i], b = 0) { while a > 1 next a - a % 7 - 1, b + 1 } in k } return r }
  let first: int64 = r[0]
  return first
})");
    for (const lcu::Stmt& stmt : program_.entry.body.stmts) {
      const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
      if (!launch) continue;
      refilled_ = codegen::refilledLoop(launch->kernel, {0}, codegen::QueueOf::Block);
      schedule_ = codegen::scheduleExpressions(codegen::eagerThunks(launch->kernel.bindings[0]));
    }
    ASSERT_TRUE(refilled_.has_value());
    ASSERT_EQ(schedule_.blocks.size(), 3u);
  }
  /// In step, where elements turn `turns` times and the slowest of 32 `most` times: of the loop's body.
  std::vector<double> inStep(double turns, double most, double ofLane) const {
    const std::vector<double> entered{kElements, kElements * (turns + 1), kElements * turns};
    std::vector<double> inStep{kElements, kElements * (most + 1), kElements * most};
    refillTurns(schedule_, *refilled_, kElements, ofLane, entered, inStep);
    for (double& times : inStep) times /= kElements;
    return inStep;
  }

  lcu::Program program_;
  std::optional<codegen::RefilledLoop> refilled_;
  Schedule schedule_;
};

TEST_F(RefilledTurns, AreFewerWhereTheyDifferMuch) {
  const std::vector<double> many = inStep(50, 400, 1000);
  EXPECT_GT(many[2], 50);
  EXPECT_LT(many[2], 100);
  EXPECT_GT(many[0], 1.5);  // what is not in the loop is done for fewer at a time
}

TEST_F(RefilledTurns, AreInStepAtFirstAndAtLast) {
  const double many = inStep(10, 90, 1000)[2], few = inStep(10, 90, 4)[2];
  EXPECT_LT(many, 30);
  EXPECT_NEAR(few, (90 + many) / 2, 0.5);
  EXPECT_EQ(inStep(50, 400, 2)[2], 400);
  EXPECT_EQ(inStep(50, 400, 1)[2], 400);
}

TEST_F(RefilledTurns, AreInStepAtLastOnlyWhereTheyDifferVeryMuch) {
  const double many = inStep(50, 400, 1000)[2], few = inStep(50, 400, 4)[2];
  EXPECT_NEAR(few, (400 + 3 * many) / 4, 2);
}

TEST_F(RefilledTurns, AreInStepWhereTheyHardlyDiffer) {
  const std::vector<double> alike = inStep(400, 404, 1000);
  EXPECT_EQ(alike[2], 404);
  EXPECT_EQ(alike[0], 1);
}

}  // namespace
}  // namespace kelpie::fusion

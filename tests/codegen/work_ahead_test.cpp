// What code computes ahead of bindings that need it in branches (codegen/work_ahead.h).
#include "codegen/work_ahead.h"

#include <gtest/gtest.h>

#include "codegen/cuda/cuda_module.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

using codegen::longWorkAhead;
using codegen::WorkAhead;

class Ahead : public ::testing::Test {
 protected:
  Builder b;
  ExprArena& a = b.arena();
  const VarId xs = b.globalArray("xs", ints({3, 1, 2}));
  const ExprRef x = b.at(xs), isTwo = b.op(ScalarOp::Equal, x, b.num(2));
  const ExprRef steps = doubled(x);
  const Space space = b.flat(xs);

  /// Doubles a number as often as 1000 can be halved, (k, n) of a loop; n. (Lanes have no queue for it.)
  ExprRef doubled(ExprRef from) {
    const uint32_t loop = a.newLoop();
    const ExprRef k = a.loopVar(loop, 0, kI64), n = a.loopVar(loop, 1, kI64);
    return a.loop(loop, {b.num(1000), from}, b.op(ScalarOp::Greater, k, b.num(1)),
                  {b.op(ScalarOp::ShiftRight, k, b.num(1)), a.add(n, n)})[1];
  }
  /// A kernel of reductions and maps.
  Kernel kernel(std::vector<Soac> bindings) {
    Kernel made{"k", {}, {}};
    for (Soac& soac : bindings) {
      b.named(soac, "result");
      made.returns.insert(made.returns.end(), soac.results.begin(), soac.results.end());
      made.bindings.push_back(std::move(soac));
    }
    return made;
  }
  Soac total(ExprRef pull) { return b.reduce(space, {pull}, b.sum(kI64)); }
  size_t loopsOf(const Kernel& kernel) {
    size_t count = 0;
    for (const auto& pass : codegen::cuda::generateKernel(kernel, b.program, "k").passes) {
      for (size_t at = pass.text.find("while ("); at != std::string::npos; ++count)
        at = pass.text.find("while (", at + 1);
    }
    return count;
  }
};

TEST_F(Ahead, IsALoopThatALaterBindingNeedsForEveryElement) {
  const Kernel k = kernel({total(a.select(isTwo, steps, b.num(0))), b.map(space, {steps})});
  const std::vector<WorkAhead> ahead = longWorkAhead(k, {0, 1});
  ASSERT_EQ(ahead.size(), 1u);
  EXPECT_EQ(ahead[0].binding, 1u);
  EXPECT_EQ(ahead[0].values, std::vector<ExprRef>{steps});
  EXPECT_EQ(loopsOf(k), 1u);
}

TEST_F(Ahead, IsWhatTheElementsNeedBehindTheChecks) {
  Soac soac = total(steps);
  soac.effects = {a.select(
      isTwo,
      a.check(b.op(ScalarOp::Less, steps, b.num(9)), steps, Scalar::ofInt(kI64, 0), 0, steps, b.num(0)),
      b.num(0))};
  EXPECT_EQ(longWorkAhead(kernel({soac}), {0}).size(), 1u);
}

TEST_F(Ahead, IsWhatSurvivorsNeedAndAllOthersLater) {
  const Kernel k = kernel({b.filter(space, {steps}, isTwo), total(steps)});
  EXPECT_EQ(longWorkAhead(k, {0, 1}).size(), 1u);
}

/// Side by side, as a remainder may be made of a quotient.
TEST_F(Ahead, IsTogetherWhatOneBindingNeeds) {
  const ExprRef y = b.at(b.globalArray("ys", ints({1, 1, 1})));
  const ExprRef quotient = b.op(ScalarOp::Div, x, y), rest = b.op(ScalarOp::Rem, x, y);
  const Kernel k =
      kernel({total(a.select(isTwo, a.add(quotient, rest), b.num(0))), b.map(space, {quotient, rest})});
  const std::vector<WorkAhead> ahead = longWorkAhead(k, {0, 1});
  ASSERT_EQ(ahead.size(), 1u);
  EXPECT_EQ(ahead[0].values.size(), 2u);
}

TEST_F(Ahead, IsNothingThatBranchesAloneNeed) {
  const ExprRef some = a.select(isTwo, steps, b.num(0));
  const ExprRef others = a.select(b.op(ScalarOp::Equal, x, b.num(5)), steps, b.num(1));
  EXPECT_TRUE(longWorkAhead(kernel({total(some), b.map(space, {others})}), {0, 1}).empty());
}

TEST_F(Ahead, IsNothingThatIsComputedAlready) {
  EXPECT_TRUE(longWorkAhead(kernel({b.map(space, {steps}), total(a.select(isTwo, steps, b.num(0)))}), {0, 1})
                  .empty());
}

TEST_F(Ahead, IsNothingShort) {
  const ExprRef square = a.mul(x, x);
  EXPECT_TRUE(
      longWorkAhead(kernel({total(a.select(isTwo, square, b.num(0))), b.map(space, {square})}), {0, 1})
          .empty());
}

/// What the kernel makes is there only when it has been made.
TEST_F(Ahead, IsNothingThatHasResultsOfTheKernel) {
  Soac first = b.map(space, {a.add(x, b.num(1))});
  b.named(first, "first");
  const ExprRef of = doubled(b.at(first.results[0]));
  Soac some = total(a.select(isTwo, of, b.num(0))), all = b.map(space, {of});
  b.named(some, "some");
  b.named(all, "all");
  const Kernel k{"k", {first, some, all}, {some.results[0], all.results[0]}};
  EXPECT_TRUE(longWorkAhead(k, {0, 1, 2}).empty());
}

}  // namespace
}  // namespace kelpie::testing

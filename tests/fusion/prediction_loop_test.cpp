// What the turns of loops are predicted to cost.
#include <gtest/gtest.h>

#include "tests/fusion/predicted.h"

namespace kelpie::fusion {
namespace {

/// The Ifs by which a turn of a loop ends, and the test of its flag, take nothing.
TEST(Prediction, EndsOfTurnsOfLoops) {
  TargetCosts costs = free();
  costs.integerOperation = 1;
  const char* const kernel = R"(
  kernel k { let r: [int64; n] = MAP flat n { i => let (t1, t2, t3) = loop (k1 = false, k2 = 0, k3 = xs[i]) { let t4 = k3 == 1; (t5, t6) = if t4 then (k2, k3) else (k2 + 1, k3 - 2) in while not(k1) next t4, t5, t6 } in t2 } return r }
  let first: int64 = r[0]
  return first)";
  constexpr int kTurns = 16;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel, 100, 10), 100 * kTurns * 3);
}

/// Arithmetic that no turn of a loop changes is computed before it.
TEST(Prediction, InvariantsOfLoops) {
  TargetCosts costs = free();
  costs.integerProduct = 1;
  const char* const kernel = R"(
  kernel k { let r: [int64; n] = MAP flat n { i =>
    let (j, s) = loop (a = 0, b = 0) { while a < 9 next a + 1, b + xs[i] * xs[i] } in s } return r }
  let first: int64 = r[0]
  return first)";
  EXPECT_DOUBLE_EQ(predicted(costs, kernel, 100, 10), 100);
}

/// What a loop changes is computed for each element of each row if it begins with what either tells.
TEST(Prediction, LoopsOfRowsThatAreTakenTogether) {
  TargetCosts costs = free();
  costs.integerProduct = 1;
  const auto kernel = [](const std::string& begin) {
    return R"(
  kernel k { let r: [int64; m] = REDUCE regular(m, 10, n) { i, s, p =>
    let (j, q) = loop (a = 0, b = )" +
           begin + R"() { while a < 9 next a + 1, b * b } in q } (0) { x, y => max(x, y) } return r }
  let first: int64 = r[0]
  return first)";
  };
  constexpr int kTurns = 16;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("s - p"), 1600, 16), 1600 * kTurns);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("p + 1"), 1600, 16), 1600 * kTurns / 8);
}

TEST(Prediction, NothingHidesLoadsInLoops) {
  const auto body = [](const std::string& value) {
    return R"(
  kernel k { let s: &int64 = REDUCE flat n { i => let (t1, t2) = loop (k1 = xs[i], k2 = 0) { while k2 < xs[i] next )" +
           value + R"(, k2 + 1 } in t1 } (0) { x, y => x + y } return s }
  return s)";
  };
  TargetCosts costs = free();
  costs.randomLoad = costs.sharedLoad = costs.cachedLoad = 5;
  costs.integerOperation = 1;
  costs.overlap = 1;
  const double work =
      1000 * (16 * 2 + 1);  // a comparison and a sum in each of 16 rounds, and one of the reduction
  EXPECT_DOUBLE_EQ(predicted(costs, body("k2"), 1000, 1000), work);
  EXPECT_DOUBLE_EQ(predicted(costs, body("ys[k1 * 3]"), 1000, 1000), work + 1000 * 16 * 5);
}

/// On a GPU, a loop whose turns nothing but constants count is unrolled, and its counter is a constant.
TEST(Prediction, CountersOfUnrolledLoops) {
  const auto kernel = [](const std::string& limit) {
    return R"(
  kernel k { let r: [int64; n] = MAP flat n { i =>
    let (j, s) = loop (a = 0, b = 0) { while a < )" +
           limit + R"( next a + 1, b + xs[i] } in s } return r }
  let first: int64 = r[0]
  return first)";
  };
  constexpr int kTurns = 16;
  TargetCosts costs = free();
  costs.integerOperation = 1;
  costs.iteration = 10;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("9"), 100, 10), 100 * kTurns * (1 + 1 + 1 + 2 * 10));
  costs.lockStep = true;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("9"), 100, 10), 100 * kTurns * 1);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("m"), 100, 10), 100 * kTurns * (1.3 + 1 + 1 + 2 * 10));
}

/// The same where the body of a loop is in a branch of its end, as tail recursion has it.
TEST(Prediction, CountersOfUnrolledRecursion) {
  const auto kernel = [](const std::string& end) {
    return R"(
  kernel k { let r: [int64; n] = MAP flat n { i =>
    let (d, s, j, t) = loop (d = false, s = 0, j = 0, t = 0) {
      let e = j == )" +
           end + R"(; (u, v, w) = if e then (t, j, t) else (s, j + 1, t + xs[i] * (j * 3 + 5)) in
      while not(d) next e, u, v, w } in s } return r }
  let first: int64 = r[0]
  return first)";
  };
  constexpr int kTurns = 16;
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.integerProduct = 1;
  // One product of the element; the other is of constants.
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("8"), 100, 10), 100 * kTurns);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("m"), 100, 10), 100 * kTurns * 2);
}

}  // namespace
}  // namespace kelpie::fusion

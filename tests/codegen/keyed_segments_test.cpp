// Which reductions of regular spaces are found to have keys, and what CUDA kernels become of them.
#include "codegen/keyed_segments.h"

#include <gtest/gtest.h>

#include "codegen/cuda/cuda_module.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

using codegen::cuda::Grid;

class Keys : public ::testing::Test {
 protected:
  Builder b;
  ExprArena& a = b.arena();
  const VarId keys = b.globalArray("keys", ints({0})), xs = b.globalArray("xs", floats({0}));
  const ExprRef key = b.at(keys, b.p()), x = b.at(xs, b.p()), isKey = b.op(ScalarOp::Equal, key, b.s());
  const Space space = b.regular(b.num(7), a.size(xs));

  Kernel kernel(std::vector<ExprRef> pull, lcu::Operator combine) {
    Soac reduce = b.reduce(space, std::move(pull), std::move(combine));
    b.named(reduce, "result");
    return {"k", {reduce}, reduce.results};
  }
  std::optional<codegen::KeyedSegments> keyed(const Kernel& kernel) {
    const auto found = codegen::keyedSegments(kernel, codegen::analyseKernel(kernel, b.program));
    const auto cuda = codegen::cuda::generateKernel(kernel, b.program, "k");
    EXPECT_EQ(cuda.passes[0].grid == Grid::Keys, found.has_value());
    return found;
  }
  std::optional<codegen::KeyedSegments> keyed(ExprRef pull, ScalarOp operation, Scalar identity) {
    return keyed(kernel({pull}, b.operation(operation, identity)));
  }
  /// Of sums of floats.
  std::optional<codegen::KeyedSegments> keyed(ExprRef pull) {
    return keyed(pull, ScalarOp::Add, Scalar::ofFloat(kF64, 0.0));
  }
};

TEST_F(Keys, AreWhatElementsAreSelectedBy) {
  const auto found = keyed(a.select(isKey, x, b.real(0.0)));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->test, isKey);
  EXPECT_EQ(found->key, key);
  EXPECT_EQ(found->offset, nullptr);
  EXPECT_TRUE(keyed(a.convert(isKey, kI64), ScalarOp::Add, Scalar::ofInt(kI64, 0)));
  const ExprRef large = b.op(ScalarOp::Less, b.real(3.0), x);
  EXPECT_TRUE(keyed(a.select(a.conjunction(large, isKey), x, b.real(0.0))));
  EXPECT_FALSE(keyed(a.select(large, x, b.real(0.0))));
}

TEST_F(Keys, MayBeOffsetAndNarrow) {
  const ExprRef further = b.op(ScalarOp::Equal, a.add(b.s(), b.num(3)), key);
  const auto found = keyed(a.select(further, x, b.real(0.0)));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->offset, b.num(3));
  const ScalarType narrow = ScalarType::Int32;
  EXPECT_TRUE(keyed(
      a.select(b.op(ScalarOp::Equal, a.convert(b.s(), narrow), a.convert(key, narrow)), x, b.real(0.0))));
  const ExprRef byte = a.convert(b.s(), ScalarType::Char);  // says little of s
  EXPECT_FALSE(
      keyed(a.select(b.op(ScalarOp::Equal, byte, a.convert(key, ScalarType::Char)), x, b.real(0.0))));
  EXPECT_FALSE(keyed(a.select(b.op(ScalarOp::Equal, a.add(b.s(), b.p()), key), x, b.real(0.0))));
}

/// What is left out must be the identity, to the bit, and be of no consequence whatever it is combined with.
TEST_F(Keys, LeaveOutIdentitiesOnly) {
  EXPECT_FALSE(keyed(a.select(isKey, x, b.real(0.5))));
  EXPECT_FALSE(keyed(a.select(isKey, x, b.real(-0.0))));
  EXPECT_FALSE(keyed(a.select(isKey, b.real(0.0), x)));
  EXPECT_TRUE(keyed(a.select(isKey, x, b.real(1.0)), ScalarOp::Mul, Scalar::ofFloat(kF64, 1.0)));
  const double least = -std::numeric_limits<double>::infinity();
  EXPECT_FALSE(
      keyed(a.select(isKey, x, b.real(least)), ScalarOp::Max, Scalar::ofFloat(kF64, least)));  // of NaN
  EXPECT_TRUE(keyed(a.select(isKey, key, b.num(-9)), ScalarOp::Max, Scalar::ofInt(kI64, -9)));
  const ExprRef checked =
      a.check(b.op(ScalarOp::Less, b.s(), b.num(5)), isKey, Scalar::ofBool(false), 0, b.num(0), b.num(0));
  EXPECT_FALSE(keyed(a.select(checked, x, b.real(0.0))));
}

TEST_F(Keys, AreThoseOfAllComponents) {
  const ExprRef other = b.op(ScalarOp::Equal, a.add(key, b.num(1)), b.s());
  const auto sums = [&](ExprRef test) {
    const ExprRef l = a.param(0, kF64), r = a.param(2, kF64);
    return kernel({a.select(isKey, x, b.real(0.0)), a.convert(test, kI64)},
                  {{Scalar::ofFloat(kF64, 0.0), Scalar::ofInt(kI64, 0)},
                   {b.op(ScalarOp::Add, l, r), a.add(a.param(1), a.param(3))}});
  };
  EXPECT_TRUE(keyed(sums(isKey)));
  EXPECT_FALSE(keyed(sums(other)));
}

}  // namespace
}  // namespace kelpie::testing

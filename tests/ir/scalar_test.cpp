#include "ir/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kelpie {
namespace {

using enum ScalarType;

constexpr ScalarType kTypes[] = {Bool, Char, Int32, Int64, Float32, Float64};
constexpr int64_t kLeast64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kLeast32 = std::numeric_limits<int32_t>::min();

Scalar i64(int64_t v) { return Scalar::ofInt(Int64, v); }
Scalar i32(int64_t v) { return Scalar::ofInt(Int32, v); }
Scalar f64(double v) { return Scalar::ofFloat(Float64, v); }
Scalar f32(double v) { return Scalar::ofFloat(Float32, v); }

TEST(Scalar, NamesGoBothWays) {
  for (ScalarType t : kTypes) EXPECT_EQ(scalarTypeFromString(toString(t)), t);
  for (int op = 0; op <= static_cast<int>(ScalarOp::Floor); ++op)
    EXPECT_EQ(scalarOpFromString(toString(static_cast<ScalarOp>(op))), static_cast<ScalarOp>(op));
  EXPECT_EQ(scalarTypeFromString("int"), std::nullopt);
  EXPECT_EQ(scalarOpFromString("plus"), std::nullopt);
  EXPECT_EQ(toString(ScalarOp::ShiftRight), "shr");
  EXPECT_EQ(toString(ScalarOp::Tanh), "tanh");
}

TEST(Scalar, IntegersWrap) {
  EXPECT_EQ(evaluate(ScalarOp::Add, i32(2147483647), i32(1)), i32(kLeast32));
  EXPECT_EQ(evaluate(ScalarOp::Mul, i64(kLeast64), i64(-1)), i64(kLeast64));
  EXPECT_EQ(evaluate(ScalarOp::Negate, i32(kLeast32)), i32(kLeast32));
}

TEST(Scalar, DivisionIsTotal) {
  EXPECT_EQ(evaluate(ScalarOp::Div, i64(7), i64(0)), i64(0));
  EXPECT_EQ(evaluate(ScalarOp::Rem, i64(7), i64(0)), i64(0));
  EXPECT_EQ(evaluate(ScalarOp::Div, i64(kLeast64), i64(-1)), i64(kLeast64));
  EXPECT_EQ(evaluate(ScalarOp::Div, i32(kLeast32), i32(-1)), i32(kLeast32));
  EXPECT_EQ(evaluate(ScalarOp::Rem, i64(kLeast64), i64(-1)), i64(0));
  EXPECT_EQ(evaluate(ScalarOp::Div, i64(-7), i64(2)), i64(-3));
  EXPECT_EQ(evaluate(ScalarOp::Rem, i64(-7), i64(2)), i64(-1));
}

TEST(Scalar, ShiftCountsAreTakenModuloTheWidth) {
  EXPECT_EQ(evaluate(ScalarOp::ShiftLeft, i32(1), i32(33)), i32(2));
  EXPECT_EQ(evaluate(ScalarOp::ShiftLeft, i64(1), i64(33)), i64(int64_t{1} << 33));
  EXPECT_EQ(evaluate(ScalarOp::ShiftRight, i64(-8), i64(1)), i64(-4));
  EXPECT_EQ(evaluate(ScalarOp::ShiftLeft, i32(1), i32(31)), i32(kLeast32));
}

TEST(Scalar, MaxAndMinTakeTheSecondWhenUnordered) {
  const double nan = std::nan("");
  EXPECT_EQ(evaluate(ScalarOp::Max, f64(nan), f64(1)), f64(1));
  EXPECT_TRUE(std::isnan(evaluate(ScalarOp::Max, f64(1), f64(nan)).f));
  EXPECT_EQ(evaluate(ScalarOp::Min, Scalar::ofChar('a'), Scalar::ofChar(200)), Scalar::ofChar('a'));
}

TEST(Scalar, FloatsKeepTheirPrecision) {
  EXPECT_EQ(evaluate(ScalarOp::Add, f32(16777216), f32(1)), f32(16777216));
  EXPECT_EQ(evaluate(ScalarOp::Exp, f32(1)).f, static_cast<double>(std::exp(1.0F)));
  EXPECT_FALSE(std::signbit(evaluate(ScalarOp::Negate, f64(0)).f));
  EXPECT_FALSE(f64(0.0) == f64(-0.0));
  EXPECT_EQ(f64(std::nan("")), f64(std::nan("")));
}

TEST(Scalar, BooleansAndBits) {
  EXPECT_EQ(evaluate(ScalarOp::Not, Scalar::ofBool(true)), Scalar::ofBool(false));
  EXPECT_EQ(evaluate(ScalarOp::Not, i64(0)), i64(-1));
  EXPECT_EQ(evaluate(ScalarOp::Less, Scalar::ofBool(false), Scalar::ofBool(true)), Scalar::ofBool(true));
  EXPECT_EQ(evaluate(ScalarOp::Equal, f64(std::nan("")), f64(std::nan(""))), Scalar::ofBool(false));
}

TEST(Scalar, ConversionTruncatesAndSaturates) {
  EXPECT_EQ(convert(f64(-2.9), Int64), i64(-2));
  EXPECT_EQ(convert(f64(1e30), Int64), i64(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(convert(f64(9223372036854775808.0), Int64), i64(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(convert(f64(-9223372036854775808.0), Int64), i64(kLeast64));
  EXPECT_EQ(convert(f64(-1e30), Int32), i32(kLeast32));
  EXPECT_EQ(convert(f64(2147483647.5), Int32), i32(2147483647));
  EXPECT_EQ(convert(f64(std::nan("")), Int64), i64(0));
  EXPECT_EQ(convert(i64(300), Char), Scalar::ofChar(44));
  EXPECT_EQ(convert(i64(256), Bool), Scalar::ofBool(true));
  EXPECT_EQ(convert(i64(16777217), Float32), f32(16777216));
  EXPECT_EQ(convert(Scalar::ofChar(200), Int32), i32(200));
}

TEST(Scalar, IdentitiesAreIdentities) {
  for (ScalarType t : kTypes) {
    for (int r = 0; r <= static_cast<int>(ReduceOp::Xor); ++r) {
      const auto reduce = static_cast<ReduceOp>(r);
      if (!accepts(scalarOp(reduce), t)) continue;
      for (int v : {0, 1, 2, 77, 255}) {
        const Scalar value = convert(i64(v), t);
        EXPECT_EQ(evaluate(scalarOp(reduce), identity(reduce, t), value), value)
            << toString(reduce) << toString(t);
        EXPECT_EQ(evaluate(scalarOp(reduce), value, identity(reduce, t)), value)
            << toString(reduce) << toString(t);
      }
    }
  }
}

}  // namespace
}  // namespace kelpie

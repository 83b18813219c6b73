#include "codegen/values_of_segments.h"

#include <gtest/gtest.h>

#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

using codegen::KernelInfo;

/// Sums of segments whose elements look at arrays by segment: `own` has an element for each, `others` may
/// have fewer.
class ValuesOfSegments : public ::testing::Test {
 protected:
  Builder b;
  ExprArena& a = b.arena();
  const VarId others = b.globalArray("others", ints({1, 2})), own = b.globalArray("own", ints({3, 0, 5})),
              xs = b.globalArray("xs", ints({1, 2, 3, 4, 5, 6}));
  const ExprRef s = b.s(), x = b.at(xs, b.i()), ofOthers = b.at(others, s), ofOwn = b.at(own, s);
  const ExprRef inOthers = a.op(ScalarOp::Less, s, a.size(others));

  /// x if the condition does not hold.
  ExprRef under(ExprRef condition, ExprRef value) { return a.select(condition, value, x); }
  ExprRef root(ExprRef e) { return a.op(ScalarOp::Sqrt, a.convert(e, ScalarType::Float64)); }
  ExprRef quotient(ExprRef by) { return a.op(ScalarOp::Div, b.num(100), by); }

  Kernel kernel(ExprRef pull) {
    const Scalar zero =
        pull->type == ScalarType::Float64 ? Scalar::ofFloat(ScalarType::Float64, 0) : Scalar::ofInt(kI64, 0);
    Soac soac = b.reduce(b.regular(a.size(own), b.num(2)), {pull}, b.operation(ScalarOp::Add, zero));
    b.named(soac, "summed");
    return {"k", {soac}, soac.results};
  }
  std::vector<ExprRef> longOnes(ExprRef pull) {
    const Kernel k = kernel(pull);
    return codegen::longValuesOfSegments({pull}, codegen::analyseKernel(k, b.program), b.program);
  }
  std::vector<ExprRef> guarded(ExprRef pull, size_t most = 9) {
    const Kernel k = kernel(pull);
    return codegen::guardedValuesOfSegments({pull}, {}, codegen::analyseKernel(k, b.program), b.program,
                                            most);
  }
  using Values = std::vector<ExprRef>;
};

/// Where a condition tells that there is such an element, no check is left: what is behind it stays there.
TEST_F(ValuesOfSegments, OfArraysThatMayEndBefore) {
  const ExprRef rooted = root(ofOthers), number = a.convert(x, ScalarType::Float64);
  EXPECT_EQ(longOnes(a.select(inOthers, rooted, number)), Values{});
  EXPECT_EQ(longOnes(rooted), Values{rooted})
      << "every element does without a check, so there is one for each";
  EXPECT_EQ(longOnes(a.select(inOthers, root(ofOwn), number)), Values{root(ofOwn)});
  const ExprRef both = a.conjunction(a.op(ScalarOp::Less, x, b.num(3)), a.op(ScalarOp::Less, rooted, number));
  EXPECT_EQ(longOnes(a.select(both, number, number)), Values{}) << "nor in front of `and`";
}

/// A quotient whose divisor a condition tells to be no zero.
TEST_F(ValuesOfSegments, QuotientsByWhatMayBeZero) {
  const ExprRef notZero = a.op(ScalarOp::NotEqual, ofOwn, b.num(0));
  EXPECT_EQ(longOnes(under(notZero, quotient(ofOwn))), Values{});
  EXPECT_EQ(longOnes(quotient(ofOwn)), Values{quotient(ofOwn)});
  const ExprRef byConstant = a.op(ScalarOp::Div, ofOwn, b.num(7));
  EXPECT_EQ(longOnes(under(notZero, byConstant)), Values{byConstant});
}

/// Loads that conditions stand before, of arrays that have all.
TEST_F(ValuesOfSegments, Guarded) {
  const ExprRef small = a.op(ScalarOp::Less, x, b.num(3));
  EXPECT_EQ(guarded(under(small, ofOwn)), Values{ofOwn});
  EXPECT_EQ(guarded(under(small, ofOwn), 0), Values{});
  EXPECT_EQ(guarded(under(inOthers, ofOthers)), Values{});
  EXPECT_EQ(guarded(a.add(ofOwn, x)), Values{}) << "compilers find these";
  EXPECT_EQ(guarded(under(a.conjunction(small, a.op(ScalarOp::Less, ofOwn, x)), b.num(1))), Values{ofOwn});
}

/// What a filter keeps is evaluated for survivors alone, though both sides of an `and` are.
TEST_F(ValuesOfSegments, OfSurvivors) {
  const ExprRef both = a.conjunction(a.op(ScalarOp::Less, x, b.num(3)), a.op(ScalarOp::Less, ofOthers, x));
  const Kernel k = kernel(under(both, b.num(1)));
  const KernelInfo info = codegen::analyseKernel(k, b.program);
  EXPECT_EQ(codegen::guardedValuesOfSegments({both}, {}, info, b.program, 9), Values{ofOthers});
  EXPECT_EQ(codegen::guardedValuesOfSegments({inOthers}, {both}, info, b.program, 9), Values{});
}

}  // namespace
}  // namespace kelpie::testing

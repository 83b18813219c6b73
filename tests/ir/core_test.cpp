#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/core_print.h"
#include "ir/core_verify.h"

namespace kelpie::core {
namespace {

using enum ScalarType;
using testing::ElementsAre;
using testing::HasSubstr;

const CoreType kFloats = CoreType::sequence({Float64});

/// function dot(xs, ys) = sum({x * y : x in xs; y in ys}); the entry applies it to a constant twice.
struct Dot : testing::Test {
  Program program;
  Var xs{1, "xs", kFloats}, ys{2, "ys", kFloats}, x{3, "x", Float64}, y{4, "y", Float64}, t{5, "t", Float64},
      p{6, "p", kFloats}, s{7, "s", Float64}, c{8, "c", kFloats};

  static Atom atom(const Var& var) { return {var.id, var.type}; }
  static ExpPtr make(decltype(Exp::node) node, Row type) {
    return std::make_shared<const Exp>(Exp{std::move(node), std::move(type), {}});
  }
  static ExpPtr prim(PrimOp op, std::vector<Atom> arguments, Row type) {
    return make(Prim{.op = op, .arguments = std::move(arguments), .text = {}}, std::move(type));
  }

  Dot() {
    ExpPtr product = make(
        Prim{.op = PrimOp::Scalar, .arguments = {atom(x), atom(y)}, .scalarOp = ScalarOp::Mul, .text = {}},
        {Float64});
    ExpPtr body = make(Let{{t}, product, make(Values{{atom(t)}}, {Float64})}, {Float64});
    ExpPtr each = make(Each{{{{x}, atom(xs)}, {{y}, atom(ys)}}, body}, {kFloats});
    ExpPtr sum = prim(PrimOp::Reduce, {atom(p)}, {Float64});
    ExpPtr rest = make(Let{{s}, sum, make(Values{{atom(s)}}, {Float64})}, {Float64});
    program.functions.push_back({"dot", {xs, ys}, {Float64}, make(Let{{p}, each, rest}, {Float64}), {}});
    const Scalar one = Scalar::ofFloat(Float64, 1);
    const Column column = sequenceColumn({Float64}, {0, 2}, {scalarColumn(Float64, std::vector{one, one})});
    program.entry =
        make(Let{{c}, make(Constant{{column}}, {kFloats}), make(Call{0, {atom(c), atom(c)}}, {Float64})},
             {Float64});
    program.nextVar = 9;
  }
};

TEST_F(Dot, Prints) {
  EXPECT_EQ(toString(program),
            "function dot(xs.1: [float64], ys.2: [float64]) -> float64\n"
            "  let p.6: [float64] =\n"
            "    each (x.3: float64) in xs.1; (y.4: float64) in ys.2\n"
            "      let t.5: float64 = mul x.3 y.4\n"
            "      (t.5)\n"
            "  let s.7: float64 = reduce add p.6\n"
            "  (s.7)\n"
            "entry -> float64\n"
            "  let c.8: [float64] = constant [1.0, 1.0]\n"
            "  call dot(c.8, c.8)\n");
}

TEST_F(Dot, IsWellFormed) { EXPECT_THAT(verify(program), ElementsAre()); }

TEST_F(Dot, ScopesAreChecked) {
  program.entry = make(Values{{atom(x)}}, {Float64});
  EXPECT_THAT(verify(program), ElementsAre(HasSubstr("outside its scope")));
}

TEST_F(Dot, VariablesAreBoundOnce) {
  program.functions.push_back(program.functions[0]);
  EXPECT_THAT(verify(program), testing::Contains(HasSubstr("bound twice")));
}

TEST_F(Dot, PrimitivesAreTyped) {
  program.entry =
      make(Let{{c}, prim(PrimOp::Range, {atom(c), atom(c), atom(c)}, {kFloats}), make(Values{}, {})}, {});
  EXPECT_THAT(verify(program), testing::Contains(HasSubstr("primitive range does not take")));
  program.entry = prim(PrimOp::Length, {{Scalar::ofChar('a'), Char}}, {Int64});
  EXPECT_THAT(verify(program), ElementsAre(HasSubstr("primitive length does not take (char)")));
  program.entry =
      prim(PrimOp::Distribute, {{Scalar::ofInt(Int64, 3), Int64}, {Scalar::ofChar('a'), Char}}, {kFloats});
  EXPECT_THAT(verify(program), ElementsAre(HasSubstr("where ([char]) is due")));
}

TEST_F(Dot, CallsAreTyped) {
  program.entry = make(Call{0, {{Scalar::ofChar('a'), Char}}}, {Float64});
  EXPECT_THAT(verify(program), ElementsAre(HasSubstr("argument row of dot")));
}

TEST_F(Dot, InvariantsUseNoLocalVariables) {
  Var k{9, "k", Float64}, r{10, "r", Float64};
  program.nextVar = 11;
  ExpPtr body = make(Invariant{make(Values{{atom(k)}}, {Float64})}, {Float64});
  program.entry =
      make(Let{{c},
               prim(PrimOp::Distribute,
                    {{Scalar::ofInt(Int64, 3), Int64}, {Scalar::ofFloat(Float64, 1), Float64}}, {kFloats}),
               make(Each{{{{k}, atom(c)}}, body}, {kFloats})},
           {kFloats});
  EXPECT_THAT(verify(program), ElementsAre(HasSubstr("outside its scope")));
}

TEST_F(Dot, LongChainsNeedNoStack) {
  constexpr VarId kLength = 5'000;
  Var last{program.nextVar + kLength, "v", Float64};
  ExpPtr e = make(Values{{atom(last)}}, {Float64});
  for (VarId k = kLength; k > 0; --k) {
    Var before{program.nextVar + k - 1, "v", Float64}, var{program.nextVar + k, "v", Float64};
    Atom operand = k == 1 ? Atom{Scalar::ofFloat(Float64, 1), Float64} : atom(before);
    e = make(Let{{var}, make(Values{{operand}}, {Float64}), e}, {Float64});
  }
  program.entry = e;
  program.nextVar = last.id + 1;
  EXPECT_THAT(verify(program), ElementsAre());
  EXPECT_GT(toString(program).size(), 100'000u);
}

}  // namespace
}  // namespace kelpie::core

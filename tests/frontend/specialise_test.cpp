// What specialisation makes: instances, filters, invariants, constants, derived operations, order.
#include "frontend/specialise.h"

#include <gmock/gmock.h>

#include "tests/frontend/session_fixture.h"

namespace kelpie {
namespace {

using testing::HasSubstr;
using testing::Not;

class SpecialiseTest : public SessionTest {
 protected:
  /// Core of the last form.
  std::string coreOf(const std::string& text) {
    std::vector<FormResult> results = process(text);
    for (const Diagnostic& diagnostic : results.back().diagnostics)
      ADD_FAILURE() << sources.render(diagnostic);
    return results.back().program ? core::toString(*results.back().program) : "";
  }
  static size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
};

TEST_F(SpecialiseTest, OneInstanceForEachType) {
  std::string code = coreOf("function twice(x) = x + x; (twice(1), twice(2.0), twice(3));");
  EXPECT_EQ(count(code, "function twice"), 2u);
  EXPECT_THAT(code, HasSubstr("function twice_2"));
}

TEST_F(SpecialiseTest, FilterPacksBeforeTheBodyAndOnlyWhatItNeeds) {
  std::string code = coreOf("v = [(1,2.0,t)]; {a * 2 : (a,x,flag) in v | flag};");
  EXPECT_EQ(count(code, "pack"), 1u);
  EXPECT_LT(code.find("project"), code.find("pack"));
  EXPECT_LT(code.find("pack"), code.find("mul"));
  EXPECT_EQ(last("{1.0/float(x) : x in [0,1] | x /= 0};"), "it = [1.0] : [float]");
  EXPECT_EQ(last("{7 : x in [0,1,2] | x > 0};"), "it = [7, 7] : [int]");
  EXPECT_EQ(last("{x in [3,1,2]; y in [t,f,t] | y};"), "it = [3, 2] : [int]");
  EXPECT_THAT(last("{y : x in [3,1,2]; y in [t,f] | y};"), Not(HasSubstr("it =")));
}

TEST_F(SpecialiseTest, AnApplyToEachThatOnlyNamesComponentsIsAView) {
  std::string code = coreOf("v = [(1,2.0,t)]; {x : (a,x,flag) in v};");
  EXPECT_THAT(code, HasSubstr("project"));
  EXPECT_THAT(code, Not(HasSubstr("each")));
}

TEST_F(SpecialiseTest, ClosedExpressionsInABodyAreInvariant) {
  EXPECT_THAT(coreOf("{x + rand(10) : x in [1,2]};"), HasSubstr("invariant"));
  EXPECT_THAT(coreOf("{x + 10 : x in [1,2]};"), Not(HasSubstr("invariant")));
  EXPECT_THAT(coreOf("k = 3; {x + k : x in [1,2]};"), Not(HasSubstr("invariant")));
  EXPECT_THAT(coreOf("rand(10);"), Not(HasSubstr("invariant")));
  EXPECT_EQ(last("{rand(10) : x in [1,2,3]};"), "it = [3, 3, 3] : [int]");
  EXPECT_EQ(last("{rand(j) : j in dist(10,3)};"), "it = [3, 6, 7] : [int]");
}

TEST_F(SpecialiseTest, ConstantLiteralsAreColumns) {
  std::string code = coreOf("[[(1,\"ab\",-2.5)],[] (int,([char],float))];");
  EXPECT_THAT(code, HasSubstr("constant"));
  EXPECT_THAT(code, Not(HasSubstr("literal")));
  EXPECT_EQ(last("[(1,\"ab\",-2.5)];"), "it = [(1, \"ab\", -2.5)] : [(int, [char], float)]");
  EXPECT_THAT(coreOf("{[x, 1] : x in [2]};"), HasSubstr("literal"));
}

TEST_F(SpecialiseTest, SmallPowersAreProducts) {
  EXPECT_EQ(count(coreOf("{x^3 : x in [2]};"), "mul"), 2u);
  EXPECT_EQ(last("{x^3 : x in [2]};"), "it = [8] : [int]");
  EXPECT_EQ(last("{2^x : x in [0,1,10]};"), "it = [1, 2, 1024] : [int]");
}

TEST_F(SpecialiseTest, ClosuresCarryTheirCaptures) {
  EXPECT_EQ(last("function ap(g,x) = g(x); {let k = i in ap(x => x + k, 10) : i in [1,2,3]};"),
            "it = [11, 12, 13] : [int]");
  EXPECT_EQ(last("function cmp(g,h) = (x => g(h(x))); {cmp(sqrt,float)(x) : x in [4,9]};"),
            "it = [2.0, 3.0] : [float]");
  EXPECT_EQ(last("let k = 2; s = {(x => x * k + i) : i in [0,1]} in {g(10) : g in s};"),
            "it = [20, 21] : [int]");
  EXPECT_EQ(last("{g(4.0) : g in dist(sqrt,2)};"), "it = [2.0, 2.0] : [float]");
  EXPECT_EQ(last("#{g in dist(sqrt,3); x in [1,2,3] | x > 1};"), "it = 2 : int");
}

TEST_F(SpecialiseTest, OperationsDerivedFromTypes) {
  EXPECT_EQ(last("eql([(1,\"a\")],[(1,\"a\")]);"), "it = T : bool");
  EXPECT_EQ(last("eql([[1],[] int],[[] int,[1]]);"), "it = F : bool");
  EXPECT_EQ(last("@(1,2.5,[t],sqrt);"), "it = \"(1, 2.5, [t], function)\" : [char]");
  EXPECT_EQ(last("datatype p(int,float); @p(1,2.0);"), "it = \"(1, 2.0)\" : [char]");
  EXPECT_EQ(last("identity((3,[1],2.5));"), "it = (0, [], 0.0) : int, [int], float");
  EXPECT_EQ(last("hash((1,\"ab\"),1000) == hash((1,\"ab\"),1000);"), "it = T : bool");
}

TEST_F(SpecialiseTest, EvaluationIsFromLeftToRight) {
  run("(print_string(\"a\"), print_string(\"b\")); let x = print_string(\"c\"); y = print_string(\"d\") in 0;"
      "[print_string(\"e\"), print_string(\"f\")];");
  EXPECT_EQ(output, "abcdef");
}

TEST_F(SpecialiseTest, AndIsStrict) { EXPECT_THAT(last("f and (1/0 == 1);"), Not(HasSubstr("it ="))); }

TEST_F(SpecialiseTest, TailCallsStayInTailPosition) {
  std::string code = coreOf("function loop(i,n) = if i == n then i else loop(i+1,n); loop(0,10);");
  EXPECT_THAT(code, HasSubstr("else\n    let"));
  EXPECT_EQ(last("loop(0,1000000);"), "it = 1000000 : int");
}

TEST_F(SpecialiseTest, LibraryFunctionsAreMarked) {
  std::vector<FormResult> results = process("function mine(x) = x; (mine(1), reverse([1]));");
  for (const core::Function& function : results.back().program->functions) {
    EXPECT_EQ(function.fromLibrary, function.name != "mine") << function.name;
  }
}

TEST_F(SpecialiseTest, RecursionThatWrapsFunctionsForEverIsRefused) {
  EXPECT_EQ(last("function ap(n,g) : (int, int -> int) -> int;"
                 "function wrap(n,g) = ap(n - 1, (x => g(x) + 1));"
                 "function ap(n,g) : (int, int -> int) -> int = if n == 0 then g(0) else wrap(n,g);"
                 "ap(3, (x => x));"),
            "K0405");
}

TEST_F(SpecialiseTest, SizedTypes) {
  EXPECT_EQ(last("int32(5) + int32(6);"), "it = 11 : int32");
  EXPECT_EQ(last("{float32(x) : x in [1,2]};"), "it = [1.0, 2.0] : [float32]");
  EXPECT_EQ(last("int64(5) + 6;"), "it = 11 : int");
}

}  // namespace
}  // namespace kelpie

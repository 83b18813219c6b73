// Cells and redefinition, default arguments, datatypes, variables, commands.
#include "frontend/session.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>

#include "tests/frontend/session_fixture.h"

namespace kelpie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(SessionTest, SameTypeReplacesTheContentOfTheCell) {
  EXPECT_EQ(last("function g(x) = x + 1; function h(x) = g(x) * 10; function g(x) = x + 100; h(1);"),
            "it = 1010 : int");
}

TEST_F(SessionTest, AnotherTypeMakesANewCell) {
  EXPECT_THAT(run("function g(x) = x + 1; function h(x) = g(x) * 10; function g(x) = x + 0.5; h(1); g(1.0);"),
              ElementsAre("g = fn : int -> int", "h = fn : int -> int",
                          "Redefining g with a new type.  Old calls will not be modified.",
                          "g = fn : float -> float", "it = 20 : int", "it = 1.5 : float"));
}

TEST_F(SessionTest, RecursiveDefinitionReplacesItself) {
  EXPECT_EQ(last("function d(n) = if n == 0 then 0 else 1 + d(n-1);"
                 "function d(n) = if n == 0 then 0 else 2 + d(n-1); d(4);"),
            "it = 8 : int");
}

TEST_F(SessionTest, ForwardDeclarationsAreFilledInLater) {
  EXPECT_EQ(last("function odd(n) : int -> bool;"
                 "function even(n) = if n == 0 then t else odd(n-1);"
                 "function odd(n) : int -> bool = if n == 0 then f else even(n-1); even(10);"),
            "it = T : bool");
}

TEST_F(SessionTest, CallOfADeclaredFunctionIsARunTimeError) {
  EXPECT_THAT(last("function late(n) : int -> bool; late(3);"), HasSubstr("late"));
}

TEST_F(SessionTest, UserDefinitionsNeverChangeTheLibrary) {
  EXPECT_EQ(last("function length(v) = 7; function eql(a,b) = f; function prim_pad(s,k) = s;"
                 "remove_duplicates([1,1]) ++ take([5,6],1);"),
            "it = [1, 5] : [int]");
  EXPECT_EQ(last("length([1]);"), "it = 7 : int");
}

TEST_F(SessionTest, VariablesAndIt) {
  EXPECT_EQ(last("1 + 2; it * it;"), "it = 9 : int");
  EXPECT_THAT(run("(a,b) = (1,2.5); (a,(b,c)) = (b,a,a);"),
              ElementsAre("(a, b) = (1, 2.5) : int, float",
                          "Redefining a with a new type.  Old calls will not be modified.\n"
                          "Redefining b with a new type.  Old calls will not be modified.",
                          "(a, b, c) = (2.5, 1, 1) : float, int, int"));
  EXPECT_EQ(last("k = 10; function addk(x) = x + k; k = 20; addk(1);"), "it = 21 : int");
}

TEST_F(SessionTest, VariablesHoldClosures) {
  EXPECT_EQ(last("k = 3; h = let j = k + 1 in (x => x + j); {h(i) : i in [1,2]};"), "it = [5, 6] : [int]");
}

/// What only parameters and results of a variable's functions have is free at each use; nor does a use change
/// the type of the variable, or of functions that use it.
TEST_F(SessionTest, VariablesHoldFunctionsOfManyTypes) {
  EXPECT_THAT(run("g = max; function h(a, b) = g(a, b); h(1.0, 2.0); g(1, 2); g(1.5, 2.5); h(3.0, 2.0); h;"),
              ElementsAre("g = fn : (a, a) -> a :: (a in ordinal)", "h = fn : (a, a) -> a :: (a in ordinal)",
                          "it = 2.0 : float", "it = 2 : int", "it = 2.5 : float", "it = 3.0 : float",
                          "it = fn : (a, a) -> a :: (a in ordinal)"));
  EXPECT_EQ(last("p = (sum, 1); let (q, k) = p in q([2.5]); let (q, k) = p in q([2, 3]);"), "it = 5 : int");
  EXPECT_EQ(last("fs = {(y => (y, i)) : i in [1, 2]}; {q(3) : q in fs}; {q(\"a\") : q in fs};"),
            "it = [(\"a\", 1), (\"a\", 2)] : [([char], int)]");
  EXPECT_EQ(last("c = (a => (b => (a, b))); c(1)(\"x\"); d = c(2); d(1.5); d([t]);"),
            "it = (2, [T]) : int, [bool]");
  EXPECT_EQ(last("sum; it([1, 2]); sum; it([1.5]);"), "it = 1.5 : float");
}

TEST_F(SessionTest, DefaultArguments) {
  run("function box(lo, hi := 10, by := lo_step(1)) = [lo:hi:by];");
  EXPECT_EQ(last("function box(lo, hi := 10, by := 1) = [lo:hi:by]; box(7);"), "it = [7, 8, 9] : [int]");
  EXPECT_EQ(last("box(1, by := 4);"), "it = [1, 5, 9] : [int]");
  EXPECT_EQ(last("box(by := 4, 1);"), "it = [1, 5, 9] : [int]");
  EXPECT_EQ(last("function two(a, b := 5) = (a, b); two(b := 7, 1);"), "it = (1, 7) : int, int");
  EXPECT_EQ(last("box(1, by := 2, hi := 4);"), "it = [1, 3] : [int]");
  EXPECT_EQ(last("box(1, 3, 1);"), "it = [1, 2] : [int]");
  EXPECT_EQ(last("{#box(x, hi := 3) : x in [1,2]};"), "it = [2, 1] : [int]");
  EXPECT_EQ(last("box(1, other := 2);"), "K0208");
  EXPECT_EQ(last("box(by := 2);"), "K0210");
  EXPECT_EQ(last("box(1, hi := 2, hi := 3);"), "K0209");
}

TEST_F(SessionTest, Datatypes) {
  EXPECT_THAT(run("datatype polar(float,float); function radius(polar(a,b)) = a; radius(polar(1.0,2.0));"),
              ElementsAre("polar = fn : (float, float) -> polar", "radius = fn : polar -> float",
                          "it = 1.0 : float"));
  EXPECT_EQ(last("datatype bx(a) :: (a in any); {bx(x) : x in [1,2]};"), "it = [bx(1), bx(2)] : [bx(int)]");
  EXPECT_EQ(
      last("datatype wrap(int -> int, int); function use(wrap(g,x)) = g(x); use(wrap((x => x * 2), 21));"),
      "it = 42 : int");
  EXPECT_EQ(last("polar(1.0, 2.0, 3.0);"), "K0301");
}

TEST_F(SessionTest, SameDatatypeAgainKeepsItsValues) {
  EXPECT_THAT(run("datatype w(int); x = w(3); datatype w(int); let w(y) = x in y;"),
              ElementsAre("w = fn : int -> w", "x = w(3) : w", "w = fn : int -> w", "it = 3 : int"));
}

TEST_F(SessionTest, SetAndOtherCommands) {
  std::vector<FormResult> results =
      process("set print_length 5; set verbose on; set nonsense 3; describe sum;");
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].kind, FormKind::Setting);
  EXPECT_THAT(results[0].words, ElementsAre("print_length", "5"));
  EXPECT_EQ(results[1].kind, FormKind::Setting);
  EXPECT_EQ(results[2].diagnostics.at(0).id, "K0403");
  EXPECT_EQ(results[3].diagnostics.at(0).id, "K0404");
  for (const FormResult& result : results) EXPECT_FALSE(result.failed());
  EXPECT_THAT(process("help;").at(0).diagnostics.at(0).hint, HasSubstr(":help"));
  EXPECT_THAT(process("quit;").at(0).diagnostics.at(0).hint, HasSubstr(":quit"));
}

TEST_F(SessionTest, NamesOfCommandsAreForOtherPlacesOrParentheses) {
  for (const char* form :
       {"show(3);", "set = [1, 2];", "dump, help = 3, 4;", "shell[0];", "show |= 3;", "set |= 3;"}) {
    const std::vector<FormResult> results = process(form);
    ASSERT_EQ(results.size(), 1u) << form;
    EXPECT_EQ(results[0].diagnostics.at(0).id, "K0404") << form;
    EXPECT_THAT(results[0].diagnostics[0].hint, testing::HasSubstr("in parentheses")) << form;
  }
  EXPECT_THAT(run("function show(x) = x + 1; (show(3)); (set) = [1, 2]; (set)[1];"),
              ElementsAre("show = fn : int -> int", "it = 4 : int", "set = [1, 2] : [int]", "it = 2 : int"));
}

TEST_F(SessionTest, ExitWithMoreBehindItIsWarnedOf) {
  EXPECT_TRUE(process("exit; 2;").at(0).diagnostics.empty());
  for (const char* form : {"exit(3); 2;", "exit = 3; 2;", "exit 3; 2;"}) {
    const std::vector<FormResult> results = process(form);
    ASSERT_EQ(results.size(), 1u) << form;
    EXPECT_EQ(results[0].kind, FormKind::Exit) << form;
    ASSERT_EQ(results[0].diagnostics.size(), 1u) << form;
    EXPECT_EQ(results[0].diagnostics[0].id, "K0404") << form;
    EXPECT_THAT(results[0].diagnostics[0].message, testing::HasSubstr("ends the program")) << form;
  }
}

TEST_F(SessionTest, LoadFindsFilesByConstantStrings) {
  std::string name = testing::TempDir() + "kelpie_load_test.nesl";
  std::ofstream(name) << "loaded = 41; function more(x) = x + 1;";
  std::string stem = name.substr(0, name.size() - 5);
  std::vector<FormResult> results =
      process("p = \"" + stem.substr(0, 4) + "\"; load p ++ \"" + stem.substr(4) + "\"; more(loaded);");
  ASSERT_EQ(results.size(), 4u);
  EXPECT_FALSE(results[1].shown);
  EXPECT_EQ(results[1].name, "loaded");
  EXPECT_EQ(results[3].type, "int");
  results = process("load(\"" + name + "\", print := t);");
  EXPECT_TRUE(results.at(0).shown);
  std::remove(name.c_str());
  EXPECT_EQ(process("load \"" + name + "\";").at(0).diagnostics.at(0).id, "K0402");
  EXPECT_EQ(process("load @3;").at(0).diagnostics.at(0).id, "K0402");
}

TEST_F(SessionTest, FileVariables) {
  std::vector<FormResult> results = process("v |= [1,2];");
  EXPECT_EQ(results.at(0).kind, FormKind::FileBinding);
  EXPECT_EQ(last("v |= [1,2]; sum(v);"), "it = 3 : int");
}

TEST_F(SessionTest, AMistakeBindsNothing) {
  EXPECT_THAT(run("x = 1 + t; x;"), ElementsAre("K0301", "K0201"));
}

}  // namespace
}  // namespace kelpie

// Inferred types as printed, and what the type checker refuses.
#include "frontend/infer.h"

#include <gmock/gmock.h>

#include "tests/frontend/session_fixture.h"

namespace kelpie {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

class InferTest : public SessionTest {
 protected:
  /// The printed type of the last form.
  std::string typeOf(const std::string& text) {
    std::vector<FormResult> results = process(text);
    for (const FormResult& result : results) {
      for (const Diagnostic& diagnostic : result.diagnostics) ADD_FAILURE() << sources.render(diagnostic);
    }
    return results.back().type;
  }
};

TEST_F(InferTest, FunctionsAreGeneralisedWithTheirClasses) {
  EXPECT_EQ(typeOf("function g(x) = x*x + x;"), "a -> a :: (a in number)");
  EXPECT_EQ(typeOf("function g(a,b) = (b,a);"), "(a, b) -> (b, a) :: (a in any; b in any)");
  EXPECT_EQ(typeOf("function g(v) = {sum(x) : x in v};"), "[[a]] -> [a] :: (a in number)");
  EXPECT_EQ(typeOf("function g(x,y) = (x < y, x + y);"), "(a, a) -> (bool, a) :: (a in number)");
  EXPECT_EQ(typeOf("function g(v) = if #v < 2 then v else g(drop(v,1));"), "[a] -> [a] :: (a in any)");
}

/// What is marked begins and ends with the parentheses of operands.
TEST_F(InferTest, OperationsBeginWithTheirParentheses) {
  const std::string text = "7; (1, 2) + (3, 4);";
  const Diagnostic diagnostic = mistake(text);
  EXPECT_EQ(text.substr(diagnostic.span.begin, diagnostic.span.end - diagnostic.span.begin),
            "(1, 2) + (3, 4)");
}

/// Of many arguments those are pointed at that cannot be what is expected.
TEST_F(InferTest, ArgumentsThatNeverFitAreShown) {
  const std::string function = "function g(a, b, c, d, e) = @(a + b) ++ c ++ d ++ e;";
  const auto typed = [&](const std::string& call) {
    std::vector<std::string> shown;
    for (const Diagnostic::Note& note : mistake(function + call).notes)
      if (note.message.starts_with("this has type")) shown.push_back(note.message);
    return shown;
  };
  EXPECT_EQ(typed("g(1, 2, \"x\", `y, \"z\");"), std::vector<std::string>{"this has type `char`"});
  EXPECT_EQ(typed("g(1, 2, \"x\", \"z\");"), std::vector<std::string>());
  EXPECT_EQ(typed("g(1, 2, \"x\", \"y\", \"z\", 4);"), std::vector<std::string>());
  EXPECT_EQ(typed("max(1, `a);").size(), 2u);
}

TEST_F(InferTest, FunctionsOfSeveralParametersWithoutParentheses) {
  EXPECT_EQ(mistake("function g(h, x, y) = h(x, y); g((a, b => b), 1, 2);").hint,
            "the parameters of a function without a name stand in parentheses: ((x, y) => x + y)");
  EXPECT_THAT(mistake("(nosuch, 3);").hint, Not(HasSubstr("parentheses")));
}

TEST_F(InferTest, IntersectionOfNumberAndLogicalIsInt) {
  EXPECT_EQ(typeOf("function g(x,y) = (x and y) * x;"), "(int, int) -> int");
}

TEST_F(InferTest, SignatureRestrictsTheType) {
  EXPECT_EQ(typeOf("function g(x) : int -> int = x;"), "int -> int");
  EXPECT_EQ(typeOf("function g(x) : a -> a :: (a in any) = x + x;"), "a -> a :: (a in number)");
  EXPECT_EQ(typeOf("function g(x) : (int,[float]) -> bool;"), "(int, [float]) -> bool");
}

TEST_F(InferTest, FunctionValuesKeepTheirIdentity) {
  EXPECT_EQ(typeOf("eql(abs,abs);"), "bool");
  EXPECT_EQ(mistake("[sin, cos];").id, "K0308");
  EXPECT_EQ(mistake("if t then sin else cos;").id, "K0303");
  EXPECT_THAT(mistake("if t then sin else cos;").message, HasSubstr("`sin` and `cos`"));
  EXPECT_EQ(mistake("let g = abs in (g(1), g(1.0));").id, "K0301");
}

TEST_F(InferTest, ArgumentMismatchShowsBothTypesAndTheOperands) {
  Diagnostic diagnostic = mistake("function g(x) = 1 + (x and t);");
  EXPECT_EQ(diagnostic.id, "K0301");
  EXPECT_THAT(diagnostic.message, AllOf(HasSubstr("`+` expects"), HasSubstr("`int, bool`")));
  EXPECT_THAT(diagnostic.notes, Contains(Field(&Diagnostic::Note::message, HasSubstr("`bool`"))));
}

TEST_F(InferTest, ClassConflictNamesItsOrigin) {
  Diagnostic diagnostic = mistake("function g(x) = x + 1.0; let h = g in h(t);");
  EXPECT_THAT(diagnostic.message, HasSubstr("expects `float`, but the argument has type `bool`"));
  diagnostic = mistake("function k(x, y) = let z = x * y in [z] ++ \"a\";");
  EXPECT_THAT(diagnostic.message, HasSubstr("`char` is not in class number"));
  EXPECT_THAT(diagnostic.notes, Contains(Field(&Diagnostic::Note::message, HasSubstr("needed by `*`"))));
  // through the bodies of functions
  diagnostic = mistake("function k(x) = {x == y : y in [x]}; function g(a) = {k(x) : x in a}; g([t]);");
  EXPECT_THAT(diagnostic.notes,
              Contains(Field(&Diagnostic::Note::message, HasSubstr("ordinal is needed by `k`"))));
  EXPECT_THAT(diagnostic.notes,
              Contains(Field(&Diagnostic::Note::message, HasSubstr("ordinal is needed by `==`"))));
  diagnostic = mistake("function g(x) = x * 2.0; g(3);");
  EXPECT_THAT(diagnostic.notes, Contains(Field(&Diagnostic::Note::message,
                                               HasSubstr("defined here, of type `float -> float`"))));
}

TEST_F(InferTest, AMistakeInABodyIsToldOnce) {
  size_t count = 0;
  for (const FormResult& result : process("function r(x) = if x == 0 then 1 else r(x - 1) ++ [1];"))
    count += result.diagnostics.size();
  EXPECT_EQ(count, 1u);
}

TEST_F(InferTest, WhatFollowsFromAMistakeIsNotTold) {
  EXPECT_EQ(mistake("let x = if t then \"a\" else 1 in x + 1;").id, "K0303");
  EXPECT_EQ(mistake("{if x > 1 then x else \"a\" : x in [1]} ++ [\"b\"];").id, "K0303");
  EXPECT_EQ(mistake("[1, 2.0, 3.0] ++ [2.0];").id, "K0308");
  EXPECT_EQ(mistake("function g(x) = let a = y * x in {a + y : a in [y]};").id, "K0201");
  EXPECT_EQ(process("function g(x) = y; g(1) + g(2);").at(1).diagnostics.size(), 1u);
  EXPECT_EQ(process("a + b;").at(0).diagnostics.size(), 2u);
  EXPECT_EQ(process("y; y;").at(1).diagnostics.size(), 1u) << "another form";
}

TEST_F(InferTest, HintsSayWhatIsUsuallyMeant) {
  EXPECT_EQ(mistake("fucntion g(x) = x;").hint, "did you mean `function`?");
  EXPECT_THAT(mistake("functions + 1 = 5;").hint, HasSubstr("equality is written =="));
  EXPECT_THAT(mistake("load |= [1, 2];").hint, HasSubstr("in parentheses there: (load)"));
  EXPECT_THAT(mistake("load = 3;").hint, HasSubstr("in parentheses there: (load)"));
  EXPECT_THAT(mistake("load, x = 1, 2;").hint, HasSubstr("in parentheses there: (load)"));
  EXPECT_THAT(mistake("datatype shape int | float;").hint, HasSubstr("no alternatives"));
  EXPECT_THAT(mistake("1 + 2.0;").hint, HasSubstr("float(i)"));
  EXPECT_THAT(mistake("function g(a b) = b;").hint, HasSubstr("separated by commas: a, b"));
  EXPECT_THAT(mistake("max([1, 2]);").hint, HasSubstr("max_val(v)"));
  EXPECT_THAT(mistake("min([1, 2]);").hint, HasSubstr("min_val(v)"));
  EXPECT_THAT(mistake("while 3;").hint, HasSubstr("a function that calls itself"));
  EXPECT_THAT(mistake("case 3;").hint, HasSubstr("else if"));
  EXPECT_THAT(mistake("function h(a) = let p = a[0]; r = "
                      "{e in a | e < p} in r ++ p;")
                  .hint,
              HasSubstr("[x] is a sequence of one element"));
  EXPECT_THAT(mistake("function g(seen) = {v in [0, 1] | not seen[v]};").hint, HasSubstr("not(v[i])"));
  EXPECT_THAT(mistake("function even(x) = x mod 2 == 0; even(4);").hint, HasSubstr("mod(x, y)"));
  EXPECT_THAT(mistake("function small(x) = (x mod 2 == 0) and (x > 1);").hint, HasSubstr("mod(x, y)"));
  EXPECT_THAT(mistake("function g(x, y) = x == 1 || y == 2;").hint, HasSubstr("`and` and `or`"));
  EXPECT_EQ(
      mistake("datatype p (int, int); function g(p(a, b)) = a; datatype p (float, float); g(p(1.0, 2.0));")
          .hint,
      "`p` has been defined again, and what was defined before means the earlier one");
  EXPECT_EQ(mistake("float(2.0);").hint,
            "this is of type `float` already, which is what `float` would make it");
  EXPECT_EQ(mistake("round(2);").hint, "this is of type `int` already, which is what `round` would make it");
  EXPECT_THAT(mistake("floor(`a);").hint, Not(HasSubstr("already")));
  EXPECT_THAT(mistake("function round(x) = x ++ \"a\"; round(2);").hint, Not(HasSubstr("already")));
  EXPECT_THAT(mistake("max(1,2,3);").hint, HasSubstr("takes 2 arguments, 3 are given"));
  EXPECT_THAT(mistake("dist(1);").hint, HasSubstr("takes 2 arguments, 1 is given"));
  EXPECT_THAT(
      mistake("function twice(x) = (x, x); function three(x, y, k) = x + y + k; three(twice(1), 5);").hint,
      HasSubstr("of which a pair is one"));
  EXPECT_THAT(mistake("-[1, 2];").hint, HasSubstr("{-a : a in v}"));
  EXPECT_EQ(mistake("-\"a\";").hint, "");
  EXPECT_THAT(mistake("\"a\" + \"b\";").hint, HasSubstr("v ++ w"));
  EXPECT_THAT(mistake("let id = x => x in (id(1), id(`a));").notes,
              Contains(Field(&Diagnostic::Note::message, HasSubstr("functions of one type"))));
  EXPECT_THAT(mistake("if t then 1 else 2, 3;").hint, HasSubstr("parentheses"));
  EXPECT_THAT(mistake("t == f;").hint, HasSubstr("eql"));
  EXPECT_THAT(mistake("t || f;").hint, HasSubstr("`and` and `or`"));
  EXPECT_THAT(mistake("[1 2];").hint, HasSubstr("between elements goes a comma"));
  EXPECT_THAT(mistake("f(1);").hint, HasSubstr("`f` is the constant false"));
  EXPECT_THAT(mistake("{t x : x in [1]};").hint, HasSubstr("`t` is the constant true"));
  EXPECT_THAT(mistake("[1] <- (0, 1);").hint, HasSubstr("[(INDEX, VALUE)"));
  EXPECT_THAT(mistake("[1, 2] + 1;").hint, HasSubstr("{a + b : a in "));
  EXPECT_THAT(mistake("-[1, 2];").hint, HasSubstr("{-a : a in "));
  EXPECT_THAT(mistake("(1, 2) + 1;").hint, HasSubstr("one by one"));
  EXPECT_THAT(mistake("{c in \"ab\" | c == \"a\"};").hint, HasSubstr("a character is written `a"));
  EXPECT_THAT(mistake("[1] == [2];").hint, HasSubstr("eql(a,b)"));
  // ... and nothing is said of the call around it.
  EXPECT_EQ(mistake("let (s, x) = scan((a, b) => if a > b then a else b, -1, [3, 1]) in (s, x);").hint,
            "`else` reaches over commas: an `if` in a list needs parentheses");
  EXPECT_EQ(mistake("1 < 2 < 3;").hint, "comparisons are joined by `and`: a < b and b < c");
  EXPECT_EQ(mistake("plus_scan([t, f]);").hint, "btoi(b) makes 1 or 0 of a bool b");
  EXPECT_EQ(mistake("pack([1, 2], [t, f]);").hint,
            "`pack` takes 1 argument, 2 are given; zip(v, w) makes one of two sequences");
  EXPECT_EQ(mistake("{a : (a, _, _) in [(1, 2, 3)]};").hint,
            "`_` is a name like others; one for all that is left is enough: (a, _)");
  EXPECT_EQ(mistake("max_val([(1, 2)]);").hint, "numbers and characters have an order");
  EXPECT_EQ(mistake("true;").hint, "`t` is the constant true");
  EXPECT_EQ(mistake("not(false);").hint, "`f` is the constant false");
  EXPECT_THAT(mistake("#3;").message, HasSubstr("`#` expects"));
}

TEST_F(InferTest, PartsOfPairsAreNotCountedAsArguments) {
  EXPECT_EQ(mistake("function d2((a, b), (c, d)) = a * c + b * d; d2(1, 2, 3, 4);").hint,
            "argument 1 of `d2` is a pair: ((A, B), ...)");
  EXPECT_EQ(mistake("function plus2(a, b) = a + b + 1; plus2((1, 2), (3, 4));").hint,
            "argument 1 of `plus2` is no pair");
  const std::string vec = "datatype vec(float, float);";
  EXPECT_EQ(mistake(vec + "function g(vec(a, b), vec(c, d)) = a + d; g((1.0, 2.0), (3.0, 4.0));").hint,
            "a `vec` is made by vec(...)");
  EXPECT_EQ(mistake(vec + "function first(p) = let (x, y) = p in x; first(vec(1.0, 2.0));").hint,
            "the parts of a `vec` have names in a pattern vec(...)");
}

TEST_F(InferTest, WhatOtherLanguagesHaveIsHintedAt) {
  EXPECT_THAT(mistake("len([1, 2]);").hint, HasSubstr("#v"));
  EXPECT_THAT(mistake("filter(evenp, [1, 2]);").hint, HasSubstr("{x in v | CONDITION}"));
  EXPECT_EQ(mistake("let sizes = [1] in size;").hint, "did you mean `sizes`?");
  EXPECT_THAT(mistake("abs -3;").hint, HasSubstr("g(-x)"));
  EXPECT_THAT(mistake("[1..10];").hint, HasSubstr("[start:end]"));
  EXPECT_THAT(mistake("1.2.3;").hint, HasSubstr("one point"));
  EXPECT_THAT(mistake("{1 : x in [1, 2], 2 > 1};").hint, HasSubstr("behind a bar"));
}

TEST_F(InferTest, FormsWithoutTheirSemicolonAreHintedAt) {
  EXPECT_THAT(mistake("function fact(n) = if n == 0 then 1 else n * fact(n - 1)\nfact(5);").hint,
              HasSubstr("behind a form goes a `;`"));
  EXPECT_THAT(mistake("function g(x) = x * quuxly(x);").hint, Not(HasSubstr("behind a form")));
}

TEST_F(InferTest, NamesInScopeAreSuggestedBeforeTheLibrarys) {
  EXPECT_EQ(mistake("int(\"3\");").hint.substr(0, 8), "round(x)");
  EXPECT_EQ(mistake("# nil;").hint, "an empty sequence names the type of its elements: [] int");
  EXPECT_EQ(mistake("var q7 = 3;").hint, "a value is bound by NAME = VALUE, whatever its type");
  EXPECT_EQ(mistake("take(2, [1, 2, 3]);").hint, "`take` takes these arguments in the other order");
  EXPECT_EQ(mistake("[1, 2] -> 1;").hint, "v[i] is one element, v -> [i, j] are several");
  EXPECT_EQ(mistake("[\"ab\", 3];").hint, "@x is the text of a value x");
  EXPECT_EQ(mistake("[`a, 3];").hint, "");
  EXPECT_EQ(mistake("{i : i in 5};").hint, "[0:n] are the integers from 0 up to n - 1");
  EXPECT_NE(mistake("let (a, b) = [1, 2] in a;").hint.find("v[0], v[1]"), std::string::npos);
  EXPECT_NE(mistake("(1, 2) + (3, 4);").hint.find("one by one"), std::string::npos);
  EXPECT_NE(mistake("sort(\"hello\");").hint.find("rank(KEYS)"), std::string::npos);
  EXPECT_NE(mistake("map(x => let y = x + 1 in y * y, [1, 2, 3]);").hint.find("reaches over commas"),
            std::string::npos);
  EXPECT_EQ(mistake("let abc = 5 in abcd;").hint, "did you mean `abc`?");
  EXPECT_EQ(mistake("let x = 5 in y;").hint, "");  // every other letter is as near
  EXPECT_EQ(mistake("let xs = 5 in x;").hint, "did you mean `xs`?");
  EXPECT_EQ(mistake("let number = 5 in numbers;").hint, "did you mean `number`?");
  const std::string name(20'000, 'n');  // takes no time for 4*10^8 letters
  EXPECT_EQ(mistake("let " + name + " = 5 in x" + name + "y;").hint, "did you mean `" + name + "`?");
  EXPECT_EQ(mistake("{item : itm in [1]};").hint, "did you mean `itm`?");
  EXPECT_EQ(mistake("function fac(n) = if n == 0 then 1 else n * fact(n - 1);").hint, "did you mean `fac`?");
}

TEST_F(InferTest, DefinitionsFurtherDownAreFound) {
  const std::vector<FormResult> results = process(
      "function ev(n) = if n == 0 then t else od(n - 1);"
      "function od(n) = if n == 0 then f else n < 0;");
  ASSERT_EQ(results.size(), 2u);
  ASSERT_EQ(results[0].diagnostics.size(), 1u);
  const Diagnostic& diagnostic = results[0].diagnostics[0];
  EXPECT_EQ(diagnostic.message, "`od` is not defined yet");
  EXPECT_THAT(diagnostic.hint, HasSubstr("declared first: function od(PARAMETERS)"));
  ASSERT_EQ(diagnostic.notes.size(), 1u);
  EXPECT_EQ(diagnostic.notes[0].span.begin, 58u);
  EXPECT_TRUE(results[1].diagnostics.empty());
  const Diagnostic value = mistake("hh + 1; (gg, hh) = (3, 4);");
  EXPECT_EQ(value.message, "`hh` is not defined yet");
  EXPECT_THAT(value.hint, HasSubstr("bound before it is used"));
  const Diagnostic type = mistake("datatype pt(nd, int); datatype nd int;");
  EXPECT_EQ(type.message, "the type `nd` is not defined yet");
  ASSERT_EQ(type.notes.size(), 1u);
  EXPECT_EQ(type.notes[0].span.begin, 31u);
  EXPECT_EQ(mistake("function g(x) : number -> number = x;").message,
            "`number` is a class of types, and no type");
}

/// Named arguments of a function whose definition has a mistake are none.
TEST_F(InferTest, NamedArgumentsOfWhatHasFailed) {
  const std::vector<FormResult> results =
      process("function q(a, b := 3) = a + zz; q(1); q(1, b := 4); [1](b := 2);");
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[1].diagnostics.at(0).id, "K0201");
  EXPECT_EQ(results[2].diagnostics.at(0).id, "K0201");
  EXPECT_FALSE(results[2].diagnostics.at(0).shown);
  EXPECT_EQ(results[3].diagnostics.at(0).id, "K0208");
}

TEST_F(InferTest, UnknownNamesSuggestNearOnes) {
  EXPECT_THAT(mistake("lenght([1]);").hint, HasSubstr("`length`"));
  EXPECT_THAT(mistake("first([1, 2]);").hint, HasSubstr("v[0]"));
  EXPECT_THAT(mistake("nan;").hint, HasSubstr("no literal for NaN"));
  EXPECT_THAT(mistake("function g(x) : string -> int = #x;").hint, HasSubstr("[char]"));
  EXPECT_THAT(mistake("function g(x) : int -> double = float(x);").hint, HasSubstr("`float`"));
  EXPECT_THAT(mistake("foldl(max, 0, [1]);").hint, HasSubstr("scan(g, identity, v)"));
  EXPECT_THAT(mistake("reduce(max, 0, [1]);").hint, HasSubstr("scan(g, identity, v)"));
  EXPECT_THAT(mistake("function mine(x) = x; mien(3);").hint, HasSubstr("`mine`"));
  EXPECT_EQ(mistake("quuxly;").hint, "");
  for (const char* far : {"n;", "fact;", "with;", "math;", "x1;"}) EXPECT_EQ(mistake(far).hint, "") << far;
  EXPECT_THAT(mistake("sun([1]);").hint, HasSubstr("`sum`"));
  EXPECT_THAT(mistake("head([1]);").hint, HasSubstr("v[0]"));
  EXPECT_THAT(mistake("tail([1]);").hint, HasSubstr("drop(v, 1)"));
  EXPECT_THAT(mistake("last([1]);").hint, HasSubstr("v[#v - 1]"));
}

TEST_F(InferTest, NamesOfFormsWithMistakesAreKnown) {
  for (const char* text :
       {"function g(x) = x + t; g(1);", "a, (b, g) = 1 + t; g;", "datatype g(foo); g(1);"}) {
    const auto results = process(text);
    ASSERT_EQ(results.size(), 2u) << text;
    const Diagnostic& diagnostic = results[1].diagnostics.at(0);
    EXPECT_EQ(diagnostic.message, "`g` is not defined, because its definition has a mistake");
    EXPECT_EQ(diagnostic.notes.size(), 1u);
  }
}

TEST_F(InferTest, DefinitionsWithMistakesHideWhatTheNameMeantBefore) {
  for (const char* text :
       {"function window(a) = t + a; window(3);", "function g(x) = x; function g(x) = x + t; g(1);",
        "function sum(x) = (x; sum([1]);"}) {
    const std::vector<FormResult> results = process(text);
    EXPECT_THAT(results.back().diagnostics.at(0).message,
                HasSubstr("is not defined, because its definition has a mistake"))
        << text;
  }
  EXPECT_TRUE(process("function sum(x) = x + t; function sum(x) = x; sum(3);").back().diagnostics.empty());
  process("function sum(x) = x + t;");
  EXPECT_TRUE(process("sum([1]);").back().diagnostics.empty());  // as at the prompt
}

TEST_F(InferTest, NamesOfFormsThatCannotBeParsedAreKnown) {
  for (const char* text :
       {"function g(x) = if x then 2; g(1);", "Function G(x) = (x + 1; g(1);",
        "function g(x) = x + 1); g(1);", "a, (point(b), g) = 1 +; g;", "g |= [1,,2]; g;",
        "datatype g (int,; g(1);", "datatype g (int,; {a : g(a) in [1]};", "g = {t : t in [1]}; g;"}) {
    const auto results = process(text);
    ASSERT_EQ(results.size(), 2u) << text;
    const Diagnostic& diagnostic = results[1].diagnostics.at(0);
    EXPECT_EQ(diagnostic.message, "`g` is not defined, because its definition has a mistake") << text;
    EXPECT_EQ(diagnostic.notes.size(), 1u);
  }
  // `g` may be a function, or a record type that is taken apart.
  EXPECT_THAT(process("g(x) = 1 +; g;").at(1).diagnostics.at(0).message,
              HasSubstr("definition has a mistake"));
  EXPECT_TRUE(process("datatype point(int); point(g) = 1 +; point(1);").at(2).diagnostics.empty());
  EXPECT_THAT(process("funtion h(x) = x * 2; h(2);").at(1).diagnostics.at(0).message,
              HasSubstr("definition has a mistake"));
  EXPECT_FALSE(process("x = sum([1]\nbehind = 3;\nbehind + 1;").at(1).diagnostics.at(0).shown);
  EXPECT_FALSE(process("let x = 3;\nlet y = 4;\nx + y;").at(1).diagnostics.at(0).shown);
  EXPECT_EQ(process("later(3) +; later(1);").at(1).diagnostics.at(0).message, "`later` is not defined");
  EXPECT_EQ(process("later(1); function later(x) = (x;").at(0).diagnostics.at(0).message,
            "`later` is not defined");
}

/// What was to be bound is not the constant either.
TEST_F(InferTest, ConstantsThatSomebodyBinds) {
  const auto results = process("t = [1, 2]; t[0]; sum(t); not(f);");
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].diagnostics.at(0).id, "K0114");
  EXPECT_THAT(results[1].diagnostics.at(0).message, HasSubstr("because its definition has a mistake"));
  EXPECT_FALSE(results[2].diagnostics.at(0).shown);
  EXPECT_TRUE(results[3].diagnostics.empty());
  EXPECT_TRUE(process("not(t);").back().diagnostics.empty());
  // The library means the constants.
  const auto inLibrary = process("function f(n) = n; eql(\"a\", \"b\"); f(1);");
  ASSERT_EQ(inLibrary.size(), 3u);
  EXPECT_EQ(inLibrary[0].diagnostics.at(0).id, "K0114");
  EXPECT_TRUE(inLibrary[1].diagnostics.empty());
  EXPECT_EQ(inLibrary[2].diagnostics.at(0).id, "K0201");
}

TEST_F(InferTest, TypesWhoseDefinitionsHaveMistakes) {
  const auto results = process("datatype g (int,; function k(x) : [g] -> int = 0;");
  const Diagnostic& diagnostic = results.at(1).diagnostics.at(0);
  EXPECT_EQ(diagnostic.message, "the type `g` is not known, because its definition has a mistake");
  EXPECT_EQ(diagnostic.hint, "");
  EXPECT_TRUE(diagnostic.followsAnother);
}

TEST_F(InferTest, InternalNamesAreInvisible) {
  EXPECT_EQ(mistake("prim_slice([1],0,1,1);").id, "K0201");
  EXPECT_THAT(mistake("prim_slize([1],0,1,1);").hint, testing::Not(HasSubstr("prim_")));
}

TEST_F(InferTest, Patterns) {
  EXPECT_EQ(mistake("let (x,x) = (1,2) in x;").id, "K0202");
  EXPECT_EQ(mistake("function g(x,x) = x;").id, "K0202");
  EXPECT_EQ(mistake("let nosuch(a) = 1 in a;").id, "K0203");
  EXPECT_EQ(mistake("let (a,b) = [1,2] in a;").id, "K0307");
  EXPECT_EQ(mistake("{a : (a,b,c) in [(1,2)]};").id, "K0307");
  EXPECT_EQ(mistake("a, b = 1;").id, "K0307");
}

TEST_F(InferTest, Types) {
  EXPECT_EQ(mistake("datatype d(nosuch);").id, "K0204");
  EXPECT_EQ(mistake("datatype d(intt);").hint, "did you mean `int`?");
  EXPECT_EQ(mistake("datatype point(int, int); datatype line(pont, point);").hint, "did you mean `point`?");
  EXPECT_EQ(mistake("datatype d(int,[d]);").id, "K0204");
  EXPECT_EQ(mistake("datatype d(int,[d]);").message, "the record type `d` cannot be a part of itself");
  EXPECT_EQ(mistake("datatype d(a) :: (a in number); function g(x) : d(int,int) -> int = 0;").message,
            "the record type `d` has 1 type parameter, not 2");
  EXPECT_EQ(mistake("function g(x) : a -> a = x;").id, "K0204");
  EXPECT_EQ(mistake("function g(x) : a -> a :: (a in nosuch) = x;").id, "K0205");
  EXPECT_EQ(mistake("datatype p(a,a) :: (a in number; a in any);").id, "K0206");
}

TEST_F(InferTest, Expressions) {
  EXPECT_EQ(mistake("{x : x in 5};").id, "K0306");
  EXPECT_EQ(mistake("if 1 then 2 else 3;").id, "K0304");
  EXPECT_EQ(mistake("{x in [1] | x};").id, "K0313");
  EXPECT_EQ(mistake("3(4);").id, "K0305");
  const Diagnostic hidden = mistake("let count = 3 in count([t, f]);");
  EXPECT_THAT(hidden.hint, HasSubstr("another name"));
  EXPECT_THAT(hidden.notes, Contains(Field(&Diagnostic::Note::message,
                                           "`count` is bound here, and hides the function of this name")));
  EXPECT_THAT(mistake("function total(sum) = sum(sum);").notes,
              Contains(Field(&Diagnostic::Note::message, HasSubstr("hides the function"))));
  EXPECT_THAT(mistake("let c = 3 in c(4);").notes,
              Contains(Field(&Diagnostic::Note::message, "`c` is bound here")));
  EXPECT_THAT(mistake("5 mod 3;").hint, HasSubstr("mod(a, b)"));
  EXPECT_THAT(mistake("5 div 3;").hint, HasSubstr("a / b"));
  EXPECT_THAT(mistake("\"n=\" ++ 5;").hint, HasSubstr("@x"));
  EXPECT_THAT(mistake("\"abc\" ++ `d;").hint, HasSubstr("[c]"));
  EXPECT_THAT(mistake("[1.0] ++ [2];").hint, HasSubstr("float(i)"));
  EXPECT_THAT(mistake("2.0 ^ 0.5;").hint, HasSubstr("expt(x, y)"));
  EXPECT_THAT(mistake("let p = (1, 2) in p[0];").hint, HasSubstr("(a, b) = PAIR"));
  EXPECT_THAT(mistake("sqrt float 4;").hint, HasSubstr("g(h(x))"));
  EXPECT_THAT(mistake("[1.0:5.0];").hint, HasSubstr("fseq(start, stride, end)"));
  EXPECT_EQ(mistake("[1.0:5.0];").notes.size(), 2u);  // not of the stride, which is not there
  EXPECT_EQ(mistake("[1.0:5.0:0.5];").notes.size(), 3u);
  EXPECT_EQ(mistake("[1, 2.0];").id, "K0308");
  EXPECT_EQ(mistake("function g(x) = g([x]);").id, "K0301");
  EXPECT_EQ(mistake("function g(x) : int -> float = x + 1;").id, "K0309");
  // One variable has one name in the message.
  EXPECT_EQ(mistake("function g(x) = g;").message,
            "the result of `g` has type `b -> a`, but it is used with type `a`: the type would have to "
            "contain itself");
  // Types are shown without what their functions are.
  EXPECT_THAT(mistake("function g(n, k) = if n == 0 then k(0) else g(n - 1, (x => k(x + 1)));").hint,
              HasSubstr("which function it is"));
  EXPECT_THAT(mistake("function g(x) : a -> [a] :: (a in any) = [] a;").hint,
              HasSubstr("not known in the body"));
  EXPECT_EQ(mistake("99999999999999999999;").id, "K0311");
}

TEST_F(InferTest, LeastIntIsALiteral) {
  EXPECT_EQ(last("-9223372036854775808 == min_int;"), "it = T : bool");
  EXPECT_EQ(mistake("9223372036854775808;").id, "K0311");
}

TEST_F(InferTest, SerialFunctionsInParallel) {
  EXPECT_EQ(mistake("{rand_seed(x) : x in [1,2]};").id, "K0401");
  EXPECT_EQ(mistake("function inner(x) = rand_seed(x); function outer(v) = {inner(x) : x in v};").id,
            "K0401");
  EXPECT_THAT(mistake("function inner(x) = rand_seed(x); {inner(x) : x in [1]};").notes.at(0).message,
              HasSubstr("`inner` calls a function with an effect"));
  EXPECT_EQ(mistake("function ap(g,x) = g(x); {ap(rand_seed,x) : x in [1]};").id, "K0401");
  EXPECT_EQ(last("{* rand_seed(x) : x in [1,2]};"), "it = [T, T] : [bool]");
}

TEST_F(InferTest, EveryMistakeOfAFormIsReported) {
  std::vector<FormResult> results = process("(1 + t, nosuch, 2 + 3);");
  std::vector<std::string> ids;
  for (const Diagnostic& diagnostic : results.front().diagnostics) ids.push_back(diagnostic.id);
  EXPECT_THAT(ids, ElementsAre("K0301", "K0201"));
  EXPECT_FALSE(results.front().program);
}

TEST_F(InferTest, WholeLibraryIsWellTyped) {
  SourceManager librarySources;
  Library library(librarySources);
  EXPECT_GT(library.names().size(), 100u);
  for (const std::string& name : library.names()) {
    EXPECT_NE(session.environment().lookup(name, true), nullptr) << name;
  }
  for (const Builtin& builtin : builtins()) {
    EXPECT_NE(session.environment().lookup(std::string(builtin.name), true), nullptr) << builtin.name;
  }
}

}  // namespace
}  // namespace kelpie

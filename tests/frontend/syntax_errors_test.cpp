// What is said about wrong text, and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parsing.h"

namespace kelpie {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SyntaxErrors, SayWhatWasExpected) {
  EXPECT_EQ(parseText("1 +;").errors, "1:4: expected an expression but found `;` [K0101]\n");
  EXPECT_EQ(parseText("if t 1 else 2;").errors, "1:8: expected `then` but found `else` [K0101]\n");
  EXPECT_EQ(parseText("if t then 1;").errors, "1:12: expected `else` but found `;` [K0101]\n");
  EXPECT_EQ(parseText("let a 3 in a;").errors, "1:7: expected `=` but found `3` [K0101]\n");
  EXPECT_EQ(parseText("let a = 1;; b = 2 in a;").errors,
            "1:11: expected a binding or `in` but found `;` [K0101]\n");
  EXPECT_EQ(parseText("[1,,2];").errors, "1:4: expected an expression but found `,` [K0101]\n");
  EXPECT_EQ(parseText("(1,);").errors, "1:4: expected an expression but found `)` [K0101]\n");
  EXPECT_EQ(parseText("{x : };").errors, "1:6: expected a name or a pattern but found `}` [K0101]\n");
  EXPECT_EQ(parseText("function g(x) x;").errors, "1:15: expected `:` or `=` but found `x` [K0101]\n");
  EXPECT_EQ(parseText("function g(x : int) -> int : int -> int = x;").errors,
            "1:28: expected `=` but found `:` [K0101]\n");
  EXPECT_EQ(parseText("function g(x) : -> int = x;").errors,
            "1:17: expected a type but found `->` [K0101]\n");
  EXPECT_EQ(parseText("x = and 1;").errors, "1:5: expected an expression but found `and` [K0101]\n");
}

TEST(SyntaxErrors, Hints) {
  EXPECT_THAT(parseText("a.x;").hints, HasSubstr("let (x, y) = a in x"));
  EXPECT_THAT(parseText("sum([1..n]);").hints, HasSubstr("[start:end]"));
  EXPECT_THAT(parseText("function g(x)\n  let y = x in y;").hints, HasSubstr("function NAME(X, Y) = BODY"));
  EXPECT_THAT(parseText("% codes such as %7A and so on % 1;").hints, HasSubstr("ends a comment"));
  EXPECT_THAT(parseText("if n < 2 then [] else [1];").hints, HasSubstr("[] "));
  EXPECT_THAT(parseText("if a = b then 1 else 2;").hints, HasSubstr("equality is written =="));
  EXPECT_THAT(parseText("let a = b = c in a;").hints, HasSubstr("equality is written =="));
  EXPECT_THAT(parseText("x = if a then b else lett y = 1 in y;").hints, HasSubstr("did you mean `let`?"));
  EXPECT_THAT(parseText("let x = g(1), y = 2 in x;").hints, HasSubstr("separated by `;`"));
  EXPECT_THAT(parseText("let a = 1 b = 2 in a;").hints, HasSubstr("separated by `;`"));
  EXPECT_THAT(parseText("let a = g(1) b = 2 in a;").hints, HasSubstr("separated by `;`"));
  EXPECT_THAT(parseText("let x = 1 in (x, y = 2);").hints, HasSubstr("equality is written =="));
  EXPECT_THAT(parseText("let x = 1 and y = 2 in x;").hints, HasSubstr("separated by `;`"));
  EXPECT_THAT(parseText("if x == 3 then y = 4 else y = 5;").hints, HasSubstr("nothing is assigned"));
  EXPECT_THAT(parseText("datatype vec = (float, float);").hints, HasSubstr("datatype NAME(TYPE, ...)"));
  EXPECT_THAT(parseText("x = 3\ny = 4;").hints, HasSubstr("the one before it lacks its `;`"));
  EXPECT_THAT(parseText("1 + 2\nc = 3;").hints, HasSubstr("the one before it lacks its `;`"));
  EXPECT_THAT(parseText("1 + 2 = 3;").hints, HasSubstr("a pattern is a name"));
  EXPECT_THAT(parseText("{x for x in v};").hints, HasSubstr("{BODY : X in SEQUENCE}"));
  EXPECT_THAT(parseText("function g(a, b) : int, int -> int = a;").hints, HasSubstr("(A, B) -> C"));
  EXPECT_THAT(parseText("x ** 2;").hints, HasSubstr("x ^ n"));
  EXPECT_THAT(parseText("`a`;").hints, HasSubstr("one quote"));
  EXPECT_THAT(parseText("x = [`a`, `b`];").hints, HasSubstr("one quote"));
  EXPECT_THAT(parseText("x = [`a, `b] y;").hints, testing::Not(HasSubstr("one quote")));
  EXPECT_THAT(parseText("# comment\nx = 3;").hints, HasSubstr("two %"));
  EXPECT_THAT(parseText("// comment\nx = 3;").hints, HasSubstr("two %"));
  EXPECT_THAT(parseText("def g(x) = x + 1;").hints, HasSubstr("function NAME(X)"));
  EXPECT_THAT(parseText("function g(x : int, y : float = 3.0) -> int = x;").hints,
              HasSubstr("NAME : TYPE := VALUE"));
  EXPECT_THAT(parseText("function g(x, y = 3) = x;").hints, HasSubstr("NAME : TYPE := VALUE"));
  EXPECT_THAT(parseText("function g = 3;").hints, HasSubstr("is bound by NAME = VALUE"));
  EXPECT_THAT(parseText("and(t, f);").hints, HasSubstr("between its operands"));
  EXPECT_THAT(parseText("let x == 1 in x;").hints, HasSubstr("NAME = VALUE"));
  EXPECT_THAT(parseText("let x := 1 in x;").hints, HasSubstr("NAME = VALUE"));
  EXPECT_THAT(parseText("function k(x)(y) = x + y;").hints, HasSubstr("one pair of parentheses"));
  EXPECT_THAT(parseText("function m(x) => x + 1;").hints, HasSubstr("NAME(X, Y) = BODY"));
  EXPECT_THAT(parseText("apply(+, (1, 2));").hints, HasSubstr("=>"));
  EXPECT_THAT(parseText("apply(#, [1]);").hints, HasSubstr("=>"));
  EXPECT_THAT(parseText("{x + 1, x in [1, 2]};").hints, HasSubstr("{BODY : X in SEQUENCE}"));
  EXPECT_THAT(parseText("if a then 1 elseif b then 2 else 3;").hints, HasSubstr("else if"));
  EXPECT_THAT(parseText("let function h(x) = x in h(3);").hints, HasSubstr("at top level"));
  EXPECT_THAT(parseText("{let y = x : x in v};").hints, HasSubstr("ends with `in`"));
  EXPECT_THAT(parseText("x = 3 > 2 ? 1 : 0;").hints, HasSubstr("if CONDITION then A else B"));
  EXPECT_THAT(parseText("x = 1; x += 1;").hints, HasSubstr("a function that calls itself"));
  EXPECT_THAT(parseText("x = 1 +;").hints, testing::Not(HasSubstr("calls itself")));
  EXPECT_THAT(parseText("while x < 3 do x = x + 1;").hints, HasSubstr("a function that calls itself"));
  EXPECT_THAT(parseText("v[0] = 5;").hints, HasSubstr("v <- [(I, X)]"));
  EXPECT_THAT(parseText("function g(v) : [int,int] = v;").hints, HasSubstr("a pair is (A, B)"));
  EXPECT_THAT(parseText("g = lambda x: x + 1;").hints, HasSubstr("(X, Y) => BODY"));
  EXPECT_THAT(parseText("sum(x * x for x in v);").hints, HasSubstr("stands in braces"));
  EXPECT_THAT(parseText("{x : x <- v};").hints, HasSubstr("{BODY : X in SEQUENCE}"));
  EXPECT_THAT(parseText("{x : x, y <- v};").hints, HasSubstr("{BODY : X in SEQUENCE}"));
  EXPECT_THAT(parseText("{x : z in w; p(x, y), w <- v};").hints, HasSubstr("{BODY : X in SEQUENCE}"));
  EXPECT_THAT(parseText("{x <- [(0, x)] <- : x in v};").hints, testing::Not(HasSubstr("{BODY : X")));
  EXPECT_THAT(parseText("let n = 1, p(x, y) = q in n;").hints, HasSubstr("separated by `;`"));
  EXPECT_THAT(parseText("function g(x) = let s = x; s;\nfunction h(x) = x;").hints, HasSubstr("in RESULT"));
  EXPECT_THAT(parseText("[1, 2,];").hints, HasSubstr("no comma"));
  EXPECT_THAT(parseText("x := 3;").hints, HasSubstr("a value is bound by NAME = VALUE"));
  EXPECT_THAT(parseText("let a = 1\n    b = 2 in a;").hints, HasSubstr("separated by `;`"));
  EXPECT_THAT(parseText("function g(x) : int -> int\n  if x > 0 then x else 1;").hints,
              HasSubstr("behind a `=`"));
  EXPECT_THAT(parseText("{x : x in [1,2]; | x > 1};").hints, HasSubstr("no `;` stands before the filter"));
  EXPECT_THAT(parseText("[x * 2 | x in a];").hints, HasSubstr("stands in braces"));
  EXPECT_THAT(parseText("a | b;").hints, HasSubstr("`and` and `or`"));
  EXPECT_THAT(parseText("if t then 1;").hints, HasSubstr("every `if` has an `else`"));
  EXPECT_THAT(parseText("f(x) = x + 1;").hints, HasSubstr("function NAME(X) = BODY"));
  EXPECT_THAT(parseText("{x : x in [1, 2] if x > 1};").hints, HasSubstr("stands behind a bar"));
  EXPECT_THAT(parseText("{x in v : x > 1};").hints, HasSubstr("stands behind a bar"));
  EXPECT_THAT(parseText("{i : i in 0:10};").hints, HasSubstr("a range is [start:end]"));
  EXPECT_THAT(parseText("{x : x = [1, 2]};").hints, HasSubstr("behind `in`"));
  EXPECT_THAT(parseText("{x + y : x in v; y = w};").hints, HasSubstr("behind `in`"));
  EXPECT_THAT(parseText("datatype acc(a) ([char], a) :: (a in number);").hints, HasSubstr("are not listed"));
  EXPECT_THAT(parseText("a[0:2];").hints, HasSubstr("subseq"));
  EXPECT_THAT(parseText("sum [1,2];").hints, HasSubstr("sum([...])"));
  EXPECT_THAT(parseText("[0:1:2:3];").hints, HasSubstr("[start:end:stride]"));
  EXPECT_THAT(parseText("a & b;").hints, HasSubstr("`and`"));
  EXPECT_THAT(parseText("!x;").hints, HasSubstr("not(x)"));
  EXPECT_THAT(parseText("'a';").hints, HasSubstr("backquote"));
  EXPECT_THAT(parseText("1 != 2;").hints, HasSubstr("inequality is written /="));
  EXPECT_THAT(parseText("1 <> 2;").hints, HasSubstr("inequality is written /="));
  EXPECT_THAT(parseText("5 % 2;").hints, HasSubstr("rem(a, b)"));
  EXPECT_THAT(parseText("[[1],[],[2]];").hints, HasSubstr("[] int"));
  EXPECT_THAT(parseText("g([]);").hints, HasSubstr("[] int"));
  EXPECT_THAT(parseText("x = [];").hints, HasSubstr("[] int"));
  EXPECT_THAT(parseText("function g() = 3;").hints, HasSubstr("at least one argument"));
  EXPECT_THAT(parseText("function g(x) { x + 1 };").hints, HasSubstr("behind a `=`"));
  EXPECT_THAT(parseText("for x in [1, 2] { x };").hints, HasSubstr("{BODY : X in SEQUENCE}"));
  EXPECT_THAT(parseText("let [a] = [1] in a;").hints, HasSubstr("not taken apart"));
  EXPECT_THAT(parseText("[x * x : x in [1]];").hints, HasSubstr("stands in braces"));
  EXPECT_THAT(parseText("[x in [1]];").hints, HasSubstr("stands in braces"));
  EXPECT_THAT(parseText("[let a = 1; b = 2 a in b];").hints, testing::Not(HasSubstr("braces")));
  EXPECT_THAT(parseText("{x : x in a, y in b};").hints, HasSubstr("separated by `;`"));
  EXPECT_THAT(parseText("{x, y : x in a, (y, z) in b | y > 1};").hints, HasSubstr("separated by `;`"));
  EXPECT_THAT(parseText("function g x y = x;").hints, HasSubstr("g(x, y)"));
  EXPECT_THAT(parseText("{x | x in [1]};").hints, HasSubstr("a colon stands before the bindings"));
  EXPECT_THAT(parseText("{a : a in [1] | a > 1; b in [3]};").hints, HasSubstr("the filter comes last"));
  EXPECT_THAT(parseText("{x in [1] : x > 3};").hints, HasSubstr("{NAME in SEQUENCE | CONDITION}"));
  EXPECT_THAT(parseText("map(and, [1]);").hints, HasSubstr("(a, b) => a + b"));
  EXPECT_THAT(parseText("g(==, [1]);").hints, HasSubstr("(a, b) => a + b"));
  for (const char* empty : {"g(1, []);", "(1, [], 2);", "[[1], []];"})
    EXPECT_THAT(parseText(empty).hints, HasSubstr("[] int")) << empty;
  EXPECT_THAT(parseText("g(1, []);").errors, HasSubstr("1:8: expected a type but found `)`"));
}

TEST(SyntaxErrors, HintsOnStatements) {
  for (const char* text : {"function g(x) =\n  y = x + 1;\n  y * 2;", "function g(x) = (y = x + 1; y * 2);",
                           "function g(x) = {y = x + 1; y * 2};"})
    EXPECT_EQ(parseText(text).hints,
              "within an expression a name is bound by let y = x + 1 in RESULT; equality is written ==")
        << text;
  EXPECT_THAT(parseText("function g(x) = {x = 3 : y in [1]};").hints, HasSubstr("let x = VALUE in RESULT"));
  EXPECT_THAT(parseText("x = if t then 1 else 2\ny = 4;").hints,
              HasSubstr("the one before it lacks its `;`"));
  EXPECT_THAT(parseText("if x > 1 then y = 3; y else 4;").hints, HasSubstr("it is let y = 3 in RESULT"));
  EXPECT_THAT(parseText("if x > 3 then 1; else 2;").hints, HasSubstr("no `;` stands before `else`"));
  EXPECT_THAT(parseText("function g(n) = if n == 0 { return 1; } else { return n; };").hints,
              HasSubstr("in no braces"));
  EXPECT_THAT(parseText("x = [1, 2\ny = 3;").hints, HasSubstr("is not closed"));
  EXPECT_THAT(parseText("for (i = 0; i < 3; i) { print(i) };").hints,
              HasSubstr("a function that calls itself"));
  EXPECT_THAT(parseText("if x > 3 then {a in v; } else w;").hints, Not(HasSubstr("in no braces")));
}

TEST(SyntaxErrors, HintsOnDefinitionsOfOtherLanguages) {
  EXPECT_THAT(parseText("def g(n): n * 2;").hints, HasSubstr("function NAME(X) = BODY"));
  EXPECT_EQ(parseText("let rec h x = x in h(2);").hints,
            "a function is defined at top level, by: function h(x) = ...");
  EXPECT_EQ(parseText("let h x y = x in h(2, 3);").hints,
            "a function is defined at top level, by: function h(x, y) = ...");
  EXPECT_EQ(parseText("add x y = x + y;").hints, "a function is defined by: function add(x, y) = ...");
  EXPECT_THAT(parseText("map(a b c => a, v);").hints, HasSubstr("((x, y) => x + y)"));
  EXPECT_THAT(parseText("function h[x] = x;").hints, HasSubstr("in parentheses: function h("));
  EXPECT_THAT(parseText("case x of 1 => 2;").hints, HasSubstr("else if"));
  EXPECT_THAT(parseText("map(\\x -> x + 1, [1]);").hints, HasSubstr("X => RESULT"));
  EXPECT_THAT(parseText("-- comment\nx = 3;").hints, HasSubstr("two %"));
  EXPECT_THAT(parseText("datatype (int, int);").hints, HasSubstr("the name of the record type comes first"));
  EXPECT_THAT(parseText("[a, b] = v;").hints, HasSubstr("is not taken apart"));
  EXPECT_THAT(parseText("rand();").hints, HasSubstr("rand(X)"));
}

TEST(SyntaxErrors, HintsOnSigns) {
  EXPECT_EQ(parseText("if x =< 3 then 1 else 2;").hints, "less or equal is written <=");
  EXPECT_EQ(parseText("1 =< 2;").hints, "less or equal is written <=");
  EXPECT_EQ(parseText("x === 3;").hints, "equality is written ==");
  EXPECT_EQ(parseText("'abc';").hints, "a string stands in double quotes: \"abc\"");
  EXPECT_EQ(parseText("`abc`;").hints, "a string stands in double quotes: \"abc\"");
  EXPECT_EQ(parseText("x = `some words`;").hints, "a string stands in double quotes: \"some words\"");
  EXPECT_EQ(parseText("x = [`a, g, `b, `;] y z = 3;").hints.find("double quotes"), std::string::npos);
  EXPECT_EQ(parseText("x' = 3;").hints, "a name is made of letters, digits and `_`");
}

/// Where comments are taken to end with their lines, the text behind one is a comment, and the next comment
/// is text.
TEST(SyntaxErrors, CommentsThatGoOverTheirLine) {
  const auto noted = [](const std::string& text) {
    SourceManager sources;
    const ParseResult result = parse(sources, sources.add("a.nesl", text));
    std::string places;
    for (const Diagnostic& d : result.diagnostics)
      for (const Diagnostic::Note& note : d.notes)
        if (note.message.starts_with("this comment")) places += sources.describe(note.span) + " ";
    return places;
  };
  EXPECT_EQ(noted("x = 3; % comment\ny = 4; % another comment\nz = 5;\nx + y;"), "a.nesl:1:8 ");
  EXPECT_EQ(noted("% one comment\n% another comment\nz = 5;"), "a.nesl:1:1 ");
  // These are as they were meant.
  EXPECT_EQ(noted("% one\n comment %\nz = = 5;"), "");
  EXPECT_EQ(noted("x = 3; % one\n comment %\nz = = 5;"), "");
  EXPECT_EQ(noted("x = 3; % one % y = 4; % two %\nz = = 5;"), "");
}

TEST(SyntaxErrors, Brackets) {
  EXPECT_EQ(parseText("(1 + 2;").errors, "1:7: expected `)` before `;` [K0102]\n");
  EXPECT_EQ(parseText("[1,2);").errors, "1:5: expected `]` but found `)` [K0103]\n");
  EXPECT_EQ(parseText("1 + 2);").errors, "1:6: `)` closes nothing: there is no `(` before it [K0103]\n");
  EXPECT_EQ(parseText("{x in [1;2]};").errors, "1:9: expected `]` before `;` [K0102]\n");
  EXPECT_EQ(parseText("g([1,2]").errors, "1:8: expected `)` before the end of the file [K0102]\n");
  EXPECT_EQ(parseText("x = let a = 1; b = 2;\nfunction g(x) = x;").errors,
            "2:1: expected `in` before `function` [K0116]\n");
}

TEST(SyntaxErrors, UnclosedBracketsPointToTheOpeningOne) {
  SourceManager sources;
  const uint32_t file = sources.add("a.nesl", "g(1,\n  [2, 3);\n");
  const ParseResult result = parse(sources, file);
  ASSERT_EQ(result.diagnostics.size(), 1u);
  ASSERT_EQ(result.diagnostics[0].notes.size(), 1u);
  EXPECT_EQ(sources.describe(result.diagnostics[0].notes[0].span), "a.nesl:2:3");
}

TEST(SyntaxErrors, EndOfFile) {
  EXPECT_EQ(parseText("1 + 2\n").errors, "1:6: the last form is not ended [K0104]\n");
  EXPECT_EQ(parseText("x = 1\nfunction g(x) = x;").errors, "1:6: expected `;` before `function` [K0104]\n");
  EXPECT_EQ(parseText("1; % open ; 2;").errors, "1:4: this comment is not closed [K0105]\n");
  EXPECT_EQ(parseText("1; \"open ; 2;").errors, "1:4: this string is not closed [K0106]\n");
  EXPECT_EQ(parseText("1; `").errors, "1:4: a backquote at the end of the file [K0106]\n");
}

/// Where one quote too few or too many makes comments or strings of what is none.
TEST(SyntaxErrors, FirstOverLines) {
  const auto noted = [](const std::string& text) {
    SourceManager sources;
    const uint32_t file = sources.add("a.nesl", text);
    const ParseResult result = parse(sources, file);
    std::string places;
    for (const Diagnostic& d : result.diagnostics)
      for (const Diagnostic::Note& note : d.notes) places += sources.describe(note.span) + " ";
    return places;
  };
  EXPECT_EQ(noted("% a 5% b %\nx = 1; % c %\n2;"), "a.nesl:1:10 ");
  EXPECT_EQ(noted("% a\n b % x = 1; % c"), "a.nesl:1:1 ");
  EXPECT_EQ(noted("% a % x = 1; % c"), "");
  EXPECT_EQ(noted("[\"a, \"b\"];\nx = 1;\nprint_line(\"c\");"), "a.nesl:1:8 ");
}

/// Lines that go on with the form are no forms, so they have no mistakes of their own.
TEST(SyntaxErrors, ScanningGoesOnBehindTheForm) {
  EXPECT_EQ(parseText("function g(a) =\n  let b = {(a, 1)) : a in a};\n      c = q;\n  in c;\nx = 2;").forms,
            "x = 2;\n");
  EXPECT_EQ(parseText("function g(a) =\n  let b = {(a, 1)) : a in a};\n      c = q;\n  in c;\nx = 2;").errors,
            "2:18: expected `}` but found `)` [K0103]\n");
  EXPECT_EQ(parseText("(1]; x = 2;\n  y = 3;").forms, "x = 2;\ny = 3;\n");
}

TEST(SyntaxErrors, Characters) {
  EXPECT_EQ(parseText("2x;").errors, "1:1: `2x` is neither a number nor a name [K0108]\n");
  EXPECT_EQ(parseText("1.5e+;").errors, "1:1: `1.5e` is neither a number nor a name [K0108]\n");
  EXPECT_EQ(parseText("a \xe2\x89\xa4 b;").errors,
            "1:3: NESL does not use the character `\xe2\x89\xa4` [K0107]\n");
  EXPECT_EQ(parseText("a \xff b;").errors, "1:3: NESL does not use the byte 0xff [K0107]\n");
  EXPECT_EQ(parseText("a ~ b;").errors, "1:3: NESL does not use the character `~` [K0107]\n");
}

TEST(SyntaxErrors, ReservedNames) {
  EXPECT_EQ(parseText("let t = 3 in 1;").errors,
            "1:5: `t` is a boolean constant and cannot be bound [K0114]\n");
  EXPECT_EQ(parseText("F = 1;").errors, "1:1: `f` is a boolean constant and cannot be bound [K0114]\n");
  EXPECT_EQ(parseText("function f(x) = x;").errors,
            "1:10: `f` is a boolean constant and cannot be bound [K0114]\n");
  EXPECT_EQ(parseText("function g(t) = 1;").errors,
            "1:12: `t` is a boolean constant and cannot be bound [K0114]\n");
  EXPECT_EQ(parseText("{1 : time in a};").errors, "1:6: `time` is reserved and cannot be bound [K0114]\n");
  EXPECT_EQ(parseText("time = 3;").errors, "1:1: `time` is reserved and cannot be bound [K0114]\n");
  EXPECT_EQ(parseText("(a, pair) = (1, 2);").errors, "1:5: `pair` is reserved and cannot be bound [K0114]\n");
  EXPECT_EQ(parseText("pair(1, 2);").errors, "1:1: `pair` is reserved [K0114]\n");
  EXPECT_EQ(parseText("x = time;").errors, "1:5: `time` is not a value [K0114]\n");
}

TEST(SyntaxErrors, ThingsThatAreNotPatternsTypesOrArguments) {
  EXPECT_EQ(parseText("[a, b] = [1, 2];").errors, "1:1: this is not a pattern [K0113]\n");
  EXPECT_EQ(parseText("{1 in a};").errors, "1:2: this is not a pattern [K0113]\n");
  EXPECT_EQ(parseText("3 => 4;").errors, "1:1: this is not a pattern [K0113]\n");
  EXPECT_EQ(parseText("g();").errors, "1:1: a function has at least one argument [K0111]\n");
  EXPECT_EQ(parseText("1 + ();").errors, "1:5: an expression is missing in these parentheses [K0111]\n");
  EXPECT_EQ(parseText("function g(x) : int = x;").errors,
            "1:17: the signature of a function needs an outermost `->` [K0115]\n");
  EXPECT_EQ(parseText("function g(x : int) : int = x;").errors,
            "1:23: the signature of a function needs an outermost `->` [K0115]\n");
  EXPECT_EQ(parseText("[b := 3];").errors,
            "1:2: `:=` names an argument, in the argument list of a call only [K0117]\n");
  EXPECT_EQ(parseText("function g(x : int, y) -> int = x;").errors,
            "1:11: either all parameters have a type or none has [K0118]\n");
  EXPECT_EQ(parseText("function g(x : int) = x;").errors,
            "1:11: parameters with types need a result type [K0118]\n");
  EXPECT_EQ(parseText("{1 : (a,b)};").errors,
            "1:7: a binding needs a sequence: PATTERN in SEQUENCE [K0119]\n");
  EXPECT_EQ(parseText("{x + 1};").errors, "1:2: a binding needs a sequence: PATTERN in SEQUENCE [K0119]\n");
}

/// Where a comma could also belong to an outer list, what is behind it counts all the same.
TEST(SyntaxErrors, BehindACommaAreWhereTheyAre) {
  EXPECT_EQ(parseText("g(x, let a = 1;\n b = {y : y = s}\n in b);").errors,
            "2:13: expected `}` but found `=` [K0101]\n");
  EXPECT_EQ(parseText("max(1, if t then 2);").errors, "1:19: expected `else` but found `)` [K0101]\n");
  EXPECT_EQ(parseText("(1, 2, (x = 2));").errors, "1:11: expected `)` but found `=` [K0101]\n");
  EXPECT_EQ(parseText("function k(x) = x, if t then 2;").errors,
            "1:31: expected `else` but found `;` [K0101]\n");
  EXPECT_EQ(parseText("let a = (1, 2), {x | } in a;").errors,
            "1:22: expected an expression but found `}` [K0101]\n");
  EXPECT_THAT(parseText("max(1, {x : x in [1,2], y in [2,3]});").hints, HasSubstr("separated by `;`"));
  EXPECT_EQ(parseText("function g(a := if t then 1 else 2, b : int) -> int = a;").errors,
            "1:11: either all parameters have a type or none has [K0118]\n");
}

TEST(SyntaxErrors, EveryFormHasItsOwn) {
  const Parsed parsed =
      parseText("1 +; x = 2; (3; [4;5]; let a in b; function g(x) = ;\nfunction h(y) = y; `");
  EXPECT_EQ(parsed.forms, "x = 2;\nfunction h(y) =\n  y;\n");
  EXPECT_EQ(parsed.errors,
            "1:4: expected an expression but found `;` [K0101]\n"
            "1:15: expected `)` before `;` [K0102]\n"
            "1:19: expected `]` before `;` [K0102]\n"
            "1:30: expected `=` but found `in` [K0101]\n"
            "1:52: expected an expression but found `;` [K0101]\n"
            "2:20: a backquote at the end of the file [K0106]\n");
}

}  // namespace
}  // namespace kelpie

// How correct text is read.
#include <gtest/gtest.h>

#include "parsing.h"

namespace kelpie {
namespace {

TEST(Parser, Precedence) {
  EXPECT_EQ(reading("2 + 3 * 4"), "(2 + (3 * 4))");
  EXPECT_EQ(reading("2 - 3 - 4"), "((2 - 3) - 4)");
  EXPECT_EQ(reading("2 ^ 3 ^ 2"), "((2 ^ 3) ^ 2)");
  EXPECT_EQ(reading("-3 ^ 2"), "((-3) ^ 2)");
  EXPECT_EQ(reading("[2] ++ a -> [2]"), "([2] ++ (a -> [2]))");
  EXPECT_EQ(reading("a <- b -> c"), "(a <- (b -> c))");
  EXPECT_EQ(reading("a <- b <- c"), "((a <- b) <- c)");
  EXPECT_EQ(reading("\"ab\" ++ \"c\" || 5"), "(\"ab\" ++ (\"c\" || 5))");
  EXPECT_EQ(reading("f or t and f"), "(f or (t and f))");
  EXPECT_EQ(reading("a xor b nor c nand d"), "((a xor b) nor (c nand d))");
  EXPECT_EQ(reading("1, 2 == 2, 3"), "(1, (2 == 2), 3)");
  EXPECT_EQ(reading("#a[0]"), "(#a[0])");
  EXPECT_EQ(reading("-#a"), "(-(#a))");
  EXPECT_EQ(reading("@3 ++ @4"), "((@3) ++ (@4))");
  EXPECT_EQ(reading("a<-1"), "(a <- 1)");
  EXPECT_EQ(reading("a>-1"), "(a > (-1))");
}

TEST(Parser, TailsOfIfLetAndLambda) {
  EXPECT_EQ(reading("1 + if t then 2 else 3"), "(1 + (if t then 2 else 3))");
  EXPECT_EQ(reading("if t then 1 else 2 + 3"), "(if t then 1 else (2 + 3))");
  EXPECT_EQ(reading("if t then 1 else 2, 3"), "(if t then 1 else (2, 3))");
  EXPECT_EQ(reading("[let x = 1 in x, 2]"), "[(let x = 1 in (x, 2))]");
  EXPECT_EQ(reading("{if a then b else c, d : x in y}"), "{(if a then b else (c, d)) : x in y}");
  EXPECT_EQ(reading("apply(x => x + 1, 3)"), "apply((x => (x + 1)), 3)");
  EXPECT_EQ(reading("(a,b) => c => a"), "((a, b) => (c => a))");
}

TEST(Parser, Application) {
  EXPECT_EQ(reading("max (1,2)"), "max(1, 2)");
  EXPECT_EQ(reading("not t or t"), "(not(t) or t)");
  EXPECT_EQ(reading("float 3 + 1.0"), "(float(3) + 1.0)");
  EXPECT_EQ(reading("sqrt float 4"), "sqrt(float)(4)");
  EXPECT_EQ(reading("f #a"), "f((#a))");
  EXPECT_EQ(reading("f -a"), "(f - a)");
  EXPECT_EQ(reading("sum {x in a}"), "sum({x in a})");
  EXPECT_EQ(reading("compose(f1,g)(x)[1]"), "compose(f1, g)(x)[1]");
  EXPECT_EQ(reading("{x in a}[0]"), "{x in a}[0]");
  EXPECT_EQ(reading("time(1, 2)"), "time(1, 2)");
  EXPECT_EQ(reading("g(1, b := 10)"), "g(1, b := 10)");
}

TEST(Parser, NumbersCharactersStrings) {
  EXPECT_EQ(reading("[3., .5, 1e3, 1e-3, 1.e3]"), "[3., .5, 1e3, 1e-3, 1.e3]");
  EXPECT_EQ(reading("[`a,`(,`;,`%,`\",`\\]"), "[`a, `(, `;, `%, `\", `\\]");
  EXPECT_EQ(reading("` "), "` ");
  EXPECT_EQ(reading("\"a\\nb\\\"\\\\ %;\""), "\"anb\\\"\\\\ %;\"");
  EXPECT_EQ(reading("\"Two\nLines\""), "\"Two\nLines\"");
  EXPECT_EQ(reading("\"\xc3\xa9\xff\""), "\"\xc3\xa9\xff\"") << "bytes, whatever they are";
  EXPECT_EQ(reading("1 % comment; with $ ( \" % + 2"), "(1 + 2)");
}

TEST(Parser, CaseIsIgnoredInNamesAndKeywords) {
  EXPECT_EQ(reading("LET Foo = 1; IN If T Then foo Else FOO"), "(let foo = 1 in (if t then foo else foo))");
}

TEST(Parser, Sequences) {
  EXPECT_EQ(reading("[] int ++ [1]"), "(([] int) ++ [1])");
  EXPECT_EQ(reading("[] (int, [bool])"), "([] (int, [bool]))");
  EXPECT_EQ(reading("[0:10]"), "[0:10]");
  EXPECT_EQ(reading("[n+1:0:-1]"), "[(n + 1):0:(-1)]");
}

TEST(Parser, ApplyToEach) {
  EXPECT_EQ(reading("{s + 1 : s}"), "{(s + 1) : s in s}");
  EXPECT_EQ(reading("{x}"), "{x in x}");
  EXPECT_EQ(reading("{x; y in e1 | y > 0}"), "{x in x; y in e1 | (y > 0)}");
  EXPECT_EQ(reading("{a,b in e1 | a < b}"), "{(a, b) in e1 | (a < b)}");
  EXPECT_EQ(reading("{i, j : i in a; j in b}"), "{(i, j) : i in a; j in b}");
  EXPECT_EQ(reading("{polar(r,p) in a}"), "{polar((r, p)) in a}");
  EXPECT_EQ(reading("{* g(x) : x in a}"), "{* g(x) : x in a}");
}

TEST(Parser, Definitions) {
  EXPECT_EQ(reading("function g(a,(b,c)) = a"), "function g(a, b, c) =\n  a");
  EXPECT_EQ(reading("function g((a,b),c) = a"), "function g((a, b), c) =\n  a");
  EXPECT_EQ(reading("function g x: int->int = x"), "function g(x) : (int -> int) =\n  x");
  EXPECT_EQ(reading("function g(x) : (a,b) -> [a] :: (a in any; b in number) \"doc\" = x"),
            "function g(x) : ((a, b) -> [a]) :: (a in any; b in number)\n  \"doc\" =\n  x");
  EXPECT_EQ(reading("function g(x) : a -> b :: a in any; b in number"),
            "function g(x) : (a -> b) :: (a in any; b in number)");
  EXPECT_EQ(reading("function g(a, b := 5) = a"), "function g(a, b := 5) =\n  a");
  EXPECT_EQ(reading("datatype span(a,a) :: (a in number)"), "datatype span (a, a) :: (a in number)");
  EXPECT_EQ(reading("a, (b, c) = 1, 2, 3"), "(a, (b, c)) = (1, 2, 3)");
  EXPECT_EQ(reading("v |= [1]"), "v |= [1]");
}

TEST(Parser, KelpiesStyleOfSignature) {
  EXPECT_EQ(reading("function g (xs : [int]) -> [int] = xs"), "function g(xs) : ([int] -> [int]) =\n  xs");
  EXPECT_EQ(reading("function g(x : a, (y,z) : (a,a)) -> a :: (a in any) = x"),
            "function g(x, y, z) : ((a, (a, a)) -> a) :: (a in any) =\n  x");
}

TEST(Parser, Commands) {
  EXPECT_EQ(reading("load \"a\" ++ b"), "load((\"a\" ++ b))");
  EXPECT_EQ(reading("load(e, print := t)"), "load(e, print := t)");
  EXPECT_EQ(reading("SET print_length 30"), "set print_length 30");
  EXPECT_EQ(reading("describe ("), "describe (") << "words up to the terminator, whatever they are";
  EXPECT_EQ(reading("get(1)"), "get(1)") << "a call";
  EXPECT_EQ(reading("1 + show"), "(1 + show)") << "an ordinary name elsewhere";
  const Parsed parsed = parseText("1; exit; 2 + ; (");
  EXPECT_EQ(parsed.forms, "1;\nexit;\n");
  EXPECT_EQ(parsed.errors, "") << "nothing behind exit is looked at";
}

TEST(Parser, TerminatorsAndEmptyForms) {
  EXPECT_EQ(parseText("1; ; 2 $$ 3;").forms, "1;\n2;\n3;\n");
  EXPECT_EQ(parseText("").forms, "");
  EXPECT_EQ(parseText("% nothing %").errors, "");
}

}  // namespace
}  // namespace kelpie

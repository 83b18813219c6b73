// Of forms that do not end where they should: the first thing that does not fit is told, once, and the forms
// behind it are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/form_reader.h"
#include "parsing.h"

namespace kelpie {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Recovery, AMissingEndHidesNoOtherMistake) {
  EXPECT_EQ(parseText("x = if n < 2 else 1").errors, "1:14: expected `then` but found `else` [K0101]\n");
  EXPECT_EQ(parseText("function ff(n) {\n n + 1\n}").errors,
            "1:16: expected `:` or `=` but found `{` [K0101]\n");
  EXPECT_EQ(parseText("[a, b] = v").errors, "1:1: this is not a pattern [K0113]\n");
  EXPECT_EQ(parseText("x = 1 +\n").errors, "1:8: the last form is not ended [K0104]\n");
  EXPECT_EQ(parseText("x = if n < 2 else 1\nfunction g(x) = x;").errors,
            "1:14: expected `then` but found `else` [K0101]\n");
  EXPECT_EQ(parseText("x = if n < 2 else sum([1, 2;\ny = 3;").errors,
            "1:14: expected `then` but found `else` [K0101]\n");
  EXPECT_EQ(parseText("x = 1").errors, "1:6: the last form is not ended [K0104]\n");
  EXPECT_EQ(parseText("describe sum").errors, "1:13: the last form is not ended [K0104]\n");
}

TEST(Recovery, ALetOnEachLine) {
  const Parsed program = parseText("let x = 3;\nlet y = 4;\nlet z = 5;\nx + y;");
  EXPECT_EQ(program.errors, "2:1: expected a binding or `in` before `let` [K0116]\n");
  EXPECT_THAT(program.hints, HasSubstr("bound without it: a = 1;"));
  EXPECT_EQ(program.forms, "(x + y);\n");
  const Parsed body = parseText("function g(x) =\n  let a = 1;\n  let b = 2;\n  in a + b;\ny = 2;");
  EXPECT_EQ(body.errors, "3:3: expected a binding or `in` before `let` [K0116]\n");
  EXPECT_THAT(body.hints, Not(HasSubstr("of a program")));
  EXPECT_EQ(body.forms, "y = 2;\n");
  EXPECT_EQ(parseText("let a = 1; let b = 2; in a + b;").errors,
            "1:12: expected a binding or `in` before `let` [K0116]\n");
  EXPECT_EQ(parseText("let a = 1; let b = 2; c = a; in c; 4;").forms, "4;\n");
  EXPECT_EQ(parseText("let x = 3\nlet y = 4\nx + y;").errors,
            "2:1: expected a binding or `in` before `let` [K0116]\n");
}

TEST(Recovery, ALetWithoutInEndsAtTheFirstWordThatIsNoBinding) {
  const Parsed program = parseText("x = 3;\nlet y = 4;\nprint(y);\nz = 1;");
  EXPECT_EQ(program.errors, "3:1: expected `in` before `print(y)` [K0116]\n");
  EXPECT_EQ(program.hints, "let y = 4 in RESULT; names of a program are bound without `let`: y = 4;");
  EXPECT_EQ(program.forms, "x = 3;\nprint(y);\nz = 1;\n");
  const Parsed body = parseText("function g(n) =\n let a = n + 1;\n b = a * 2;\n a + b;\n\nxs = 1;");
  EXPECT_EQ(body.errors, "4:2: expected `in` before `a + b` [K0116]\n");
  EXPECT_EQ(body.forms, "xs = 1;\n");
  EXPECT_EQ(parseText("(let x = 1; x + 1); 3;").errors, "1:13: expected `in` before `x + 1` [K0116]\n");
  EXPECT_THAT(parseText("let fact n = n * 2;").hints, HasSubstr("function fact(X) = BODY"));
  // These may be bindings, or are in other forms.
  EXPECT_EQ(parseText("let a = 1; (b, p(c, d)), q e = x; in a;").errors, "");
  EXPECT_EQ(parseText("let y = 4;\nz = 5;").errors,
            "2:7: expected `in` before the end of the file [K0116]\n");
  EXPECT_EQ(parseText("let a = 1; b 2 in a;").errors, "1:14: expected `=` but found `2` [K0101]\n");
}

TEST(Recovery, BracesEndBehindTheirFilter) {
  const Parsed program = parseText("l = {x in a | x < p;\nm = 4;\nn = 5;");
  EXPECT_EQ(program.errors, "1:20: expected `}` before `;` [K0102]\n");
  EXPECT_EQ(program.forms, "m = 4;\nn = 5;\n");
  EXPECT_EQ(parseText("l = {x : x in a;\nm = 4;").errors, "1:16: expected `}` before `;` [K0102]\n");
  EXPECT_EQ(parseText("let p = 3;\n    l = {x in a | x < p;\n in l;\nq = 1;").forms, "q = 1;\n");
}

TEST(Recovery, SemicolonsInsideOfBracketsEndNothing) {
  const Parsed sequence = parseText("[1; 2; 3]; x = 4;");
  EXPECT_EQ(sequence.errors, "1:3: expected `]` before `;` [K0102]\n");
  EXPECT_THAT(sequence.hints, HasSubstr("separated by commas"));
  EXPECT_EQ(sequence.forms, "x = 4;\n");
  EXPECT_THAT(parseText("max(1; 2);").hints, HasSubstr("separated by commas"));
  EXPECT_EQ(parseText("x = [1, 2;\ny = [3];").hints, "");
}

TEST(Recovery, WhatGoesOnWithAWrongFormIsNoForm) {
  EXPECT_EQ(parseText("function g(x) =\n  y = x + 1;\n  y * 2;\nz = 3;").forms, "z = 3;\n");
  EXPECT_EQ(parseText("if x > 3 then 1; else 2; z = 3;").errors,
            "1:16: expected `else` but found `;` [K0101]\n");
  EXPECT_EQ(parseText("if x > 3 then 1; else 2; z = 3;").forms, "z = 3;\n");
  EXPECT_EQ(parseText("if x > 3 then y = 3; y + 1 else 4; z = 3;").forms, "z = 3;\n");
  EXPECT_EQ(parseText("1 +; x = if t then 1 else 2; let y = 1 in y;").forms,
            "x = (if t then 1 else 2);\n(let y = 1 in y);\n");
}

TEST(Recovery, AnInOfALaterLineBelongsToTheWrongForm) {
  const Parsed twice = parseText("function g(x) =\n  let a = 1;; b = 2;\n      c = 3\n  in a + b;\nz = 3;");
  EXPECT_EQ(twice.errors, "2:13: expected a binding or `in` but found `;` [K0101]\n");
  EXPECT_EQ(twice.forms, "z = 3;\n");
}

/// At the prompt what no further line can mend is told at once.
TEST(Recovery, PromptsDoNotWaitForAnIn) {
  const auto complete = [](const std::vector<std::string>& lines) {
    FormReader reader;
    for (const std::string& line : lines)
      if (reader.add(line + "\n")) return true;
    return false;
  };
  EXPECT_FALSE(complete({"let x = 3;"}));
  EXPECT_FALSE(complete({"let x = 3;", " (y, p(z"}));
  EXPECT_TRUE(complete({"let x = 3;", "let y = 4;"}));
  EXPECT_TRUE(complete({"let x = 3;", "print(x);"}));
  EXPECT_FALSE(complete({"x = if t"}));
}

}  // namespace
}  // namespace kelpie

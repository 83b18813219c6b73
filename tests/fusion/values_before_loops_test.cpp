#include "fusion/values_before_loops.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "tests/fusion/read_program.h"

namespace kelpie::fusion {
namespace {

/// The thunk of a map over n elements afterwards; xs has n floats, ys m.
std::string changed(const std::string& thunk) {
  lcu::Program program = read(
      "site @1 = \"zero\" 1:1..2\nfunction f(xs: [float64], n: int64, ys: [float64], m: int64) {\n  kernel k "
      "{\n    let r: [float64; n] "
      "= "
      "MAP flat n { i => " +
      thunk + " }\n    return r\n  }\n}\nentry main: () {\n}\n");
  if (program.functions.empty()) return "";
  for (lcu::Stmt& stmt : program.functions[0].body.stmts) {
    auto* launch = std::get_if<lcu::Launch>(&stmt.node);
    if (!launch) continue;
    computeBeforeLoops(launch->kernel, *program.arena);
    const std::string text = lcu::toString(launch->kernel, program);
    const size_t begin = text.find("=> ") + 3;
    return text.substr(begin, text.find(" }\n  return") - begin);
  }
  return "";
}

void expectUnchanged(const std::string& thunk) { EXPECT_EQ(changed(thunk), thunk); }

/// The branch in which the loop goes on; that there is a first turn is known.
TEST(ValuesBeforeLoops, OfTheBranchThatGoesOn) {
  EXPECT_EQ(changed("let (t1, t2) = loop (k1 = false, k2 = 1.0) { let (t3, t4) = if k2 > 9.0 then (true, k2) "
                    "else (false, k2 * exp(xs[i])) in while not(k1) next t3, t4 } in t2"),
            "let (t1, t2, t3) = loop (k1 = false, k2 = 1.0, k3 = exp(xs[i])) { let t4 = k2 > 9.0 in while "
            "not(k1) next t4, if t4 then k2 else k2 * k3, k3 } in t2");
}
/// ... that depends on the element, or is not known.
TEST(ValuesBeforeLoops, UnderTheConditionOfTheFirstTurn) {
  EXPECT_EQ(
      changed("let (t1, t2) = loop (k1 = false, k2 = xs[i]) { let (t3, t4) = if k2 > 9.0 then (true, k2) "
              "else (false, k2 + sqrt(ys[i])) in while not(k1) next t3, t4 } in t2"),
      "let t1 = xs[i]; (t2, t3, t4) = loop (k1 = false, k2 = t1, k3 = if t1 > 9.0 then 0.0 else sqrt(ys[i])) "
      "{ let t5 = k2 > 9.0 in while not(k1) next t5, if t5 then k2 else k2 + k3, k3 } in t3");
  EXPECT_EQ(
      changed("let (t1, t2) = loop (k1 = i, k2 = 0.0) { while k1 < m next k1 + 1, k2 + sqrt(ys[i]) } in t2"),
      "let (t1, t2, t3) = loop (k1 = i, k2 = 0.0, k3 = if i < m then sqrt(ys[i]) else 0.0) { while k1 < m "
      "next k1 + 1, k2 + k3, k3 } in t2");
}
/// Checks of the first turn come in their order: one that another one precedes stays.
TEST(ValuesBeforeLoops, ChecksKeepTheirOrder) {
  EXPECT_EQ(
      changed("let (t1, t2) = loop (k1 = 0, k2 = 0.0) { while k1 < m next k1 + 1, k2 + 1.0 / check(xs[i] != "
              "0.0, xs[i], 1.0, @1, 0, 0) } in t2"),
      "let (t1, t2, t3) = loop (k1 = 0, k2 = 0.0, k3 = if m > 0 then let t4 = xs[i] in 1.0 / check(t4 != "
      "0.0, t4, 1.0, @1, 0, 0) else 0.0) { while k1 < m next k1 + 1, k2 + k3, k3 } in t2");
  expectUnchanged(
      "let (t1, t2) = loop (k1 = 0, k2 = 0.0) { let t3 = xs[i] in while k1 < m next k1 + 1, check(k2 < 3.0, "
      "k2, 0.0, @1, k1, 0) + 1.0 / check(t3 != 0.0, t3, 1.0, @1, 0, 0) } in t2");
}
/// Conditionals and loops that are the same in each turn.
TEST(ValuesBeforeLoops, WhatContainsWork) {
  EXPECT_EQ(
      changed("let t1 = xs[i]; (t2, t3) = loop (k1 = 0, k2 = 0.0) { while k1 < 9 next k1 + 1, k2 + (if t1 > "
              "5.0 then ln(t1) else 1.0) } in t3"),
      "let t1 = xs[i]; (t2, t3, t4) = loop (k1 = 0, k2 = 0.0, k3 = if t1 > 5.0 then ln(t1) else 1.0) { while "
      "k1 < 9 next k1 + 1, k2 + k3, k3 } in t3");
}
/// Loops in loops: as far out as it may.
TEST(ValuesBeforeLoops, OfSeveralLoops) {
  EXPECT_EQ(
      changed("let (t1, t2) = loop (k1 = 0, k2 = 0.0) { let (t3, t4) = loop (k3 = 0, k4 = k2) { while k3 < 5 "
              "next k3 + 1, k4 * exp(xs[i]) } in while k1 < 9 next k1 + 1, t4 } in t2"),
      "let (t1, t2, t3) = loop (k1 = 0, k2 = 0.0, k3 = exp(xs[i])) { let (t4, t5, t6) = loop (k4 = 0, k5 = "
      "k2, k6 = k3) { while k4 < 5 next k4 + 1, k5 * k6, k6 } in while k1 < 9 next k1 + 1, t5, k3 } in t2");
}

/// What depends on a loop inside of the turn, whose condition every turn evaluates, too.
TEST(ValuesBeforeLoops, VariablesOfInnerLoopsStayInside) {
  expectUnchanged(
      "let (t1, t2) = loop (k1 = 0, k2 = 0.0) { let (t3, t4) = loop (k3 = k1, k4 = k2) { while "
      "exp(float64(k3) * "
      "xs[i]) > 2.0 next k3 / 2, k4 + 1.0 } in while k1 < 9 next k1 + 1, t4 } in t2");
}
/// A check behind a loop that makes some: what is built anew would come after it.
TEST(ValuesBeforeLoops, ChecksBehindALoopStayThere) {
  expectUnchanged(
      "let t1 = xs[i]; (t2, t3) = loop (k1 = 0, k2 = 0.0) { while k1 < m next k1 + 1, check(k2 < 3.0, k2, "
      "0.0, @1, k1, 0) + sqrt(t1) } in t3 + check(t1 > 1.0, t1, 0.0, @1, 0, 0)");
}
/// Not more than registers may hold.
TEST(ValuesBeforeLoops, ManyValues) {
  std::string sum = "k2";
  for (int k = 0; k < 9; ++k) sum += " + sqrt(ys[i + " + std::to_string(k) + "])";
  const std::string after =
      changed("let (t1, t2) = loop (k1 = 0, k2 = 0.0) { while k1 < m next k1 + 1, " + sum + " } in t2");
  EXPECT_NE(after.find("k8 = "), std::string::npos) << after;
  EXPECT_EQ(after.find("k9 = "), std::string::npos) << after;
}

TEST(ValuesBeforeLoops, WhatStays) {
  // What a turn changes, what only some turns compute, what is short.
  expectUnchanged(
      "let (t1, t2) = loop (k1 = 0, k2 = 0.0) { while k1 < 9 next k1 + 1, k2 + sqrt(ys[k1]) } in t2");
  expectUnchanged(
      "let (t1, t2) = loop (k1 = 0, k2 = 0.0) { while k1 < 9 next k1 + 1, if k1 % 2 == 0 then k2 + "
      "sqrt(xs[i]) else k2 } in t2");
  expectUnchanged(
      "let (t1, t2) = loop (k1 = 0, k2 = 0.0) { while k1 < 9 next k1 + 1, k2 + 2.0 * xs[i] } in t2");
  // What is computed anyway.
  expectUnchanged(
      "let t1 = sqrt(xs[i]); (t2, t3) = loop (k1 = 0, k2 = 0.0) { while k1 < m next k1 + 1, k2 + t1 } in t3 "
      "* t1");
  // The schedule knows what needs no array.
  expectUnchanged(
      "let (t1, t2) = loop (k1 = 0, k2 = 0.0) { while k1 < 9 next k1 + 1, k2 + sqrt(float64(i)) } in t2");
}

}  // namespace
}  // namespace kelpie::fusion

#include "fusion/implied_checks.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "fusion/known_bounds.h"
#include "tests/fusion/random_numbers.h"
#include "tests/fusion/read_program.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprArena;
using lcu::ExprKind;
using lcu::ExprRef;

/// The thunk of a binding over n elements afterwards; xs has n integers, ys m.
std::string changed(const std::string& thunk, const std::string& kind = "MAP", const std::string& more = "") {
  const std::string results = kind == "FILTER" ? "let count: &int64, r: [int64; count]" : "let r: [int64; n]";
  const std::string returned = kind == "FILTER" ? "count, r" : "r";
  lcu::Program program =
      read("site @1 = \"index\" 1:1..2\nfunction f(n: int64, xs: [int64; n], m: int64, ys: [int64; m]) {\n" +
           std::string("  kernel k {\n    ") + results + " = " + kind + " flat n { i => " + thunk + " }" +
           more + "\n    return " + returned + "\n  }\n}\nentry main: () {\n}\n");
  if (program.functions.empty()) return "";
  for (lcu::Stmt& stmt : program.functions[0].body.stmts) {
    auto* launch = std::get_if<lcu::Launch>(&stmt.node);
    if (!launch) continue;
    dropImpliedChecks(launch->kernel, *program.arena);
    const std::string text = lcu::toString(launch->kernel, program);
    const size_t begin = text.find("=> ") + 3;
    return text.substr(begin, text.find(more + "\n  return") - 2 - begin);
  }
  return "";
}

std::string checked(const std::string& array, const std::string& place, const std::string& length) {
  return array + "[check(" + place + " >= 0 and " + place + " < " + length + ", " + place + ", 0, @1, " +
         place + ", " + length + ")]";
}
std::string ofXs(const std::string& place) { return checked("xs", place, "n"); }
std::string ofYs(const std::string& place) { return checked("ys", place, "m"); }

TEST(ImpliedChecks, OfElements) {
  EXPECT_EQ(changed(ofXs("i")), "xs[i]");
  EXPECT_EQ(changed(ofXs("(n - 1 - i)")), "xs[n - 1 - i]");
  EXPECT_EQ(changed(ofXs("(i / 2)")), "xs[i / 2]");
  EXPECT_EQ(changed(ofXs("((i + 1) % n)")), "xs[(i + 1) % n]");
  EXPECT_EQ(changed(ofXs("max(0, min(i + 5, n - 1))")), "xs[max(min(i + 5, n - 1), 0)]");
  EXPECT_EQ(changed(ofXs("(if i == 0 then n - 1 else i - 1)")), "xs[if i == 0 then n - 1 else i - 1]");
}

TEST(ImpliedChecks, UnderConditions) {
  EXPECT_EQ(changed("if i > 0 then " + ofXs("(i - 1)") + " else 7"), "if i > 0 then xs[i - 1] else 7");
  EXPECT_EQ(changed("if i == 0 then 7 else " + ofXs("(i - 1)")), "if i == 0 then 7 else xs[i - 1]");
  EXPECT_EQ(changed("if i < n - 1 then " + ofXs("(i + 1)") + " else 7"),
            "if i < n - 1 then xs[i + 1] else 7");
  EXPECT_EQ(changed("if xs[i] >= 0 and xs[i] < m then " + ofYs("xs[i]") + " else 7"),
            "let t1 = xs[i] in if t1 >= 0 and t1 < m then ys[t1] else 7");
  EXPECT_EQ(changed("if (if xs[i] < 1 then true else xs[i] > m) then 7 else " + ofYs("(xs[i] - 1)")),
            "let t1 = xs[i] in if (if t1 < 1 then true else t1 > m) then 7 else ys[t1 - 1]");
  EXPECT_EQ(changed("if m == 3 then " + ofYs("2") + " else 7"), "if m == 3 then ys[2] else 7");
}

/// What keeps a position in range if the check fails goes with it; what checked positions load follows.
TEST(ImpliedChecks, ChoicesAndWhatIsInside) {
  EXPECT_EQ(changed("if m > 2 then ys[(if m > 1 then i else 0) + check(m > 1, 1, 0, @1, 1, m)] else 7"),
            "if m > 2 then ys[i + 1] else 7");
  EXPECT_EQ(changed(ofXs("max(0, min(" + ofXs("i") + ", n - 1))")), "xs[max(min(xs[i], n - 1), 0)]");
}

/// What is inside of a position whose check goes becomes the same as what others see of it. When it followed
/// in the next round, there were two of it, then four, and so on, for each check in a chain of positions.
TEST(ImpliedChecks, ChainsStayChains) {
  const auto chain = [](int steps) {
    std::string text = "let p0 = xs[i]";
    for (int k = 0; k < steps; ++k) {
      const std::string p = "p" + std::to_string(k);
      text += "; p" + std::to_string(k + 1) + " = if " + p + " > " + std::to_string(k) + " then " +
              ofXs("(" + p + " % n)") + " else xs[i] + " + p;
    }
    return changed(text + " in p" + std::to_string(steps));
  };
  EXPECT_EQ(
      chain(2),
      "let t1 = xs[i]; t2 = if t1 > 0 then xs[t1 % n] else t1 + t1 in if t2 > 1 then xs[t2 % n] else t1 + "
      "t2");
  EXPECT_EQ(chain(12).find("check"), std::string::npos);
  EXPECT_LT(chain(12).size(), 2.5 * chain(6).size());
}

TEST(ImpliedChecks, OfLoopsAndFilters) {
  EXPECT_EQ(
      changed("let (t1, t2) = loop (k1 = i, k2 = 0) { while k1 >= 0 and k1 < m next k1 + 1, k2 + " +
              ofYs("k1") + " } in t2"),
      "let (t1, t2) = loop (k1 = i, k2 = 0) { while k1 >= 0 and k1 < m next k1 + 1, k2 + ys[k1] } in t2");
  EXPECT_EQ(changed(ofXs("(i - 1)"), "FILTER", " where { i => i > 0 }"), "xs[i - 1]");
}

/// What variables stay between (loop_bounds.h): a walk through a sequence, a search that halves, bits of
/// rows.
TEST(ImpliedChecks, ThatLoopsKeep) {
  for (const std::string& thunk :
       {"let (t1, t2) = loop (k1 = 0, k2 = 0) { while k1 != n next k1 + 1, k2 + " + ofXs("k1") + " } in t2",
        "let (t1, t2) = loop (k1 = 0, k2 = n) { let t3 = (k1 + k2) / 2; (t4, t5) = if " + ofXs("t3") +
            " < i then (t3 + 1, k2) else (k1, t3) in while k1 < k2 next t4, t5 } in t1",
        "let (t1, t2, t3) = loop (k1 = false, k2 = 0, k3 = n) { let (t4, t5, t6) = if k2 == k3 then (true, "
        "k2, k3) "
        "else (let t7 = (k2 + k3) / 2; (t8, t9) = if " +
            ofXs("t7") +
            " < i then (t7 + 1, k3) else (k2, t7) in false, t8, t9) in while not(k1) next t4, t5, t6 } in t2",
        std::string(
            "let (t1, t2) = loop (k1 = 0, k2 = 0) { let t3 = k1 * 6 in while k1 != 10 next k1 + 1, k2 + "
            "shr(xs[i], check(t3 >= 0 and t3 < 64, t3, 0, @1, t3, 0)) } in t2"),
        // ... among comparisons with other constants.
        std::string("let (t1, t2) = loop (k1 = 0, k2 = 0) { let t3 = k1 * 4; t4 = k2 % 7 in while k1 != 8 "
                    "next k1 + 1, k2 + "
                    "shr(xs[i], check(t3 >= 0 and t3 < 64, t3, 0, @1, t3, 0)) + (if t4 >= 3 then t4 - 3 else "
                    "t4) } in t2")}) {
    const std::string now = changed(thunk);
    EXPECT_NE(now.find("loop"), std::string::npos) << thunk;
    EXPECT_EQ(now.find("check"), std::string::npos) << now;
  }
  // Past the end, by a step of two; from what may be behind it.
  for (const std::string& thunk :
       {"let (t1, t2) = loop (k1 = 0, k2 = 0) { while k1 != n next k1 + 2, k2 + " + ofXs("k1") + " } in t2",
        "let (t1, t2) = loop (k1 = i + 2, k2 = 0) { while k1 != n next k1 + 1, k2 + " + ofXs("k1") +
            " } in t2"})
    EXPECT_NE(changed(thunk).find("check"), std::string::npos) << thunk;
}

/// What was computed for its checks, and takes long, is not left to the branches that need it.
TEST(ImpliedChecks, LongValuesStayInFront) {
  const std::string loop =
      "let (t1, t2) = loop (k1 = 0, k2 = 0) { let t3 = k1 * 3 in while k1 != 8 next k1 + 1, k2 + shr(xs[i], "
      "check(t3 >= 0 and t3 < 64, t3, 0, @1, t3, 0)) } in ";
  for (const bool isLong : {true, false}) {
    const std::string value = isLong ? loop + "t2" : "let t2 = check(n > i, xs[i], 0, @1, 0, 0) in t2";
    const std::string pull = isLong
                                 ? loop + "if xs[i] > 0 then t2 else 0"
                                 : "let t2 = check(n > i, xs[i], 0, @1, 0, 0) in if xs[i] > 0 then t2 else 0";
    lcu::Program program = read(
        "site @1 = \"index\" 1:1..2\nfunction f(n: int64, xs: [int64; n]) {\n  kernel k {\n    let r: "
        "[int64; n] = "
        "MAP flat n { i => " +
        pull + " } effects { i => " + value + " }\n    return r\n  }\n  return r\n}\nentry main: () {\n}\n");
    lcu::Kernel& kernel = std::get<lcu::Launch>(program.functions.at(0).body.stmts.at(0).node).kernel;
    dropImpliedChecks(kernel, *program.arena);
    const std::string text = lcu::toString(kernel, program);
    EXPECT_EQ(text.find("check"), std::string::npos) << text;
    EXPECT_EQ(text.find("effects") != std::string::npos, isLong) << text;
  }
}

/// What may fail, though not where it is used elsewhere; numbers that may wrap.
TEST(ImpliedChecks, WhatStays) {
  for (const std::string& thunk : std::vector<std::string>{
           "xs[check(xs[i] < n, xs[i], 0, @1, 0, n)]",
           "if i > 1 then " + ofXs("i") + " else ys[check(m > 0, 0, 0, @1, 0, m)]",
           "if xs[i] < m then " + ofYs("(xs[i] - 5)") + " else 7",
           "if xs[i] + 1 < m and xs[i] + 1 > 0 then ys[check(xs[i] < m, 0, 0, @1, 0, m)] else 7"}) {
    EXPECT_NE(changed(thunk).find("check"), std::string::npos) << thunk;
  }
  // One check in two branches, one of which does not know.
  EXPECT_EQ(changed("if xs[i] > 3 then (if m > 4 then " + ofYs("4") + " else 1) else (if m > 3 then " +
                    ofYs("4") + " else 2)"),
            "let t1 = m > 4; t2 = ys[check(t1, 4, 0, @1, 4, m)] in if xs[i] > 3 then if t1 then t2 else 1 "
            "else if m > 3 then t2 else 2");
}

/// Checks in conditions that are decided, and choices that only have something evaluated.
TEST(ImpliedChecks, NoCheckIsLost) {
  const std::string failing = "check(xs[i] < 9, 0, 0, @1, 0, n)";
  EXPECT_NE(changed("if " + failing + " * i >= 0 then i else 7").find("check"), std::string::npos);
  EXPECT_NE(changed("xs[check(" + failing + " * 0 + i >= 0, i, 0, @1, 0, n)]").find("check"),
            std::string::npos);
  const std::string pinned =
      "let t1 = recursion r1 (k1 = xs[i]) : int64 @1 { if k1 < 2 then 1 else let t2 = call r1(k1 - 1); t3 = "
      "if k1 "
      "> ys[0] then t2 else 5 in if t2 != 0 and false then t3 else t3 } in t1 + check(xs[i] < 9, 0, 0, @1, "
      "0, n)";
  EXPECT_EQ(changed(pinned).find("and false") != std::string::npos, true) << changed(pinned);
}

/// An operator's parameters have the names of elements, which are never below 0.
TEST(ImpliedChecks, OfOperatorsStay) {
  lcu::Program program = read(
      "site @1 = \"negative\" 1:1..2\nfunction f(n: int64, xs: [int64; n]) {\n  kernel k {\n"
      "    let r: &int64 = REDUCE flat n { i => check(i >= 0, i, 0, @1, i, 0) * xs[i] } (0) "
      "{ x, y => check(x >= 0, x, 0, @1, x, 0) + y }\n    return r\n  }\n  return r\n}\nentry main: () "
      "{\n}\n");
  lcu::Kernel& kernel = std::get<lcu::Launch>(program.functions.at(0).body.stmts.at(0).node).kernel;
  dropImpliedChecks(kernel, *program.arena);
  const std::string text = lcu::toString(kernel, program);
  EXPECT_NE(text.find("i => i * xs[i]"), std::string::npos) << text;
  EXPECT_NE(text.find("x, y => check(x >= 0, x, 0, @1, x, 0) + y"), std::string::npos) << text;
}

/// A choice that one binding's thunks decide and another's do not, though these cannot fail.
TEST(ImpliedChecks, OfOtherBindingsAreAsked) {
  lcu::Program program = read(
      "site @1 = \"index\" 1:1..2\nfunction f(n: int64, xs: [int64; n]) {\n  kernel k {\n"
      "    let a: [int64; n] = MAP flat n { i => if xs[i] > 0 then xs[i] else 0 - xs[i] }\n"
      "    let count: &int64, b: [int64; count] = FILTER flat n { i => (if xs[i] > 0 then xs[i] else 0 - "
      "xs[i]) + "
      "10 / check(xs[i] != 0, xs[i], 1, @1, 0, 0) } where { i => xs[i] > 0 }\n    return a, count, b\n  }\n"
      "  return a, count, b\n}\nentry main: () {\n}\n");
  lcu::Kernel& kernel = std::get<lcu::Launch>(program.functions.at(0).body.stmts.at(0).node).kernel;
  dropImpliedChecks(kernel, *program.arena);
  const std::string text = lcu::toString(kernel.bindings.size() == 2 ? kernel : lcu::Kernel{}, program);
  EXPECT_NE(text.find("a: [int64; n] = MAP flat n { i => let t1 = xs[i] in if t1 > 0 then t1 else "),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("check"), std::string::npos) << text;
}

// ---- what is proven holds ----

TEST(KnownBounds, WhatIsProvenHolds) {
  ExprArena arena;
  std::vector<ExprRef> variables = {arena.param(0), arena.param(1)};
  for (uint32_t k = 2; k < 4; ++k) variables.push_back(arena.nonNegative(arena.param(k)));
  RandomNumbers numbers(arena, variables, 5);
  int proven = 0, tried = 0;
  for (int round = 0; round < 20000; ++round) {
    KnownBounds bounds;
    std::vector<std::pair<ExprRef, bool>> known;
    for (size_t k = 1 + numbers.below(4); k > 0; --k) {
      known.emplace_back(numbers.condition(1), numbers.below(2) == 0);
      bounds.learn(known.back().first, known.back().second);
    }
    const ExprRef goal = numbers.condition(2);
    const bool isTrue = bounds.implies(goal, true), isFalse = bounds.implies(goal, false);
    if (!isTrue && !isFalse) continue;
    ++proven;
    for (int k = 0; k < 60; ++k) {
      const NumberValues values = numbers.values();
      bool holds = true;
      for (const auto& [condition, value] : known)
        holds = holds && evaluateNumber(condition, values).isTrue() == value;
      if (!holds) continue;
      ++tried;
      const bool came = evaluateNumber(goal, values).isTrue();
      ASSERT_EQ(isTrue && came, isTrue) << "round " << round;
      ASSERT_EQ(isFalse && !came, isFalse) << "round " << round;
    }
  }
  EXPECT_GT(proven, 1000);
  EXPECT_GT(tried, 10000);
}

TEST(KnownBounds, RemaindersByTheLeastNumber) {
  ExprArena arena;
  const ExprRef least = arena.index(INT64_MIN), greatest = arena.index(INT64_MAX);
  const ExprRef rest = arena.op(ScalarOp::Rem, arena.param(0), least);
  KnownBounds bounds;
  EXPECT_FALSE(bounds.implies(arena.op(ScalarOp::Less, rest, greatest), true));
  EXPECT_TRUE(bounds.implies(
      arena.op(ScalarOp::Less, arena.op(ScalarOp::Rem, arena.param(0), greatest), greatest), true));
}

/// Conditions that share what they are made of, so that there are 2^50 ways through them.
TEST(KnownBounds, SharedConditionsTakeNoTime) {
  ExprArena arena;
  const ExprRef x = arena.param(0);
  const auto below = [&](int64_t k) { return arena.op(ScalarOp::Less, x, arena.index(k)); };
  for (const ScalarOp outer : {ScalarOp::Or, ScalarOp::And}) {
    const ScalarOp inner = outer == ScalarOp::Or ? ScalarOp::And : ScalarOp::Or;
    ExprRef condition = below(0);
    for (int64_t k = 1; k < 50; ++k)
      condition = arena.op(outer, arena.op(inner, condition, below(2 * k)),
                           arena.op(inner, condition, below(2 * k + 1)));
    for (const bool holds : {true, false}) {
      KnownBounds bounds;
      bounds.implies(condition, holds);
      bounds.learn(condition, holds);
      bounds.implies(below(7), holds);
    }
  }
}

/// What was learned after a mark is not known any more.
TEST(KnownBounds, Forget) {
  ExprArena arena;
  const ExprRef a = arena.param(0), b = arena.param(1);
  KnownBounds bounds;
  bounds.learn({a, b, -1});
  const KnownBounds::Mark mark = bounds.mark();
  bounds.learn(arena.op(ScalarOp::Less, b, arena.index(5)), true);
  EXPECT_TRUE(bounds.implies(arena.op(ScalarOp::Less, a, arena.index(4)), true));
  bounds.forget(mark);
  EXPECT_FALSE(bounds.implies(arena.op(ScalarOp::Less, a, arena.index(4)), true));
  EXPECT_TRUE(bounds.implies(arena.op(ScalarOp::Less, a, b), true));
}

}  // namespace
}  // namespace kelpie::fusion

#include "fusion/implied_checks.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "fusion/known_bounds.h"
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

TEST(ImpliedChecks, OfLoopsAndFilters) {
  EXPECT_EQ(
      changed("let (t1, t2) = loop (k1 = i, k2 = 0) { while k1 >= 0 and k1 < m next k1 + 1, k2 + " +
              ofYs("k1") + " } in t2"),
      "let (t1, t2) = loop (k1 = i, k2 = 0) { while k1 >= 0 and k1 < m next k1 + 1, k2 + ys[k1] } in t2");
  EXPECT_EQ(changed(ofXs("(i - 1)"), "FILTER", " where { i => i > 0 }"), "xs[i - 1]");
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

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : random_(seed) {
    for (uint32_t k = 0; k < kAny; ++k) variables_.push_back(arena_.param(k));
    for (uint32_t k = 0; k < kLengths; ++k) variables_.push_back(arena_.nonNegative(arena_.param(kAny + k)));
  }

  ExprRef number(int depth) {
    if (depth == 0 || below(4) == 0)
      return below(3) == 0 ? arena_.index(constant()) : variables_[below(variables_.size())];
    const ExprRef a = number(depth - 1);
    switch (below(11)) {
      case 0:
      case 1:
      case 2:
        return arena_.add(a, arena_.index(constant()));
      case 3:
        return arena_.add(a, number(depth - 1));
      case 4:
        return arena_.sub(a, number(depth - 1));
      case 5:
        return arena_.op(ScalarOp::Max, a, number(depth - 1));
      case 6:
        return arena_.op(ScalarOp::Min, a, number(depth - 1));
      case 7:
        return arena_.op(below(2) ? ScalarOp::Rem : ScalarOp::Div, a, number(depth - 1));
      case 8:
        return arena_.op(ScalarOp::And, a, number(depth - 1));
      case 9:
        return arena_.op(ScalarOp::ShiftRight, a, arena_.index(static_cast<int64_t>(below(4))));
      default:
        return arena_.select(condition(depth - 1), a, number(depth - 1));
    }
  }

  ExprRef condition(int depth) {
    constexpr std::array kComparisons = {ScalarOp::Less,    ScalarOp::LessEqual,    ScalarOp::Equal,
                                         ScalarOp::Greater, ScalarOp::GreaterEqual, ScalarOp::NotEqual};
    if (depth > 0 && below(4) == 0)
      return arena_.op(below(2) ? ScalarOp::And : ScalarOp::Or, condition(depth - 1), condition(depth - 1));
    if (depth > 0 && below(5) == 0)
      return arena_.select(condition(depth - 1), condition(depth - 1), arena_.boolean(below(2) == 0));
    return arena_.op(kComparisons[below(kComparisons.size())], number(depth), number(depth));
  }

  /// Values of the variables: small ones mostly, and ones near the ends.
  std::vector<Scalar> values() {
    std::vector<Scalar> result;
    for (uint32_t k = 0; k < kAny + kLengths; ++k) {
      int64_t value = static_cast<int64_t>(below(9)) - 3;
      if (below(5) == 0) value = (below(2) ? INT64_MAX : INT64_MIN) + value;
      if (k >= kAny) value = below(5) == 0 ? (int64_t{1} << lcu::kLengthBits) - 1 : std::abs(value % 5);
      result.push_back(Scalar::ofInt(lcu::kIndex, value));
    }
    return result;
  }

  static Scalar evaluate(ExprRef e, const std::vector<Scalar>& values) {
    switch (e->kind) {
      case ExprKind::Constant:
        return e->constant;
      case ExprKind::Param:
        return values[e->index];
      case ExprKind::Project: {
        const ExprRef conditional = e->operands[0];
        return evaluate(conditional->operands[evaluate(conditional->operands[0], values).isTrue() ? 1 : 2],
                        values);
      }
      default:
        return kelpie::evaluate(e->op, evaluate(e->operands[0], values),
                                e->operands.size() > 1 ? evaluate(e->operands[1], values) : Scalar());
    }
  }

  size_t below(size_t n) { return random_() % n; }

 private:
  static constexpr uint32_t kAny = 2, kLengths = 2;
  int64_t constant() {
    const auto small = static_cast<int64_t>(below(9)) - 4;
    return below(12) == 0 ? (below(2) ? INT64_MAX - small : INT64_MIN + 9 + small) : small;
  }

  std::mt19937_64 random_;
  ExprArena arena_;
  std::vector<ExprRef> variables_;
};

TEST(KnownBounds, WhatIsProvenHolds) {
  Numbers numbers(5);
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
      const std::vector<Scalar> values = numbers.values();
      bool holds = true;
      for (const auto& [condition, value] : known)
        holds = holds && Numbers::evaluate(condition, values).isTrue() == value;
      if (!holds) continue;
      ++tried;
      const bool came = Numbers::evaluate(goal, values).isTrue();
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
  bounds.learnLess(a, b);
  const KnownBounds::Mark mark = bounds.mark();
  bounds.learn(arena.op(ScalarOp::Less, b, arena.index(5)), true);
  EXPECT_TRUE(bounds.implies(arena.op(ScalarOp::Less, a, arena.index(4)), true));
  bounds.forget(mark);
  EXPECT_FALSE(bounds.implies(arena.op(ScalarOp::Less, a, arena.index(4)), true));
  EXPECT_TRUE(bounds.implies(arena.op(ScalarOp::Less, a, b), true));
}

}  // namespace
}  // namespace kelpie::fusion

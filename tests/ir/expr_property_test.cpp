// Random expressions: what the arena makes of them means what they meant.
#include <gtest/gtest.h>

#include "tests/ir/random_expr.h"

namespace kelpie::lcu {
namespace {

constexpr int kExpressions = 3000;
constexpr int kDepth = 5;

ScalarType typeOf(int k) { return RandomWorld::kTypes[k % 6]; }

/// NaNs are equal here: which of two NaNs an addition yields is the machine's choice.
bool sameValue(const Scalar& a, const Scalar& b) {
  return a == b || (isFloat(a.type) && a.type == b.type && a.f != a.f && b.f != b.f);
}

void expectSameMeaning(ExprRef a, ExprRef b, const Evaluation& world, const std::string& text) {
  Evaluation inA = world, inB = world;
  const Scalar valueA = evaluate(a, inA), valueB = evaluate(b, inB);
  EXPECT_EQ(inA.failed, inB.failed) << text;
  EXPECT_TRUE(inA.failed || sameValue(valueA, valueB)) << text;
}

TEST(RandomExpressions, SimplificationKeepsValuesAndErrors) {
  int failures = 0;
  for (int k = 0; k < kExpressions; ++k) {
    RandomExpr random(static_cast<uint64_t>(k));
    Program program;
    RandomWorld::declare(program);
    ExprRef plain = random.make(typeOf(k), kDepth);
    ExprRef simplified = IntoArena(*program.arena)(plain);
    ASSERT_EQ(plain->type, simplified->type);
    for (int world = 0; world < 4; ++world) {
      const Evaluation in = random.world();
      Evaluation probe = in;
      evaluate(plain, probe);
      failures += probe.failed ? 1 : 0;
      expectSameMeaning(plain, simplified, in, toString(simplified, program));
    }
  }
  EXPECT_GT(failures, kExpressions / 10) << "errors must be exercised";
  EXPECT_LT(failures, 3 * kExpressions) << "and so must their absence";
}

TEST(RandomExpressions, RewritingNothingChangesNothing) {
  for (int k = 0; k < kExpressions; ++k) {
    ExprArena arena;
    RandomExpr random(static_cast<uint64_t>(k));
    ExprRef e = IntoArena(arena)(random.make(typeOf(k), kDepth));
    EXPECT_EQ(arena.rewrite(e, [](ExprRef) { return nullptr; }), e);
  }
}

TEST(RandomExpressions, SubstitutionIsEvaluationWithOtherParameters) {
  for (int k = 0; k < kExpressions; ++k) {
    Program program;
    RandomWorld::declare(program);
    RandomExpr random(static_cast<uint64_t>(k));
    ExprRef e = IntoArena(*program.arena)(random.make(typeOf(k), kDepth));
    ExprArena& arena = *program.arena;
    // i := p, s := i + p, p := 2
    const auto substituted = arena.substituteParams(
        {e}, {arena.param(2), arena.add(arena.param(0), arena.param(2)), arena.index(2)})[0];
    Evaluation before = random.world(), after = before;
    before.params = {after.params[2], Scalar::ofInt(kIndex, after.params[0].i + after.params[2].i),
                     Scalar::ofInt(kIndex, 2)};
    const Scalar expected = evaluate(e, before), actual = evaluate(substituted, after);
    EXPECT_EQ(before.failed, after.failed) << toString(e, program);
    EXPECT_TRUE(before.failed || sameValue(expected, actual)) << toString(e, program);
    // Each loop id still has one loop or recursion.
    std::map<uint32_t, ExprRef> loops;
    forEachNode({e, substituted}, [&](ExprRef n) {
      const bool repeats = n->kind == ExprKind::Loop || n->kind == ExprKind::Recursion;
      EXPECT_TRUE(!repeats || loops.emplace(n->index, n).second);
    });
  }
}

}  // namespace
}  // namespace kelpie::lcu

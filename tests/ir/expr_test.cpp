#include "ir/expr.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/diagnostic.h"

namespace kelpie::lcu {
namespace {

using enum ScalarType;

constexpr int kDeep = 200'000;

struct Arena : testing::Test {
  ExprArena arena;
  ExprRef i = arena.param(0), n = arena.host(1, Int64), m = arena.host(2, Int64);
  ExprRef p = arena.host(3, Bool), q = arena.host(4, Bool);
  ExprRef x = arena.host(5, Float64), y = arena.host(6, Float64);
  ExprRef zero = arena.index(0), one = arena.index(1);

  ExprRef failing(ExprRef value, SiteId site = 1) {
    return arena.check(p, value, Scalar::zero(value->type), site, i, n);
  }
  ExprRef f64(double v) { return arena.constant(Scalar::ofFloat(Float64, v)); }
  ExprRef op(ScalarOp o, ExprRef a, ExprRef b = nullptr) { return arena.op(o, a, b); }
};

TEST_F(Arena, EqualExpressionsAreOnePointer) {
  EXPECT_EQ(arena.add(arena.load(7, Int64, i), n), arena.add(arena.load(7, Int64, i), n));
  EXPECT_EQ(arena.add(n, m), arena.add(m, n));
  EXPECT_NE(op(ScalarOp::Add, x, y), op(ScalarOp::Add, y, x)) << "sums of NaNs depend on the order";
  EXPECT_NE(arena.load(7, Int64, i), arena.load(8, Int64, i));
  EXPECT_NE(arena.param(0, Float64), arena.param(0, Int64));
}

TEST_F(Arena, IdsFollowDependence) {
  ExprRef sum = arena.add(arena.mul(n, m), i);
  for (ExprRef operand : sum->operands) EXPECT_LT(operand->id, sum->id);
  EXPECT_TRUE(sum->usesParam);
  EXPECT_FALSE(sum->canFail);
  EXPECT_TRUE(arena.add(failing(n), i)->canFail);
}

TEST_F(Arena, IntegerAlgebra) {
  EXPECT_EQ(arena.add(n, zero), n);
  EXPECT_EQ(arena.add(zero, n), n);
  EXPECT_EQ(arena.mul(one, n), n);
  EXPECT_EQ(arena.mul(n, zero), zero);
  EXPECT_EQ(arena.sub(n, n), zero);
  EXPECT_EQ(arena.sub(arena.add(n, m), m), n);
  EXPECT_EQ(arena.sub(arena.add(n, m), n), m);
  EXPECT_EQ(arena.add(arena.sub(n, m), m), n);
  EXPECT_EQ(arena.add(arena.add(n, arena.index(3)), arena.index(-3)), n);
  EXPECT_EQ(arena.sub(n, arena.index(std::numeric_limits<int64_t>::min()))->op, ScalarOp::Add);
  EXPECT_EQ(op(ScalarOp::Less, arena.index(5), n), op(ScalarOp::Greater, n, arena.index(5)));
  EXPECT_EQ(op(ScalarOp::Equal, arena.add(n, one), arena.index(4)), op(ScalarOp::Equal, n, arena.index(3)));
  EXPECT_EQ(op(ScalarOp::Max, op(ScalarOp::Max, n, m), m), op(ScalarOp::Max, n, m));
  EXPECT_EQ(op(ScalarOp::GreaterEqual, arena.size(9), zero), arena.boolean(true));
  EXPECT_EQ(op(ScalarOp::Not, op(ScalarOp::Less, n, m)), op(ScalarOp::GreaterEqual, n, m));
}

TEST_F(Arena, LengthsAreNotNegative) {
  ExprRef length = arena.size(9), other = arena.size(10);
  ExprRef half = op(ScalarOp::Div, length, arena.index(2));
  ExprRef yes = arena.boolean(true), no = arena.boolean(false);
  EXPECT_EQ(op(ScalarOp::Max, length, arena.index(-1)), length);
  EXPECT_EQ(op(ScalarOp::Max, half, op(ScalarOp::Negate, half)), half);
  EXPECT_EQ(op(ScalarOp::LessEqual, half, length), yes);
  EXPECT_EQ(op(ScalarOp::Greater, half, length), no);
  EXPECT_EQ(op(ScalarOp::GreaterEqual, half, op(ScalarOp::Negate, length)), yes);
  EXPECT_EQ(op(ScalarOp::Less, half, op(ScalarOp::Negate, length)), no);
  // What these do not say, or what may be negative, stays.
  for (ExprRef kept : {op(ScalarOp::Less, half, length), op(ScalarOp::LessEqual, half, other),
                       op(ScalarOp::LessEqual, op(ScalarOp::Div, n, arena.index(2)), n),
                       op(ScalarOp::LessEqual, op(ScalarOp::Div, length, arena.index(-2)), length),
                       op(ScalarOp::GreaterEqual, n, op(ScalarOp::Negate, length)),
                       op(ScalarOp::GreaterEqual, length, op(ScalarOp::Negate, n)),
                       op(ScalarOp::Greater, half, op(ScalarOp::Negate, length))})
    EXPECT_NE(kept->kind, ExprKind::Constant);
  EXPECT_NE(op(ScalarOp::Max, n, arena.index(-1)), n);
}

TEST_F(Arena, FloatsKeepTheirBits) {
  EXPECT_NE(op(ScalarOp::Add, x, f64(0.0)), x);
  EXPECT_NE(op(ScalarOp::Mul, x, f64(0.0)), f64(0.0));
  EXPECT_EQ(op(ScalarOp::Mul, x, f64(1.0)), x);
  EXPECT_NE(op(ScalarOp::Sub, x, x), f64(0.0));
  EXPECT_NE(op(ScalarOp::Equal, x, x), arena.boolean(true));
  EXPECT_EQ(op(ScalarOp::Not, op(ScalarOp::Less, x, y))->op, ScalarOp::Not)
      << "NaN is neither less nor not less";
  EXPECT_EQ(op(ScalarOp::Not, op(ScalarOp::Equal, x, y)), op(ScalarOp::NotEqual, x, y));
  EXPECT_EQ(op(ScalarOp::Add, f64(1), f64(2)), f64(3));
  EXPECT_EQ(op(ScalarOp::Sin, f64(1))->kind, ExprKind::Op) << "sin may differ between targets";
}

TEST_F(Arena, ErrorsAreNeverDropped) {
  ExprRef bad = failing(n);
  EXPECT_NE(arena.mul(bad, zero), zero);
  EXPECT_NE(arena.sub(bad, bad), zero);
  EXPECT_NE(op(ScalarOp::Equal, bad, bad), arena.boolean(true));
  EXPECT_NE(arena.sub(arena.add(n, bad), bad), n);
  EXPECT_NE(op(ScalarOp::And, failing(q), arena.boolean(false)), arena.boolean(false));
  EXPECT_NE(arena.select(failing(q), n, n), n);
  EXPECT_EQ(op(ScalarOp::Max, bad, bad), bad);
}

TEST_F(Arena, Conversions) {
  ExprRef narrow = arena.host(8, Int32);
  EXPECT_EQ(arena.convert(n, Int64), n);
  EXPECT_EQ(arena.convert(arena.convert(narrow, Int64), Int32), narrow);
  EXPECT_NE(arena.convert(arena.convert(n, Int32), Int64), n);
  EXPECT_EQ(arena.convert(arena.index(300), Char), arena.constant(Scalar::ofChar(44)));
}

TEST_F(Arena, Conditionals) {
  EXPECT_EQ(arena.select(arena.boolean(true), n, failing(m)), n);
  EXPECT_EQ(arena.select(p, n, n), n);
  EXPECT_EQ(arena.select(arena.negation(p), n, m), arena.select(p, m, n));
  EXPECT_EQ(arena.select(p, arena.boolean(true), arena.boolean(false)), p);
  EXPECT_EQ(arena.select(p, arena.select(p, n, m), i), arena.select(p, n, i));
  EXPECT_EQ(arena.select(p, n, arena.select(p, n, m)), arena.select(p, n, m));
  const auto values = arena.select(p, {n, m, i}, {m, m, n});
  EXPECT_EQ(values[1], m);
  ASSERT_EQ(values[0]->kind, ExprKind::Project);
  EXPECT_EQ(values[0]->operands[0], values[2]->operands[0]);
  EXPECT_EQ(valueCount(values[0]->operands[0]), 2u);
}

TEST_F(Arena, Checks) {
  EXPECT_EQ(arena.check(arena.boolean(true), n, Scalar::ofInt(Int64, 0), 1, i, m), n);
  ExprRef doubled = arena.check(p, failing(n, 1), Scalar::ofInt(Int64, 7), 2, m, m);
  EXPECT_EQ(doubled, arena.check(p, n, Scalar::ofInt(Int64, 7), 1, i, n)) << "the first failure stands";
  EXPECT_EQ(arena.select(p, failing(n), m), arena.select(p, n, m));
  EXPECT_EQ(arena.select(p, m, failing(n))->canFail, true);
}

TEST_F(Arena, LoopsAreRenamedWhenRebuilt) {
  const uint32_t id = arena.newLoop();
  ExprRef k = arena.loopVar(id, 0, Int64);
  ExprRef end = arena.loop(id, {n}, op(ScalarOp::Less, k, m), {arena.add(k, i)})[0];
  EXPECT_EQ(arena.loop(id, {n}, op(ScalarOp::Less, k, m), {arena.add(k, i)})[0], end);
  const auto substitute = [&](ExprRef e) { return arena.substituteParams({e}, {n})[0]; };
  ExprRef other = substitute(end);
  EXPECT_FALSE(other->usesParam);
  EXPECT_NE(other->operands[0]->index, id);
  EXPECT_FALSE(anyNode({other}, [&](ExprRef e) { return e->kind == ExprKind::LoopVar && e->index == id; }));
  EXPECT_EQ(substitute(end), other) << "the same rewriting gives the same loop";
  EXPECT_EQ(arena.loop(id, {n}, arena.boolean(false), {k})[0], n);
}

TEST_F(Arena, LoopsThatDifferInTheirIdAreOne) {
  // count up to m in steps of i, inside a loop that doubles
  const auto nest = [&] {
    const uint32_t outer = arena.newLoop(), inner = arena.newLoop();
    ExprRef a = arena.loopVar(outer, 0, Int64), b = arena.loopVar(inner, 0, Int64);
    ExprRef end = arena.loop(inner, {a}, op(ScalarOp::Less, b, m), {arena.add(b, arena.add(a, i))})[0];
    return arena.loop(outer, {n}, op(ScalarOp::Less, a, m), {arena.add(end, a)})[0];
  };
  EXPECT_EQ(nest(), nest());
}

TEST_F(Arena, DeepChainsNeedNoStack) {
  ExprRef e = i;
  for (int k = 0; k < kDeep; ++k) e = arena.add(arena.mul(e, n), m);
  int visited = 0;
  forEachNode({e}, [&](ExprRef) { ++visited; });
  EXPECT_EQ(visited, 2 * kDeep + 3);
  ExprRef moved = arena.substituteParams({e}, {m})[0];
  EXPECT_FALSE(moved->usesParam);
  EXPECT_EQ(arena.rewrite(e, [](ExprRef) { return nullptr; }), e);
}

TEST_F(Arena, SharedNodesAreVisitedOnce) {
  ExprRef e = i;
  for (int k = 0; k < 64; ++k) e = arena.mul(arena.add(e, n), e);  // 2^64 paths
  EXPECT_EQ(arena.substituteParams({e, e}, {m})[0]->kind, ExprKind::Op);
}

TEST_F(Arena, RewriteUpSeesEachNodeOnceWithItsNewOperands) {
  ExprRef e = i;
  for (int k = 0; k < 64; ++k)
    e = arena.check(op(ScalarOp::Less, e, n), arena.mul(e, e), Scalar::ofInt(Int64, k), 0, e, n);
  int checks = 0;
  const ExprRef bare = arena.rewriteUp(e, [&](ExprRef node, const std::vector<ExprRef>& operands) -> ExprRef {
    if (node->kind != ExprKind::Check) return nullptr;
    EXPECT_FALSE(operands[1]->canFail);
    ++checks;
    return operands[1];
  });
  EXPECT_EQ(checks, 64);
  EXPECT_FALSE(bare->canFail);
  ExprRef expected = i;
  for (int k = 0; k < 64; ++k) expected = arena.mul(expected, expected);
  EXPECT_EQ(bare, expected);
}

TEST_F(Arena, RewriteSimplifies) {
  ExprRef e = arena.select(op(ScalarOp::Less, n, m), arena.add(i, n), i);
  const auto toZero = [&](ExprRef node) { return node == n ? zero : nullptr; };
  EXPECT_EQ(arena.rewrite(e, toZero), i);
}

TEST_F(Arena, WrongTypesAreCompilerBugs) {
  EXPECT_THROW(arena.add(n, x), InternalError);
  EXPECT_THROW(arena.load(1, Int64, x), InternalError);
  EXPECT_THROW(arena.select(n, n, n), InternalError);
  EXPECT_THROW(op(ScalarOp::Sqrt, n), InternalError);
  EXPECT_THROW(op(ScalarOp::Not, p, q), InternalError);
}

}  // namespace
}  // namespace kelpie::lcu

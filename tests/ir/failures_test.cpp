// What is evaluated for its checks alone.
#include "ir/failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ir/random_expr.h"

namespace kelpie::lcu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Failures : public ::testing::Test {
 protected:
  ExprRef quotientOf(ExprRef e, SiteId site) {
    const ExprRef zero = a.index(0);
    return a.check(a.op(ScalarOp::NotEqual, e, zero), e, Scalar::ofInt(kIndex, 1), site, zero, zero);
  }
  ExprArena a;
  ExprRef x = a.param(0), y = a.param(1);
  ExprRef p = a.op(ScalarOp::Less, x, y), zero = a.index(0);
  ExprRef c = quotientOf(x, 1), d = quotientOf(y, 2);
};

TEST_F(Failures, AreChecksNotWhatIsComputedFromThem) {
  EXPECT_THAT(failuresIn({a.add(a.mul(c, c), d)}, {}), ElementsAre(c, d));
  EXPECT_THAT(failuresIn({c, a.op(ScalarOp::Negate, c), a.mul(y, y)}, {}), ElementsAre(c));
}

TEST_F(Failures, AreNotMadeTwice) {
  EXPECT_THAT(failuresIn({a.add(c, d)}, {a.mul(d, x)}), ElementsAre(c));
  EXPECT_THAT(failuresIn({c}, {a.select(p, c, d)}), ElementsAre(c));
  EXPECT_THAT(failuresIn({c}, {a.select(p, a.add(c, y), a.mul(d, c))}), IsEmpty());
  const ExprRef inner = quotientOf(a.add(c, y), 3);
  EXPECT_THAT(failuresIn({c, a.add(inner, c)}, {}), ElementsAre(inner));
}

TEST_F(Failures, OfConditionals) {
  const ExprRef some = a.select(p, a.add(c, x), zero);
  EXPECT_THAT(failuresIn({some}, {}), ElementsAre(some));
  EXPECT_THAT(failuresIn({some}, {c}), IsEmpty());
  EXPECT_THAT(failuresIn({some}, {a.select(p, a.mul(c, y), y)}), IsEmpty());
  EXPECT_THAT(failuresIn({some}, {a.select(p, y, a.mul(c, y))}), ElementsAre(some));
  const ExprRef byCheck = a.select(a.op(ScalarOp::Less, c, y), x, y);
  EXPECT_THAT(failuresIn({byCheck}, {}), ElementsAre(c));
}

TEST_F(Failures, OfLoops) {
  const auto loopOf = [&](ExprRef initial, bool fails) {
    const uint32_t id = a.newLoop();
    const ExprRef variable = a.loopVar(id, 0, kIndex);
    const ExprRef next = a.sub(variable, a.index(1));
    return a.loop(id, {initial}, a.op(ScalarOp::Greater, variable, zero),
                  {fails ? quotientOf(next, 3) : next})[0];
  };
  EXPECT_THAT(failuresIn({a.add(loopOf(c, false), x)}, {}), ElementsAre(c));
  const ExprRef failing = loopOf(c, true);
  EXPECT_THAT(failuresIn({c, a.add(failing, x)}, {}), ElementsAre(failing));
}

TEST_F(Failures, LoadsOfNeighboursStay) {
  const auto at = [&](ExprRef position) { return a.load(7, kIndex, position); };
  const ExprRef left = quotientOf(a.op(ScalarOp::Max, a.sub(x, a.index(1)), zero), 3);
  const ExprRef near = at(left), far = at(quotientOf(at(x), 4));
  const std::vector<ExprRef> roots = {a.select(p, near, zero), a.select(p, far, zero)};
  EXPECT_THAT(failuresBeside({near, far}, roots), ElementsAre(near, far->operands[0]));
  EXPECT_THAT(failuresBeside({a.mul(near, y)}, {c}), ElementsAre(left));  // nobody needs it
  EXPECT_THAT(failuresBeside({near}, {near}), IsEmpty());
  EXPECT_THAT(failuresIn({near, far}, roots), ElementsAre(left, far->operands[0]));
}

TEST_F(Failures, OfManyConditionals) {
  ExprRef e = c;  // both branches of each have the next one
  for (int k = 0; k < 200; ++k) {
    const ExprRef condition = a.op(ScalarOp::Less, a.add(x, a.index(k)), y);
    e = a.select(condition, a.add(e, a.index(1)), a.mul(e, a.index(3)));
  }
  EXPECT_THAT(failuresIn({e}, {e}), IsEmpty());
  EXPECT_THAT(failuresIn({e}, {}).size(), 1);
}

/// Nodes of expressions that may stand by themselves; with loops inside they are left out.
std::vector<ExprRef> partsOf(const std::vector<ExprRef>& es) {
  std::vector<ExprRef> parts;
  forEachNode(es, [&](ExprRef e) {
    const auto bound = [](ExprRef n) { return n->kind == ExprKind::LoopVar || n->kind == ExprKind::Call; };
    if (!isMultiValued(e) && !anyNode({e}, bound)) parts.push_back(e);
  });
  return parts;
}

TEST(RandomFailures, StayTheSame) {
  constexpr int kCases = 4000, kDepth = 5;
  int failed = 0, shorter = 0;
  for (int k = 0; k < kCases; ++k) {
    RandomExpr random(static_cast<uint64_t>(k));
    std::mt19937_64 choice(static_cast<uint64_t>(k));
    Program program;
    RandomWorld::declare(program);
    ExprArena& arena = *program.arena;
    IntoArena into(arena);
    std::vector<ExprRef> es;
    for (int n = 0; n < 3; ++n) es.push_back(into(random.make(RandomWorld::kTypes[choice() % 6], kDepth)));
    const std::vector<ExprRef> parts = partsOf(es);
    std::vector<ExprRef> roots, conditions;
    for (const ExprRef part : parts)
      if (part->type == ScalarType::Bool) conditions.push_back(part);
    for (int n = 0; n < 3 && !parts.empty(); ++n) {
      const ExprRef part = parts[choice() % parts.size()];
      const ExprRef zero = arena.constant(Scalar::zero(part->type));
      roots.push_back(part);
      if (conditions.empty()) continue;
      const ExprRef condition = conditions[choice() % conditions.size()];
      roots.back() = choice() % 2 ? arena.select(condition, part, zero) : arena.select(condition, zero, part);
    }
    const std::vector<ExprRef> left = failuresIn(es, roots);
    shorter += left != es;
    for (int world = 0; world < 4; ++world) {
      const Evaluation in = random.world();
      const auto anyFails = [&](const std::vector<ExprRef>& some) {
        Evaluation at = in;
        bool fails = false;
        for (const ExprRef e : some) {
          evaluate(e, at);
          fails |= at.failed;
          at.failed = false;
        }
        return fails;
      };
      const bool expected = anyFails(roots) || anyFails(es);
      EXPECT_EQ(expected, anyFails(roots) || anyFails(left)) << k;
      failed += expected;
    }
  }
  EXPECT_GT(failed, kCases);
  EXPECT_LT(failed, 3 * kCases);
  EXPECT_GT(shorter, kCases / 2);
}

}  // namespace
}  // namespace kelpie::lcu

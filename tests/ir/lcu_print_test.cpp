#include <gtest/gtest.h>

#include "ir/expr_print.h"
#include "tests/ir/norm2.h"

namespace kelpie::lcu {
namespace {

TEST(LcuText, Norm2) {
  EXPECT_EQ(
      toString(Norm2().program),
      "function norm2(xs: [float64]) {\n"
      "  kernel sum {\n"
      "    let sum1: &float64 = REDUCE flat #xs { i => xs[i] } (0.0) { x, y => x + y }\n"
      "    return sum1\n"
      "  }\n"
      "  kernel filter {\n"
      "    let n: &int64, gts: [float64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0.0 }\n"
      "    return n, gts\n"
      "  }\n"
      "  kernel sum {\n"
      "    let sum2: &float64 = REDUCE flat n { i => gts[i] } (0.0) { x, y => x + y }\n"
      "    return sum2\n"
      "  }\n"
      "  kernel scale {\n"
      "    let res_6: [float64; #xs] = MAP flat #xs { i => xs[i] / sum1 }\n"
      "    return res_6\n"
      "  }\n"
      "  kernel scale {\n"
      "    let res_7: [float64; #xs] = MAP flat #xs { i => xs[i] / sum2 }\n"
      "    return res_7\n"
      "  }\n"
      "  return res_6, res_7\n"
      "}\n"
      "entry main: () {\n"
      "}\n");
}

struct ExprText : testing::Test {
  Program program;
  ExprArena& arena = *program.arena;
  VarId n = program.newVar({"n", VarKind::Host, kIndex}), xs = program.newVar({"xs", VarKind::Array, kIndex}),
        x = program.newVar({"x", VarKind::Host, kIndex}),
        then = program.newVar({"then", VarKind::Host, kIndex});
  ExprRef i = arena.param(0), size = arena.host(n, kIndex), load = arena.load(xs, kIndex, i);

  std::string text(ExprRef e) { return toString(e, program); }
};

TEST_F(ExprText, OperatorsKeepTheirTree) {
  EXPECT_EQ(text(arena.mul(arena.add(i, size), load)), "(i + n) * xs[i]");
  EXPECT_EQ(text(arena.sub(i, arena.sub(size, load))), "i - (n - xs[i])");
  EXPECT_EQ(text(arena.sub(i, arena.index(3))), "i - 3");
  EXPECT_EQ(text(arena.op(ScalarOp::Max, i, size)), "max(i, n)");
  EXPECT_EQ(text(arena.op(ScalarOp::Negate, i)), "neg(i)");
  EXPECT_EQ(text(arena.convert(arena.mul(i, i), ScalarType::Float32)), "float32(i * i)");
}

TEST_F(ExprText, ReservedNamesGetTheirNumber) {
  EXPECT_EQ(text(arena.add(arena.host(x, kIndex), arena.host(then, kIndex))), "x_3 + then_4");
}

TEST_F(ExprText, SharedNodesAreNamedWhereTheyAreNeeded) {
  EXPECT_EQ(text(arena.add(arena.mul(load, load), i)), "let t1 = xs[i] in t1 * t1 + i");
  ExprRef condition = arena.op(ScalarOp::Less, i, size);
  EXPECT_EQ(text(arena.select(condition, arena.mul(load, load), i)),
            "if i < n then let t1 = xs[i] in t1 * t1 else i");
  EXPECT_EQ(text(arena.add(arena.select(condition, load, i), load)),
            "let t1 = xs[i] in (if i < n then t1 else i) + t1");
  EXPECT_EQ(text(arena.select(condition, load, arena.add(load, size))),
            "let t1 = xs[i] in if i < n then t1 else t1 + n");
}

TEST_F(ExprText, ConditionalsOfSeveralValuesAndLoops) {
  const auto values = arena.select(arena.op(ScalarOp::Less, i, size), {i, load}, {size, i});
  EXPECT_EQ(text(arena.mul(values[0], values[1])),
            "let (t1, t2) = if i < n then (i, xs[i]) else (n, i) in t1 * t2");
  const uint32_t id = arena.newLoop();
  ExprRef k = arena.loopVar(id, 0, kIndex);
  ExprRef at = arena.load(xs, kIndex, k);
  ExprRef end = arena.loop(id, {i}, arena.op(ScalarOp::Less, at, size), {arena.add(k, at)})[0];
  EXPECT_EQ(text(end), "let t1 = loop (k1 = i) { let t2 = xs[k1] in while t2 < n next k1 + t2 } in t1");
}

TEST_F(ExprText, ChecksNameTheirSite) {
  ExprRef inside = arena.op(ScalarOp::Less, i, arena.size(xs));
  EXPECT_EQ(text(arena.check(inside, load, Scalar::ofInt(kIndex, 0), 3, i, arena.size(xs))),
            "check(i < #xs, xs[i], 0, @3, i, #xs)");
}

TEST_F(ExprText, DeepExpressionsBecomeLets) {
  ExprRef e = i;
  for (int k = 0; k < 100'000; ++k) e = arena.mul(arena.add(e, size), arena.index(3));
  const std::string words = text(e);
  EXPECT_NE(words.find("let t1 = "), std::string::npos);
  EXPECT_LT(words.size(), 10'000'000u);
}

TEST(LcuPrograms, BlocksAndFreeVariables) {
  Norm2 norm2;
  int blocks = 0;
  forEachBlock(static_cast<const Program&>(norm2.program), [&](const Block&) { ++blocks; });
  EXPECT_EQ(blocks, 2);
  const auto& stmts = norm2.program.functions[0].body.stmts;
  EXPECT_EQ(freeVars(stmts[1]), (std::vector{norm2.xs}));
  EXPECT_EQ(freeVars(stmts[2]), (std::vector{norm2.count, norm2.gts}));
  EXPECT_EQ(freeVars(std::get<Launch>(stmts[4].node).kernel.bindings[0]),
            (std::vector{norm2.xs, norm2.sum2}));
}

TEST(LcuPrograms, FreeVariablesOfNestedBlocks) {
  Program program;
  const VarId n = program.newVar({"n", VarKind::Host, kIndex}),
              k = program.newVar({"k", VarKind::Host, kIndex});
  const VarId c = program.newVar({"c", VarKind::Host, ScalarType::Bool}),
              m = program.newVar({"m", VarKind::Host, kIndex});
  ExprArena& arena = *program.arena;
  auto condition = std::make_shared<Block>(), body = std::make_shared<Block>();
  condition->stmts.push_back(
      {{c}, HostLet{{arena.op(ScalarOp::Less, arena.host(k, kIndex), arena.host(n, kIndex))}}, {}});
  condition->results = {c};
  body->stmts.push_back({{m}, HostLet{{arena.add(arena.host(k, kIndex), arena.index(1))}}, {}});
  body->results = {m};
  const VarId start = program.newVar({"start", VarKind::Host, kIndex});
  EXPECT_EQ(freeVars(Stmt{{}, HostLoop{{k}, {start}, condition, body}, {}}), (std::vector{n, start}));
}

}  // namespace
}  // namespace kelpie::lcu

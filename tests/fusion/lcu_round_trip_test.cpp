// Random programs: what is read back is what was printed, node by node.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "fusion/lcu_reader.h"
#include "ir/lcu_names.h"
#include "tests/ir/random_expr.h"

namespace kelpie::lcu {
namespace {

Program read(const std::string& text) {
  ReadResult result = readProgram(text);
  if (auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result))
    throw InternalError(describe(diagnostics->front(), text) + "\n" + text);
  return std::move(std::get<Program>(result));
}

/// Maps of random thunks, one kernel each.
Program randomProgram(uint64_t seed, int kernels, int depth) {
  Program program;
  RandomWorld::declare(program);
  HostFunction& function = program.functions[0];
  ExprArena& arena = *program.arena;
  RandomExpr random(seed);
  IntoArena into(arena);
  for (int k = 0; k < kernels; ++k) {
    Soac soac;
    soac.space = {SpaceKind::Regular, arena.index(10), arena.index(2), 0, arena.index(5)};
    for (int j = 0; j < 2; ++j) {
      const ScalarType type = RandomWorld::kTypes[(k + j) % 6];
      soac.pull.push_back(into(random.make(type, depth)));
      soac.results.push_back(
          program.newVar({fmt::format("r{}_{}", k, j), VarKind::Array, type, arena.index(10)}));
    }
    const auto results = soac.results;
    function.body.stmts.push_back({results, Launch{Kernel{"k", {std::move(soac)}, results}}, {}});
  }
  program.entry.name = "main";
  return program;
}

std::vector<ExprRef> thunks(const Program& program) {
  std::vector<ExprRef> all;
  for (const Stmt& stmt : program.functions[0].body.stmts)
    for (ExprRef e : std::get<Launch>(stmt.node).kernel.bindings[0].pull) all.push_back(e);
  return all;
}

/// The same DAG up to the numbers of loops, sharing included.
bool sameStructure(const std::vector<ExprRef>& a, const std::vector<ExprRef>& b) {
  std::vector<ExprRef> nodesA, nodesB;
  forEachNode(a, [&](ExprRef e) { nodesA.push_back(e); });
  forEachNode(b, [&](ExprRef e) { nodesB.push_back(e); });
  if (nodesA.size() != nodesB.size()) return false;
  std::map<ExprRef, ExprRef> partner;
  std::map<uint32_t, uint32_t> loops;
  for (size_t k = 0; k < nodesA.size(); ++k) {
    ExprRef x = nodesA[k], y = nodesB[k];
    const bool isLoop = isUnbounded(x) || x->kind == ExprKind::LoopVar;
    const bool sameIndex =
        isLoop ? loops.emplace(x->index, y->index).first->second == y->index : x->index == y->index;
    if (x->kind != y->kind || x->type != y->type || x->op != y->op || !sameIndex || x->count != y->count ||
        !(x->constant == y->constant) || x->operands.size() != y->operands.size())
      return false;
    for (size_t j = 0; j < x->operands.size(); ++j)
      if (partner.at(x->operands[j]) != y->operands[j]) return false;
    partner.emplace(x, y);
  }
  return true;
}

TEST(LcuRoundTrip, RandomPrograms) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Program program = randomProgram(seed, 6, 5);
    const std::string text = toString(program);
    const Program again = read(text);
    ASSERT_EQ(toString(again), text) << seed;
    ASSERT_TRUE(sameStructure(thunks(program), thunks(again))) << text;
    ASSERT_THAT(verify(again, false), testing::ElementsAre()) << text;
  }
}

TEST(LcuRoundTrip, LargePrograms) {
  const Program program = randomProgram(1, 300, 8);
  size_t nodes = 0;
  forEachNode(thunks(program), [&](ExprRef) { ++nodes; });
  EXPECT_GT(nodes, 20'000u);
  const std::string text = toString(program);
  EXPECT_EQ(toString(read(text)), text);
}

TEST(LcuRoundTrip, DeepThunks) {
  Program program = randomProgram(1, 1, 1);
  ExprArena& arena = *program.arena;
  ExprRef e = arena.param(0);
  for (int k = 0; k < 20'000; ++k) e = arena.mul(arena.add(e, arena.param(1)), arena.index(3));
  Stmt& stmt = program.functions[0].body.stmts[0];
  Kernel& kernel = std::get<Launch>(stmt.node).kernel;
  kernel.bindings[0].pull = {e};
  kernel.bindings[0].results = kernel.returns =
      stmt.results = {program.newVar({"deep", VarKind::Array, kIndex})};
  const std::string text = toString(program);
  EXPECT_EQ(toString(read(text)), text);
}

/// Every word of the grammar is written in quotes when it is a name.
TEST(LcuRoundTrip, NamesAvoidTheGrammarsWords) {
  std::ifstream file(std::string(KELPIE_SOURCE_DIR) + "/grammar/Lcu.g4");
  std::stringstream grammar;
  grammar << file.rdbuf();
  const std::string text = grammar.str();
  const std::regex word("'([a-zA-Z]+)'");
  int words = 0;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), word); at != std::sregex_iterator(); ++at) {
    const std::string name = (*at)[1];
    if (name == "i32" || name == "f32") continue;  // suffixes of numbers
    EXPECT_EQ(nameText(name), '"' + name + '"');
    ++words;
  }
  EXPECT_GT(words, 40);
}

}  // namespace
}  // namespace kelpie::lcu

// Every fusion rule on λcu text: the kernels before, the kernels after, and the rules that made them; and
// that both compute the same.
//
// Each case is a file of rules/: a line `rules:` with the rules of each kernel after fusion, kernels
// separated by
// `|`, then the function before and after.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "fusion/fuse.h"
#include "tests/fusion/read_program.h"
#include "runtime/host_target.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::fusion {
namespace {

struct Golden {
  std::string name, rules, before, after;
};
void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

std::vector<Golden> goldenFiles() {
  std::vector<Golden> result;
  for (const auto& entry : std::filesystem::directory_iterator(KELPIE_SOURCE_DIR "/tests/fusion/rules")) {
    std::ifstream file(entry.path());
    Golden golden;
    golden.name = entry.path().stem().string();
    std::string* section = &golden.rules;
    for (std::string line; std::getline(file, line);) {
      if (line == "--- before") {
        section = &golden.before;
      } else if (line == "--- after") {
        section = &golden.after;
      } else {
        *section += section == &golden.rules ? line : line + "\n";
      }
    }
    result.push_back(std::move(golden));
  }
  std::sort(result.begin(), result.end(), [](const Golden& a, const Golden& b) { return a.name < b.name; });
  return result;
}

std::string functionsOf(const lcu::Program& program) {
  const std::string text = lcu::toString(program);
  return text.substr(0, text.find("entry "));
}

std::string rulesOf(const FusionReport& report) {
  std::vector<std::string> rules;
  for (const RegionReport& region : report.regions) {
    for (const ClusterReport& cluster : region.clusters)
      rules.push_back(cluster.rules.empty() ? "-" : fmt::format("{}", fmt::join(cluster.rules, " ")));
  }
  return fmt::format("rules: {}", fmt::join(rules, " | "));
}

class Rules : public ::testing::TestWithParam<Golden> {};

TEST_P(Rules, RewriteAsExpected) {
  lcu::Program program = read(GetParam().before);
  ASSERT_THAT(lcu::verify(program, false), ::testing::ElementsAre());
  const FusionReport report = fuse(program);
  EXPECT_THAT(lcu::verify(program, true), ::testing::ElementsAre());
  EXPECT_EQ(functionsOf(program), GetParam().after);
  EXPECT_EQ(rulesOf(report), GetParam().rules);
}

/// A function's body as a program, its parameters as globals with random values.
class RandomCall {
 public:
  RandomCall(const std::string& function, uint32_t seed) : random_(seed) {
    b_.program = read(function);
    lcu::HostFunction& f = b_.program.functions.at(0);
    b_.program.entry.body = std::move(f.body);
    const std::vector<lcu::VarId> parameters = f.params, results = b_.program.entry.body.results;
    b_.program.functions.clear();
    if (b_.program.sites.empty()) b_.program.newSite({{}, "unknown"});
    b_.program.entry.name = "main";
    for (lcu::VarId v : parameters) bind(v);
    b_.program.entry.body.results.clear();
    for (lcu::VarId v : results) b_.result(v);
  }

  runtime::RunResult run() {
    runtime::Executor executor(std::make_unique<runtime::InterpTarget>(0));
    return b_.run(executor);
  }

 private:
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  /// Lengths by how a declaration spells them; new ones are made up.
  int64_t length(const std::string& spelled) {
    const auto [it, fresh] = lengths_.try_emplace(spelled, number(0, 3) == 0 ? 0 : number(1, 40));
    return it->second;
  }

  void bind(lcu::VarId v) {
    const lcu::VarInfo info = b_.program.vars[v];
    const auto cell = static_cast<uint32_t>(b_.globalColumns.size());
    if (info.kind == lcu::VarKind::Host) {
      b_.program.globals.push_back({cell, {CoreType(info.type)}, {v}});
      b_.globalColumns.push_back(scalarColumn(info.type, {Scalar::ofInt(info.type, length("#xs"))}));
      return;
    }
    Column elements = info.name == "off" ? offsets() : values(info);
    lengths_.try_emplace("#" + info.name, elements.length());
    const lcu::VarId n = b_.var(info.name + "_length", lcu::VarKind::Host, testing::kI64);
    Column value = kelpie::testing::sequence(std::move(elements));
    b_.program.globals.push_back({cell, {value.type}, {n, v}});
    b_.globalColumns.push_back(std::move(value));
  }

  /// Of segments that make up `val`.
  Column offsets() {
    std::vector<int64_t> offsets{0};
    for (int64_t k = number(0, 8); k > 0; --k) offsets.push_back(offsets.back() + number(0, 6));
    lengths_["#val"] = offsets.back();
    lengths_["#off - 1"] = static_cast<int64_t>(offsets.size()) - 1;
    return kelpie::testing::ints(offsets);
  }

  Column values(const lcu::VarInfo& info) {
    const int64_t n = length(info.extent ? lcu::toString(info.extent, b_.program) : "#" + info.name);
    std::vector<Scalar> values;
    for (int64_t k = 0; k < n; ++k) {
      if (isFloat(info.type)) {
        values.push_back(Scalar::ofFloat(info.type, static_cast<double>(number(-80, 80)) / 8));
      } else {  // `col` are positions in `v`
        values.push_back(
            Scalar::ofInt(info.type, info.name == "col" ? number(0, length("#v") - 1) : number(-9, 9)));
      }
    }
    return scalarColumn(info.type, values);
  }

  std::mt19937 random_;
  kelpie::testing::Builder b_;
  std::map<std::string, int64_t> lengths_{{"#table", 16}, {"#v", 16}};  ///< not empty: values lead there
};

TEST_P(Rules, KeepTheMeaning) {
  int succeeded = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const runtime::RunResult expected = RandomCall(GetParam().before, seed).run();
    const runtime::RunResult actual = RandomCall(GetParam().after, seed).run();
    ASSERT_EQ(actual.index(), expected.index());
    if (const auto* error = std::get_if<RuntimeError>(&expected)) {
      const auto& after = std::get<RuntimeError>(actual);
      EXPECT_EQ(after.message, error->message);
      continue;
    }
    ++succeeded;
    EXPECT_TRUE(std::get<Columns>(actual) == std::get<Columns>(expected));
  }
  EXPECT_GT(succeeded, 10);
}

INSTANTIATE_TEST_SUITE_P(All, Rules, ::testing::ValuesIn(goldenFiles()),
                         [](const auto& info) { return info.param.name; });

TEST(RulesAll, HaveACase) {
  std::set<std::string> seen;
  for (const Golden& golden : goldenFiles()) {
    std::istringstream words(golden.rules);
    for (std::string word; words >> word;) seen.insert(word);
  }
  for (const char* rule :
       {"MAP-MAP",         "MAP-REDUCE",     "MAP-SCAN",          "MAP-FILTER",        "MAP-PERMUTE",
        "MAP-PARTITION",   "FILTER-MAP",     "FILTER-REDUCE",     "FILTER-FILTER",     "FILTER-SCAN",
        "FILTER-COUNT",    "ONCE-ONCE",      "REDUCE-ONCE",       "SCAN-MAP",          "MAP+MAP",
        "REDUCE+REDUCE",   "SCAN+SCAN",      "ONCE+ONCE",         "SEG-MAP-MAP",       "SEG-MAP-REDUCE",
        "SEG-MAP-SCAN",    "SEG-MAP-FILTER", "SEG-FILTER-MAP",    "SEG-FILTER-REDUCE", "SEG-FILTER-FILTER",
        "SEG-FILTER-SCAN", "SEG-REDUCE-MAP", "SEG-REDUCE+REDUCE", "SEG-SCAN+SCAN"})
    EXPECT_TRUE(seen.contains(rule)) << rule;
}

// Two arrays would have to be stored for the sum of them to be computed where it is read, and it is stored
// instead; but not where they are stored for another reason.
TEST(RulesInlineMaps, NoMoreIsStoredThanIsNotStored) {
  const auto stored = [](const std::string& others) {
    const std::string text = R"(function f(xs: [int64], ys: [int64], n: int64) {
  kernel k1 { let a: [int64; #xs] = MAP flat #xs { i => xs[i] / check(n != 0, n, 1, @0, 0, 0) }
    return a }
  kernel k2 { let b: [int64; #xs] = MAP flat #xs { i => ys[i] / check(n != 0, n, 1, @0, 0, 0) }
    return b }
  kernel k3 { let c: [int64; #xs] = MAP flat #xs { i => a[i] + b[i] }
    return c }
  kernel k4 { let d: [int64; #xs] = MAP flat #xs { i => c[#xs - 1 - i] }
    return d }
)" + others;
    lcu::Program program = read(text);
    fuse(program);
    EXPECT_THAT(lcu::verify(program, true), ::testing::ElementsAre());
    size_t arrays = 0;
    lcu::forEachBlock(program, [&](const lcu::Block& block) {
      for (const lcu::Stmt& stmt : block.stmts)
        if (const auto* launch = std::get_if<lcu::Launch>(&stmt.node))
          arrays += launch->kernel.returns.size();
    });
    return arrays;
  };
  EXPECT_EQ(stored("  return d\n}\n"), 2u);        // c, d
  EXPECT_EQ(stored("  return a, b, d\n}\n"), 3u);  // a, b, d
}

// Each map reads the one before at three positions: inlined without limit, the last would load 3^k elements.
TEST(RulesInlineMaps, ChainOfGathersGrowsLinearly) {
  const auto nodesOfChain = [](int maps) {
    std::string text = "function chain(a0: [int64]) {\n";
    for (int k = 1; k <= maps; ++k) {
      text += fmt::format(
          "  kernel k{0} {{\n    let a{0}: [int64; #a0] = MAP flat #a0 {{ i =>"
          " a{1}[i / 2] + a{1}[(i + 5) / 2] + a{1}[i * 3 / 4] }}\n    return a{0}\n  }}\n",
          k, k - 1);
    }
    lcu::Program program = read(text + fmt::format("  return a{}\n}}\n", maps));
    fuse(program);
    EXPECT_THAT(lcu::verify(program, true), ::testing::ElementsAre());
    size_t nodes = 0;
    lcu::forEachBlock(program, [&](const lcu::Block& block) {
      for (const lcu::Stmt& stmt : block.stmts) {
        const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
        if (!launch) continue;
        for (const lcu::Soac& soac : launch->kernel.bindings) {
          lcu::forEachNode(soac.pull, [&](lcu::ExprRef) { ++nodes; });
        }
      }
    });
    return nodes;
  };
  const size_t six = nodesOfChain(6);
  EXPECT_GT(six, 6u);
  EXPECT_LE(nodesOfChain(12), 3 * six);
}

}  // namespace
}  // namespace kelpie::fusion

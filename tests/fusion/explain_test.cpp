// The why-not list says the truth: whoever is said to be unable to share a kernel shares one in no legal
// clustering, and what a pair is said to cost is what the best clustering with it costs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "fusion/fuse.h"
#include "tests/fusion/read_program.h"
#include "tests/fusion/random_problem.h"
#include "tests/fusion/random_program.h"

namespace kelpie::fusion {
namespace {

using kelpie::testing::RandomProgram;

/// By pair: the least cost of a legal clustering that has both together.
std::map<std::pair<int, int>, double> costsTogether(const PartitionProblem& problem) {
  std::map<std::pair<int, int>, double> best;
  forEachPartition(problem, PairTable(problem), [&](const Assignment& cluster) {
    if (illegal(problem, cluster)) return;
    const double cost = costOf(problem, cluster);
    for (int a = 0; a < problem.nodes; ++a) {
      for (int b = a + 1; b < problem.nodes; ++b) {
        if (cluster[a] != cluster[b]) continue;
        const auto [it, fresh] = best.try_emplace({a, b}, cost);
        if (!fresh) it->second = std::min(it->second, cost);
      }
    }
  });
  return best;
}

/// Pairs are priced side by side; which thread takes which makes no difference.
TEST(Explain, ReportsAreTheSameEachTime) {
  size_t byCost = 0;
  for (uint32_t seed = 3; seed < 15; ++seed) {
    RandomProgram program(seed, 40, false);
    FusionOptions options;
    options.explain = true;
    options.costs.collectiveBudget = 16;
    std::vector<std::string> reasons;
    for (int turn = 0; turn < 3; ++turn) {
      lcu::Program copy = program.b.program;
      std::string all;
      for (const RegionReport& region : fuse(copy, options).regions)
        for (const PairReport& pair : region.pairs) {
          all += fmt::format("{} {} {}\n", pair.a, pair.b, pair.reason);
          byCost += pair.cause == PairCause::Cost;
        }
      reasons.push_back(all);
    }
    EXPECT_EQ(reasons[0], reasons[1]);
    EXPECT_EQ(reasons[0], reasons[2]);
  }
  EXPECT_GT(byCost, 100u);
}

TEST(Explain, EveryPairIsExplainedTruly) {
  std::map<PairCause, int> seen;
  for (uint32_t seed = 0; seed < 250; ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram program(seed, 8, seed % 3 == 0);
    FusionOptions options;
    options.explain = true;
    if (seed % 2 == 0) options.costs.collectiveBudget = 16;
    std::vector<PartitionProblem> problems;
    options.observe = [&](const RegionReport&, const PartitionProblem& problem, const PairTable&) {
      problems.push_back(problem);
    };
    const FusionReport report = fuse(program.b.program, options);
    ASSERT_EQ(problems.size(), 1u);
    ASSERT_EQ(report.regions.size(), 1u);
    if (problems[0].nodes > 12) continue;
    const RegionReport& region = report.regions[0];
    const auto together = costsTogether(problems[0]);
    ASSERT_EQ(region.strategies.size(), 1u);
    const double cost = region.strategies[0].objective;
    ASSERT_EQ(illegal(problems[0], region.strategies[0].cluster), std::nullopt);
    for (const PairReport& pair : region.pairs) {
      SCOPED_TRACE(fmt::format("{} and {}: {}: {}", region.nodes[pair.a].name, region.nodes[pair.b].name,
                               toString(pair.cause), pair.reason));
      ++seen[pair.cause];
      EXPECT_FALSE(pair.reason.empty());
      EXPECT_EQ(pair.together, pair.cause == PairCause::Together);
      const auto it = together.find(std::minmax(pair.a, pair.b));
      if (pair.cause != PairCause::Together && pair.cause != PairCause::Cost) {
        EXPECT_EQ(it, together.end());
      } else if (it == together.end()) {
        ADD_FAILURE() << "no legal clustering has both together";
      } else if (pair.reason.find("us instead of") != std::string::npos) {
        EXPECT_THAT(pair.reason,
                    ::testing::HasSubstr(fmt::format("takes {:.2f} us instead of {:.2f}", it->second, cost)));
      } else if (pair.reason.find("by less than") != std::string::npos) {
        EXPECT_NEAR(it->second, cost, 0.01);
      } else {
        EXPECT_NEAR(it->second, cost, 1e-6);
      }
    }
  }
  for (const PairCause cause : {PairCause::Together, PairCause::Edge, PairCause::Path, PairCause::Requirement,
                                PairCause::Spaces, PairCause::Budget, PairCause::Cost})
    EXPECT_GT(seen[cause], 0) << toString(cause);
}

TEST(Explain, EveryKernelOfSeveralNamesItsRules) {
  int kernels = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    RandomProgram program(seed, 12, seed % 2 == 0);
    const FusionReport report = fuse(program.b.program);
    for (const RegionReport& region : report.regions) {
      for (const ClusterReport& cluster : region.clusters) {
        if (cluster.nodes.size() < 2) continue;
        EXPECT_FALSE(cluster.rules.empty()) << "seed " << seed << ": " << cluster.kernel;
        ++kernels;
      }
    }
  }
  EXPECT_GT(kernels, 100);
}

TEST(Explain, AKernelWhoseChecksAnotherMakesIsNamedInTheRules) {
  lcu::Program program = read(R"(
function f(xs: [int64]) {
  kernel a { let a: [int64; #xs] = SCAN flat #xs { i => check(xs[i] >= 0, xs[i], 0, @0, i, 0) } (0) { x, y => x + y } return a }
  kernel b { let b: [int64; #xs] = MAP flat #xs { i => check(xs[i] >= 0, xs[i], 0, @0, i, 0) } return b }
  return a
})");
  const FusionReport report = fuse(program);
  ASSERT_EQ(report.regions.size(), 1u);
  ASSERT_EQ(report.regions[0].clusters.size(), 1u);
  EXPECT_THAT(report.regions[0].clusters[0].rules, ::testing::ElementsAre("SCAN+MAP"));
}

/// The one region of a program, with all reasons.
RegionReport explained(std::string_view text) {
  lcu::Program program = read(text);
  FusionOptions options;
  options.explain = true;
  const FusionReport report = fuse(program, options);
  EXPECT_EQ(report.regions.size(), 1u);
  return report.regions.at(0);
}

TEST(Explain, ReasonsSayWhatTheLaterStatementDoes) {
  const RegionReport region = explained(R"(
function f(xs: [int64], ys: [int64], text: [char]) {
  kernel whole { let s: &int64 = REDUCE flat #xs { i => xs[i] } (0) { x, y => x + y } return s }
  kernel some { let n: &int64, as: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 } return n, as }
  kernel share { let b: [int64; #xs] = MAP flat #xs { i => xs[i] - s } return b }
  kernel thrown { let c: [int64; #xs] = PERMUTE flat #xs { i => b[i] } to { i => #xs - 1 - i } target #xs fill (0) return c }
  kernel near { let d: [int64; #xs] = MAP flat #xs { i => c[i] } return d }
  kernel far { let e: [int64; n] = MAP flat n { i => xs[i] + as[n - 1 - i] } return e }
  let done: bool = service print(text): ([char]) -> (bool) @0
  kernel late { let g: [int64; #ys] = MAP flat #ys { i => check(ys[i] != 0, ys[i], 1, @0, i, 0) } return g }
  return d, e, g, done
})");
  std::vector<std::string> edges;
  for (const EdgeReport& e : region.edges) edges.push_back(region.nodes[e.to].name + " " + e.reason);
  EXPECT_THAT(
      edges,
      ::testing::UnorderedElementsAre(
          "share needs the finished result of whole", "thrown reads share, element for element",
          "near reads what thrown permutes, which is complete only after it",
          "far needs the number of survivors of some", "late may fail, which comes after earlier effects"));
}

/// What keeps a kernel from running over a filter's elements is said of pairs that it keeps apart, and of no
/// others.
TEST(Explain, ObstaclesBelongToTheirFilter) {
  const RegionReport region = explained(R"(
function f(xs: [int64], ys: [int64]) {
  kernel some { let n: &int64, as: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 } return n, as }
  kernel places { let b: [int64; n] = MAP flat n { i => i * 2 } return b }
  kernel along { let c: [int64; #xs] = MAP flat #xs { i => xs[i] + 1 } return c }
  kernel other { let d: [int64; #ys] = MAP flat #ys { i => ys[i] + 1 } return d }
  return b, c, d
})");
  std::map<std::string, std::string> reasons;
  for (const PairReport& pair : region.pairs)
    reasons[region.nodes[pair.a].name + " " + region.nodes[pair.b].name] = pair.reason;
  EXPECT_EQ(reasons["some places"],
            "places runs over the survivors of some and uses the positions of the survivors");
  EXPECT_EQ(reasons["places along"], "different elements; places uses the positions of the survivors");
  EXPECT_EQ(reasons["places other"], "different elements");
}

TEST(Explain, AllPairsOfRegionsOfAHundredNodesAreListed) {
  RandomProgram program(2, 100, true);
  FusionOptions options;
  options.explain = true;
  const FusionReport report = fuse(program.b.program, options);
  ASSERT_EQ(report.regions.size(), 1u);
  const RegionReport& region = report.regions[0];
  EXPECT_GT(region.nodes.size(), 70u);
  const auto kernels = static_cast<size_t>(std::count_if(region.nodes.begin(), region.nodes.end(),
                                                         [](const NodeReport& node) { return node.kernel; }));
  EXPECT_EQ(region.pairs.size(), kernels * (kernels - 1) / 2);
  // What a pair costs is that of the best schedule found with it, which is never cheaper.
  ASSERT_EQ(region.strategies[0].gap, 0);
  int byCost = 0;
  for (const PairReport& pair : region.pairs) {
    double other = 0, best = 0;
    const size_t at = pair.reason.find("takes ");
    if (at == std::string::npos ||
        std::sscanf(pair.reason.c_str() + at, "takes %lf us instead of %lf", &other, &best) != 2)
      continue;
    ++byCost;
    EXPECT_EQ(pair.cause, PairCause::Cost);
    EXPECT_THAT(pair.reason, ::testing::HasSubstr("by cost: the best schedule"));
    EXPECT_GE(other, best) << pair.reason;
  }
  EXPECT_GT(byCost, 0);
}

/// Sums that all others of a line need, and what subtracts them: hundreds of pairs that nothing forbids.
TEST(Explain, ReasonsAreTheSameEveryTime) {
  std::string text = "function f(xs: [int64]) {\n";
  constexpr int kSteps = 24;
  for (int k = 0; k < kSteps; ++k) {
    const std::string from = k < 2 ? "xs" : fmt::format("b{}", k * 7 % (k - 1));
    text += fmt::format(
        "kernel a{0} {{ let a{0}: &int64 = REDUCE flat #xs {{ i => {1}[i] + {0} }} (0) {{ x, y => x + y }} "
        "return a{0} }}\nkernel b{0} {{ let b{0}: [int64; #xs] = MAP flat #xs {{ i => {1}[i] * a{2} }} "
        "return b{0} }}\n",
        k, from, k / 2);
  }
  text += "return b0";
  for (int k = 1; k < kSteps; ++k) text += fmt::format(", b{}", k);
  text += "\n}";
  FusionOptions options;
  options.strategy = Strategy::Greedy;
  options.explain = true;
  std::vector<std::string> reasons;
  for (int round = 0; round < 2; ++round) {
    lcu::Program program = read(text);
    const FusionReport report = fuse(program, options);
    ASSERT_EQ(report.regions.size(), 1u);
    std::vector<std::string> these;
    for (const PairReport& pair : report.regions[0].pairs) these.push_back(pair.reason);
    if (round == 0) reasons = these;
    EXPECT_EQ(these, reasons);
    EXPECT_GT(
        std::count_if(these.begin(), these.end(),
                      [](const std::string& reason) { return reason.find(" us instead") != reason.npos; }),
        100);
  }
}

TEST(Explain, LargeRegionsLeaveNoPairOpen) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    for (Strategy strategy : {Strategy::None, Strategy::Greedy, Strategy::Delayed, Strategy::Ilp}) {
      RandomProgram program(seed, 40, true);
      FusionOptions options;
      options.strategy = strategy;
      options.explain = true;
      const FusionReport report = fuse(program.b.program, options);
      for (const RegionReport& region : report.regions) {
        EXPECT_FALSE(region.pairs.empty());
        for (const PairReport& pair : region.pairs) {
          EXPECT_FALSE(pair.reason.empty());
          EXPECT_EQ(pair.together, pair.cause == PairCause::Together);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kelpie::fusion

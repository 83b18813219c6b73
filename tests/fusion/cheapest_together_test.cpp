// What a pair is said to cost: as much as the best partition with both together, where that is said to be
// proven; found within the work allowed, and the same every time.
#include "fusion/cheapest_together.h"

#include <gtest/gtest.h>

#include "fusion/counted_search.h"
#include "fusion/solve_greedy.h"
#include "tests/fusion/random_problem.h"
#include "tests/fusion/shaped_problem.h"

namespace kelpie::fusion {
namespace {

constexpr int64_t kPlenty = 100'000'000;

Partition greedyPartition(const PartitionProblem& problem) {
  Partition result;
  result.cluster = solveGreedy(problem, PairTable(problem));
  result.cost = costOf(problem, result.cluster);
  return result;
}

/// The two in one cluster, all others alone; nothing if that is not legal.
std::optional<Assignment> together(const PartitionProblem& problem, int a, int b) {
  Assignment group = separate(problem.nodes);
  group[b] = a;
  group = normalised(group);
  return illegal(problem, group) ? std::nullopt : std::optional(group);
}

double leastTogether(const PartitionProblem& problem, const PairTable& pairs, int a, int b) {
  double least = std::numeric_limits<double>::infinity();
  forEachPartition(problem, pairs, [&](const Assignment& cluster) {
    if (cluster[a] == cluster[b] && !illegal(problem, cluster))
      least = std::min(least, costOf(problem, cluster));
  });
  return least;
}

TEST(CheapestTogether, IsTheLeastCostOfSmallProblems) {
  int compared = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    for (const RegionShape shape : kRegionShapes) {
      const PartitionProblem problem = ShapedProblem(shape, 8, seed).problem();
      const PairTable pairs(problem);
      const std::vector<Partition> known{greedyPartition(problem)};
      const CheapestTogether cheapest(problem, pairs, known[0].cluster, known);
      for (int b = 0; b < problem.nodes; ++b) {
        for (int a = 0; a < b; ++a) {
          const std::optional<Assignment> group = together(problem, a, b);
          if (!group) continue;
          SCOPED_TRACE(::testing::Message() << toString(shape) << " " << seed << ": " << a << ", " << b);
          CountedWork plenty(kPlenty), little(2'000);
          const TogetherCost best = cheapest.of(*group, a, plenty), other = cheapest.of(*group, a, little);
          const double least = leastTogether(problem, pairs, a, b);
          EXPECT_TRUE(best.proven);
          EXPECT_NEAR(best.cost, least, 1e-6);
          EXPECT_GE(other.cost, least - 1e-6);
          EXPECT_TRUE(!other.proven || other.cost <= least + 1e-6);
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 500);
}

TEST(CheapestTogether, StopsWhereTheWorkEnds) {
  const PartitionProblem problem = ShapedProblem(RegionShape::Dense, 100, 1).problem();
  const PairTable pairs(problem);
  const std::vector<Partition> known{greedyPartition(problem)};
  const CheapestTogether cheapest(problem, pairs, known[0].cluster, known);
  int pairsTried = 0;
  for (int b = 1; b < problem.nodes; b += 7) {
    const std::optional<Assignment> group = together(problem, b - 1, b);
    if (!group) continue;
    double before = std::numeric_limits<double>::infinity();
    for (const int64_t steps : {0, 100'000, 1'000'000, 10'000'000}) {
      CountedWork work(steps), again(steps);
      const TogetherCost found = cheapest.of(*group, b, work);
      constexpr int64_t kLastStep = 20'000;  // what was begun is finished
      EXPECT_GT(work.left(), -kLastStep);
      EXPECT_LE(found.cost, before);
      before = found.cost;
      EXPECT_EQ(cheapest.of(*group, b, again).cost, found.cost);
      EXPECT_EQ(again.left(), work.left());
    }
    ++pairsTried;
  }
  EXPECT_GT(pairsTried, 0);
}

TEST(CountedSearch, FindsTheOptimumOrSaysThatItIsNotComplete) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    RandomShape shape;
    shape.tightBudget = seed % 2 == 0;
    const PartitionProblem problem = randomProblem(random, shape);
    const PairTable pairs(problem);
    const double none = costOf(problem, separate(problem.nodes)), best = exhaustiveOptimum(problem);
    CountedWork plenty(kPlenty), nothing(0);
    const CountedSearchResult found = searchCounted(problem, pairs, none, plenty);
    EXPECT_TRUE(found.complete);
    EXPECT_NEAR(found.cost, best, 1e-9) << seed;
    if (best < none) {
      EXPECT_EQ(illegal(problem, found.cluster), std::nullopt);
      EXPECT_NEAR(costOf(problem, found.cluster), best, 1e-9);
    }
    const CountedSearchResult stopped = searchCounted(problem, pairs, none, nothing);
    EXPECT_FALSE(stopped.complete);
    EXPECT_EQ(stopped.cost, none);
  }
}

}  // namespace
}  // namespace kelpie::fusion

#include "fusion/partition.h"

#include <gtest/gtest.h>

#include "fusion/contraction.h"
#include "fusion/lower_bound.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_ilp.h"
#include "tests/fusion/random_problem.h"
#include "tests/fusion/shaped_problem.h"

namespace kelpie::fusion {
namespace {

struct Comparison {
  std::string name;
  RandomShape shape;
  int rounds;
};

class RandomRegions : public testing::TestWithParam<Comparison> {};

void expectBestPartition(const PartitionProblem& problem) {
  const PairTable pairs(problem);
  const double best = exhaustiveOptimum(problem);
  const double none = costOf(problem, separate(problem.nodes));
  const Assignment greedy = solveGreedy(problem, pairs);
  const Assignment delayed = solveDelayed(problem, pairs, std::vector<bool>(problem.nodes, true));
  ASSERT_EQ(illegal(problem, greedy), std::nullopt);
  ASSERT_EQ(illegal(problem, delayed), std::nullopt);
  EXPECT_LE(costOf(problem, greedy), none + 1e-9);
  EXPECT_LE(costOf(problem, delayed), none + 1e-9);
  for (const bool contract : {true, false}) {
    for (const bool shortcut : {true, false}) {
      const Partition ilp = solveIlp(problem, pairs, {60, contract, shortcut});
      ASSERT_EQ(illegal(problem, ilp.cluster), std::nullopt);
      EXPECT_NEAR(ilp.cost, best, 1e-6) << "contract " << contract << " shortcut " << shortcut;
      EXPECT_NEAR(ilp.bound, best, 1e-6);
      EXPECT_NEAR(ilp.cost, costOf(problem, ilp.cluster), 1e-9);
      EXPECT_LE(ilp.cost, costOf(problem, greedy) + 1e-9);
      EXPECT_LE(ilp.cost, costOf(problem, delayed) + 1e-9);
    }
  }
}

TEST_P(RandomRegions, IlpEqualsExhaustiveSearchAndStrategiesAreOrdered) {
  std::mt19937 random(7);
  for (int round = 0; round < GetParam().rounds; ++round) {
    SCOPED_TRACE(round);
    expectBestPartition(randomProblem(random, GetParam().shape));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomRegions,
                         testing::Values(Comparison{"sparse8", {8, 0.2, 0.3, 0.1, 2, false}, 120},
                                         Comparison{"dense8", {8, 0.5, 0.15, 0.0, 0, false}, 120},
                                         Comparison{"loose9", {9, 0.2, 0.1, 0.05, 3, false}, 40},
                                         Comparison{"budget8", {8, 0.25, 0.2, 0.05, 1, true}, 120},
                                         Comparison{"layered10", {10, 0.25, 0.35, 0.0, 0, false}, 60},
                                         Comparison{"crossing10", {10, 0.15, 0.6, 0.25, 0, false}, 60},
                                         Comparison{"large12", {12, 0.2, 0.4, 0.2, 2, false}, 12}),
                         [](const auto& info) { return info.param.name; });

class ShapedRegions : public testing::TestWithParam<RegionShape> {};

TEST_P(ShapedRegions, IlpEqualsExhaustiveSearchAndStrategiesAreOrdered) {
  for (uint32_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    expectBestPartition(ShapedProblem(GetParam(), 4 + static_cast<int>(seed) % 7, seed).problem());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShapedRegions, testing::ValuesIn(kRegionShapes), [](const auto& info) {
  std::string name = toString(info.param);
  std::erase(name, '-');
  return name;
});

TEST(Scale, RegionsOf60NodesAreProvenAndStoppedSearchesAreSound) {
  for (const RegionShape shape : {RegionShape::OutTree, RegionShape::Filters, RegionShape::Traps}) {
    SCOPED_TRACE(toString(shape));
    const PartitionProblem problem = ShapedProblem(shape, 60, 1).problem();
    const PairTable pairs(problem);
    const Partition ilp = solveIlp(problem, pairs, {60, true, true});
    EXPECT_TRUE(ilp.proven());
    EXPECT_EQ(solveIlp(problem, pairs, {60, true, true}).cluster, ilp.cluster) << "the same every time";
    // Stopped at once, later, or not at all: always legal, never better than the optimum, never worse than
    // greedy.
    for (const double seconds : {0.0, 0.02, 0.1}) {
      const Partition stopped = solveIlp(problem, pairs, {seconds, true, true});
      EXPECT_EQ(illegal(problem, stopped.cluster), std::nullopt);
      EXPECT_GE(stopped.cost, ilp.cost - 1e-6);
      EXPECT_LE(stopped.bound, ilp.cost + 1e-6);
      EXPECT_LE(stopped.cost, costOf(problem, solveGreedy(problem, pairs)) + 1e-9);
    }
  }
}

TEST(LowerBound, IsNeverAboveTheOptimum) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const PartitionProblem problem = randomProblem(random, {7, 0.3, 0.4, 0.1, 1, false});
    EXPECT_LE(lowerBound(problem, PairTable(problem)), exhaustiveOptimum(problem) + 1e-9);
  }
}

TEST(Contraction, KeepsTheCostOfWhatItExpandsTo) {
  std::mt19937 random(5);
  int merged = 0;
  for (int round = 0; round < 200; ++round) {
    const PartitionProblem problem = randomProblem(random, {10, 0.15, 0.2, 0.0, 0, false});
    const Assignment group = contractionGroups(problem, PairTable(problem));
    const PartitionProblem small = contracted(problem, group);
    merged += problem.nodes - small.nodes;
    EXPECT_NEAR(costOf(small, separate(small.nodes)), costOf(problem, group), 1e-9);
    EXPECT_EQ(illegal(problem, group), std::nullopt);
  }
  EXPECT_GT(merged, 100);
}

/// Also where nodes read the same few arrays and nobody who may share with them reads what they make.
TEST(Contraction, KeepsAnOptimum) {
  std::mt19937 random(6);
  int merged = 0;
  for (int round = 0; round < 400; ++round) {
    const bool tight = round % 4 == 0;
    const PartitionProblem problem = randomProblem(random, {7, 0.2, 0.9, 0.05, round % 3, tight});
    const PartitionProblem small = contracted(problem, contractionGroups(problem, PairTable(problem)));
    merged += problem.nodes - small.nodes;
    EXPECT_NEAR(exhaustiveOptimum(small), exhaustiveOptimum(problem), 1e-9) << "round " << round;
  }
  EXPECT_GT(merged, 300);
}

TEST(FixedCosts, AreTheSameForAllPartitions) {
  std::mt19937 random(7);
  int left = 0;
  for (int round = 0; round < 100; ++round) {
    const PartitionProblem problem = randomProblem(random, {6, 0.3, 0.6, 0.2, 1, false});
    const PairTable pairs(problem);
    const PartitionProblem small = withoutFixedCosts(problem, pairs);
    left += static_cast<int>(problem.accesses.size() + problem.stores.size() - small.accesses.size() -
                             small.stores.size());
    const Assignment apart = separate(problem.nodes);
    const double fixed = costOf(problem, apart) - costOf(small, apart);
    EXPECT_GE(fixed, 0);
    forEachPartition(problem, pairs, [&](const Assignment& cluster) {
      EXPECT_NEAR(costOf(problem, cluster), costOf(small, cluster) + fixed, 1e-9);
    });
  }
  EXPECT_GT(left, 100);
}

/// Many nodes that read the same arrays and may go anywhere: a region of a ray tracer with the costs of
/// `cpu`, of which programs took half a second. (Its two statements of the host are left out.)
TEST(SolveIlp, FewNodesThatMayGoAnywhereAreSolvedAtOnce) {
  PartitionProblem p = plainProblem(13);
  p.launch.assign(13, 4.7);
  for (int early : {0, 1, 2}) p.edges.push_back({early, 3, false});
  p.edges.push_back({3, 4, true});
  p.edges.push_back({4, 5, true});
  p.edges.push_back({4, 8, true});
  for (int other : {0, 1, 2, 6, 7, 9, 10, 11, 12}) {
    p.forbidden.emplace_back(std::min(3, other), std::max(3, other));
    if (other != 5 && other != 8) p.forbidden.emplace_back(std::min(4, other), std::max(4, other));
  }
  const std::vector<int> late{5, 8, 9, 10, 11};
  for (int k = 0; k < 3; ++k) p.accesses.push_back({-1, late, 1426.85});
  for (int k = 0; k < 6; ++k) {
    p.accesses.push_back({-1, {k % 3}, 1426.85});
    p.accesses.back().readers.insert(p.accesses.back().readers.end(), late.begin(), late.end());
  }
  p.accesses.push_back({-1, {5, 6}, 1426.85});
  p.accesses.push_back({-1, {0, 1, 2, 5, 8, 9, 10, 11}, 10905.18});
  p.accesses.push_back({-1, {0, 1, 2, 5, 7, 8, 9, 10, 11, 12}, 1426.85});
  p.accesses.push_back({-1, {3}, 315339935});
  p.accesses.push_back({3, {4}, 39417491.9});
  p.stores.push_back({3, {4}, false, 39417491.9});
  p.accesses.push_back({4, {5, 8}, 37.59});
  p.stores.push_back({4, {5, 8}, false, 37.59});
  const Partition best = solveIlp(p, PairTable(p), {5, true, true});
  EXPECT_TRUE(best.proven());
  EXPECT_LT(best.seconds, 0.1);
  EXPECT_EQ(best.columns, 0);  // no integer program was needed
  EXPECT_NEAR(best.cost, exhaustiveOptimum(p), 1e-3);
}

TEST(PairTable, NamesWhatKeepsNodesApart) {
  PartitionProblem p;
  p.nodes = 5;
  p.launch.assign(5, 1);
  p.weight.assign(5, 0);
  p.edges = {{0, 1, true}, {1, 2, false}, {2, 3, true}};
  p.forbidden = {{0, 4}};
  p.requirements = {{3, 4, 0}};
  const PairTable pairs(p);
  using Kind = PairVerdict::Kind;
  EXPECT_TRUE(pairs.canShare(0, 1));
  EXPECT_EQ(pairs.verdict(1, 2).kind, Kind::BlockingEdge);
  EXPECT_EQ(pairs.verdict(0, 3).kind, Kind::BlockingPath);
  EXPECT_EQ(pairs.verdict(0, 3).from, 1);
  EXPECT_EQ(pairs.verdict(0, 4).kind, Kind::Forbidden);
  EXPECT_EQ(pairs.verdict(3, 4).kind, Kind::Requirement);
  EXPECT_EQ(pairs.verdict(3, 4).from, 0);
  EXPECT_EQ(pairs.verdict(1, 4).kind, Kind::Possible);
}

TEST(PairTable, PathThroughAnOutsiderKeepsItsEndsApart) {
  PartitionProblem p;
  p.nodes = 3;
  p.launch.assign(3, 1);
  p.weight.assign(3, 0);
  p.edges = {{0, 1, true}, {1, 2, true}};
  p.forbidden = {{0, 1}};
  const PairTable pairs(p);
  EXPECT_EQ(pairs.verdict(0, 2).kind, PairVerdict::Kind::PathOutside);
  EXPECT_EQ(pairs.verdict(0, 2).from, 1);
}

}  // namespace
}  // namespace kelpie::fusion

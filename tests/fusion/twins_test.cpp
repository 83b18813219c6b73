// Nodes that can change places, and what budgets tell about the number of clusters.
#include "fusion/twins.h"

#include <gtest/gtest.h>

#include <utility>

#include "fusion/lower_bound.h"
#include "fusion/solve_ilp.h"
#include "fusion/stage_program.h"
#include "tests/fusion/random_problem.h"

namespace kelpie::fusion {
namespace {

/// A producer, `alike` nodes that read what it makes from other places, and one that reads all of theirs.
PartitionProblem selections(int alike, double weight, double budget) {
  PartitionProblem p = plainProblem(alike + 2);
  p.budget = budget;
  Access made{0, {}, 3};
  for (int v = 1; v <= alike; ++v) {
    p.weight[v] = weight;
    p.edges.push_back({0, v, false});
    p.edges.push_back({v, alike + 1, false});
    made.readers.push_back(v);
    p.accesses.push_back({v, {alike + 1}, 2});
    p.stores.push_back({v, {alike + 1}, false, 2});
  }
  p.accesses.push_back(made);
  return p;
}

TEST(Twins, AreThoseThatReadAndWriteAlike) {
  PartitionProblem p = selections(5, 16, 64);
  EXPECT_EQ(twinClasses(p, PairTable(p)), (std::vector<std::vector<int>>{{1, 2, 3, 4, 5}}));
  p.weight[2] = 8;
  p.accesses[3].cost = 7;  // of node 4
  EXPECT_EQ(twinClasses(p, PairTable(p)), (std::vector<std::vector<int>>{{1, 3, 5}}));
  p.edges.push_back({1, 3, true});
  EXPECT_EQ(twinClasses(p, PairTable(p)), (std::vector<std::vector<int>>{}));
  p.edges.pop_back();
  p.requirements.push_back({1, 2, 5});
  EXPECT_EQ(twinClasses(p, PairTable(p)), (std::vector<std::vector<int>>{}));
}

TEST(Twins, ChangePlacesInEveryPartition) {
  std::mt19937 random(5);
  int swapped = 0;
  for (int round = 0; round < 300; ++round) {
    RandomShape shape;
    shape.nodes = 6;
    shape.edgeDensity = 0.15;
    shape.forbidden = 0.1;
    shape.requirements = round % 2;
    shape.tightBudget = round % 3 == 0;
    const PartitionProblem p = randomProblem(random, shape);
    const PairTable pairs(p);
    for (const std::vector<int>& twins : twinClasses(p, pairs)) {
      forEachPartition(p, pairs, [&](const Assignment& cluster) {
        Assignment other = cluster;
        std::swap(other[twins[0]], other[twins[1]]);
        other = normalised(other);
        ASSERT_EQ(illegal(p, cluster).has_value(), illegal(p, other).has_value()) << "round " << round;
        ASSERT_EQ(costOf(p, cluster), costOf(p, other)) << "round " << round;
        ++swapped;
      });
    }
  }
  EXPECT_GT(swapped, 1000);
}

/// Five that take a quarter each need two clusters between what comes before and behind them; seven that take
/// 20 of 64 three.
TEST(Budgets, TellHowManyClustersThereAre) {
  for (const auto& [alike, weight, between] :
       {std::tuple{5, 16.0, 2}, {4, 16.0, 1}, {7, 20.0, 3}, {3, 70.0, 3}}) {
    const PartitionProblem p = selections(alike, weight, 64);
    const PairTable pairs(p);
    EXPECT_EQ(leastCosts(p, pairs).launches, 2 + between);
    const StageWindows windows(p, pairs, 2 + between);
    EXPECT_TRUE(windows.possible());
    EXPECT_EQ(windows.first[alike + 1], 2 + between);
    EXPECT_EQ(windows.last[0], 1);
    EXPECT_EQ(StageWindows(p, pairs, p.nodes).fewest(), 2 + between);
    EXPECT_FALSE(StageWindows(p, pairs, 1 + between).possible());
    EXPECT_EQ(leastCosts(p, pairs).loads.back(), between);
  }
}

/// Selections of eleven columns by two conditions, four of which fill a kernel: without that and without
/// twins this took seconds.
TEST(Budgets, ManySelectionsAreProvenAtOnce) {
  PartitionProblem p = plainProblem(0);
  for (const int alike : {5, 6, 7, 9}) {
    const PartitionProblem one = selections(alike, 16, 64);
    const int first = p.nodes;
    p.nodes += one.nodes;
    p.budget = one.budget;
    p.launch.insert(p.launch.end(), one.launch.begin(), one.launch.end());
    p.weight.insert(p.weight.end(), one.weight.begin(), one.weight.end());
    for (PartitionEdge e : one.edges) p.edges.push_back({first + e.from, first + e.to, e.fusible});
    const auto moved = [&](std::vector<int> nodes) {
      for (int& v : nodes) v += first;
      return nodes;
    };
    for (const Access& a : one.accesses) p.accesses.push_back({first + a.producer, moved(a.readers), a.cost});
    for (const Store& s : one.stores)
      p.stores.push_back({first + s.producer, moved(s.readers), s.outlives, s.cost});
    for (int u = 0; u < first; ++u)
      for (int v = first + 1; v + 1 < p.nodes; ++v)
        if (u % 2 == v % 3) p.forbidden.emplace_back(u, v);
  }
  const PairTable pairs(p);
  const Partition found = solveIlp(p, pairs, {10, true, true});
  EXPECT_TRUE(found.proven()) << found.cost << " " << found.bound;
  EXPECT_LT(found.counted, 5);
}

}  // namespace
}  // namespace kelpie::fusion

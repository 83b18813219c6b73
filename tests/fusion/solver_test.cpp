// The parts of the exact solver: order cuts, annealing, the complete program as a file.
#include <fmt/format.h>
#include <glpk.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "fusion/anneal.h"
#include "fusion/contraction.h"
#include "fusion/deadline.h"
#include "fusion/emit_lp.h"
#include "fusion/order_cuts.h"
#include "fusion/solve_again.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_ilp.h"
#include "fusion/solve_stages.h"
#include "tests/fusion/random_problem.h"
#include "tests/fusion/shaped_problem.h"

namespace kelpie::fusion {
namespace {

/// The clusters of a mixture of partitions, of which each has the same part.
std::vector<ClusterShare> mixtureOf(const std::vector<Assignment>& partitions) {
  std::vector<ClusterShare> result;
  for (const Assignment& p : partitions) {
    std::vector<ClusterShare> clusters(p.size(), {{}, 1.0 / static_cast<double>(partitions.size())});
    for (size_t v = 0; v < p.size(); ++v) clusters[p[v]].members.push_back(static_cast<int>(v));
    for (ClusterShare& c : clusters) {
      if (!c.members.empty()) result.push_back(std::move(c));
    }
  }
  return result;
}

double leftSide(const OrderCut& cut, const Assignment& cluster) {
  double sum = 0;
  for (auto [a, b] : cut.pairs) sum += cluster[a] == cluster[b];
  for (const OrderCut::Star& star : cut.stars) {
    sum += std::any_of(star.others.begin(), star.others.end(),
                       [&](int v) { return cluster[v] == cluster[star.node]; });
  }
  if (cut.unless.first >= 0) sum -= cluster[cut.unless.first] == cluster[cut.unless.second];
  return sum;
}

TEST(OrderCuts, FindTwoClustersThatNeedEachOther) {
  PartitionProblem p = plainProblem(4);
  p.edges = {{0, 1, false}, {2, 3, false}};
  p.forbidden = {{0, 3}, {1, 2}};
  const PairTable pairs(p);
  const OrderCuts cuts(p, pairs);
  // {0, 3} and {1, 2} may not share; {0, 2} and {1, 3} is fine; with the second edge turned round it is not.
  EXPECT_TRUE(cuts.violated(mixtureOf({{0, 1, 0, 1}}), 1e-3).empty());
  p.edges = {{0, 1, false}, {3, 2, false}};
  const PairTable turned(p);
  EXPECT_FALSE(OrderCuts(p, turned).violated(mixtureOf({{0, 1, 0, 1}}), 1e-3).empty());
}

TEST(OrderCuts, CutOffCyclesAndNothingElse) {
  std::mt19937 random(11);
  int cyclic = 0, cutsSeen = 0, starsSeen = 0;
  for (int round = 0; round < 60; ++round) {
    const PartitionProblem p = randomProblem(random, {6, 0.3, 0.3, 0.1, 0, false});
    const PairTable pairs(p);
    const OrderCuts cuts(p, pairs);
    std::vector<Assignment> legal;
    forEachPartition(p, pairs, [&](const Assignment& cluster) {
      if (clusterOrder(p, cluster)) legal.push_back(cluster);
    });
    const auto check = [&](const std::vector<OrderCut>& found) {
      for (const OrderCut& cut : found) {
        ++cutsSeen;
        starsSeen += !cut.stars.empty();
        for (const Assignment& other : legal) ASSERT_LE(leftSide(cut, other), cut.upper + 1e-9);
      }
    };
    forEachPartition(p, pairs, [&](const Assignment& cluster) {
      const std::vector<OrderCut> found = cuts.violated(mixtureOf({cluster}), 1e-3);
      ASSERT_EQ(found.empty(), clusterOrder(p, cluster).has_value());
      cyclic += !found.empty();
      check(found);
    });
    // Between two partitions the values are halves.
    for (size_t k = 1; k < std::min<size_t>(legal.size(), 20); ++k) {
      check(cuts.violated(mixtureOf({legal[k - 1], legal[legal.size() - k]}), 1e-3));
    }
  }
  EXPECT_GT(cyclic, 20);
  EXPECT_GT(cutsSeen, 100);
  EXPECT_GT(starsSeen, 20);
}

TEST(Anneal, IsLegalAndNeverWorseThanItsStart) {
  std::mt19937 random(5);
  int better = 0;
  for (int round = 0; round < 40; ++round) {
    const PartitionProblem p = randomProblem(random, {20, 0.12, 0.3, 0.1, 4, round % 2 == 0});
    const PairTable pairs(p);
    const Assignment start = solveGreedy(p, pairs);
    const Assignment found = anneal(p, pairs, start, 10);
    ASSERT_EQ(illegal(p, found), std::nullopt);
    EXPECT_LE(costOf(p, found), costOf(p, start) + 1e-9);
    EXPECT_EQ(found, anneal(p, pairs, start, 10)) << "the same every time";
    better += costOf(p, found) < costOf(p, start) - 1e-6;
  }
  EXPECT_GT(better, 5);
}

/// A function without branches over arrays of one length: maps of two arrays (mostly of the latest), running
/// sums, sums, filters whose survivors are summed, and maps that subtract a sum from all of an array.
PartitionProblem straightLine(int nodes, uint32_t seed, double load) {
  std::mt19937 random(seed);
  const auto number = [&](size_t below) {
    return std::uniform_int_distribution<size_t>(0, below - 1)(random);
  };
  PartitionProblem p;
  std::vector<int> arrays{-1}, sums, filters, counts;
  std::vector<std::vector<int>> readers;
  std::vector<int> readersOfInput;
  const auto add = [&](const std::vector<int>& reads, double weight) {
    const int node = p.nodes++;
    p.launch.push_back(3.94);
    p.weight.push_back(weight);
    readers.emplace_back();
    for (int a : reads) {
      std::vector<int>& of = a < 0 ? readersOfInput : readers[a];
      if (!of.empty() && of.back() == node) continue;
      of.push_back(node);
      if (a >= 0) p.edges.push_back({a, node, true});
    }
    return node;
  };
  const auto late = [&] {
    const size_t last = std::min<size_t>(arrays.size(), 6);
    return number(10) < 6 ? arrays[arrays.size() - last + number(last)] : arrays[number(arrays.size())];
  };
  while (p.nodes < nodes) {
    const size_t kind = number(100);
    if (kind < 50) {
      arrays.push_back(add({late(), arrays[number(arrays.size())]}, 0));
    } else if (kind < 65) {
      sums.push_back(add({late()}, 0));
    } else if (kind < 78) {
      arrays.push_back(add({late()}, 8));
    } else if (kind < 88 && !sums.empty()) {
      const int sum = sums[number(sums.size())];
      arrays.push_back(add({late()}, 0));
      p.edges.push_back({sum, arrays.back(), false});
    } else {
      filters.push_back(add({late()}, 12));
      counts.push_back(add({filters.back()}, 0));
      sums.push_back(counts.back());
    }
  }
  p.budget = 64;
  p.accesses.push_back({-1, readersOfInput, load});
  for (int v = 0; v < p.nodes; ++v) {
    if (!readers[v].empty()) p.accesses.push_back({v, readers[v], load});
    const bool outlives = std::find(sums.begin(), sums.end(), v) != sums.end();
    p.stores.push_back({v, readers[v], outlives, outlives ? 0 : load});
  }
  // Over survivors runs only what has the filter with it, or nothing else.
  for (size_t k = 0; k < counts.size(); ++k) {
    for (int v = 0; v < p.nodes; ++v)
      if (v != counts[k] && v != filters[k]) p.requirements.push_back({counts[k], v, filters[k]});
  }
  return p;
}

/// Large clusters, a budget that binds, few stages: column generation alone left seven of these open after 10
/// s. They take 1 s or less on a quiet machine; others may run beside this.
TEST(SolveIlp, ProvesStraightLinesOfOneLength) {
  for (const double load : {0.0187, 18.7}) {
    for (uint32_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(fmt::format("load {}, seed {}", load, seed));
      const PartitionProblem problem = straightLine(50 + 4 * static_cast<int>(seed), seed, load);
      const Partition ilp = solveIlp(problem, PairTable(problem), {90, true, true});
      EXPECT_EQ(illegal(problem, ilp.cluster), std::nullopt);
      EXPECT_TRUE(ilp.proven()) << ilp.gap();
    }
  }
}

/// What is said about partitions into fewer clusters holds.
TEST(SolveStages, FindsTheBestOfFewClusters) {
  int improved = 0, proven = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    for (const PartitionProblem& problem :
         {straightLine(9, seed, seed % 2 ? 0.5 : 20),
          ShapedProblem(kRegionShapes[seed % std::size(kRegionShapes)], 9, seed).problem()}) {
      const PairTable pairs(problem);
      const Assignment start = separate(problem.nodes);
      const StagedPartition staged = solveStages(problem, pairs, start, 0, Deadline(60));
      ASSERT_EQ(illegal(problem, staged.cluster), std::nullopt);
      const double cost = costOf(problem, staged.cluster);
      improved += cost < costOf(problem, start);
      proven += staged.bound >= cost - 1e-9 * (1 + cost);
      EXPECT_GE(exhaustiveOptimum(problem), std::min(cost, staged.bound) - 1e-6);
      EXPECT_GE(exhaustiveOptimum(problem, staged.fewest - 1), cost - 1e-6);
    }
  }
  EXPECT_GT(improved, 80);
  EXPECT_GT(proven, 60);
}

/// There is nothing to decide: which GLPK takes for a mistake.
TEST(SolveStages, ProgramsWithOnePartitionAreSolved) {
  PartitionProblem p = plainProblem(3);
  p.edges = {{0, 2, true}};
  const PairTable pairs(p);
  const StagedPartition staged = solveStages(p, pairs, separate(3), 0, Deadline(20));
  EXPECT_EQ(staged.cluster, (Assignment{0, 0, 0}));
  EXPECT_GE(staged.bound, 1);
}

/// 5.9 + 2.8 + 0.3 is more than 9 by a rounding error, which GLPK does not see: what it finds tells nothing
/// of what is legal.
TEST(SolveStages, WhatIsLegalButForARoundingErrorProvesNothing) {
  PartitionProblem p = plainProblem(3);
  p.launch.assign(3, 4);
  p.budget = 9;
  p.weight = {0.1 * 59, 0.1 * 28, 0.1 * 3};
  const PairTable pairs(p);
  ASSERT_NE(illegal(p, {0, 0, 0}), std::nullopt);
  const StagedPartition staged = solveStages(p, pairs, separate(3), 0, Deadline(20));
  EXPECT_LE(std::min(staged.bound, costOf(p, staged.cluster)), exhaustiveOptimum(p) + 1e-9);
}

/// Of a search that is cut short, too.
TEST(SolveStages, BoundsWhatIsLeftWhenTheTimeIsUp) {
  int raised = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    const PartitionProblem problem = straightLine(64, seed, 0.0187);
    const PairTable pairs(problem);
    const Partition best = solveIlp(problem, pairs, {20, true, true});
    ASSERT_TRUE(best.proven());
    const Assignment start = improve(problem, pairs, separate(problem.nodes));
    double last = 0;
    for (const double seconds : {0.005, 0.02, 0.08, 0.3}) {
      const StagedPartition staged = solveStages(problem, pairs, start, 0, Deadline(seconds));
      const double cost = costOf(problem, staged.cluster);
      EXPECT_EQ(illegal(problem, staged.cluster), std::nullopt);
      EXPECT_LE(std::min(staged.bound, cost), best.cost + 1e-6) << seconds;
      raised += std::min(staged.bound, cost) > last + 1e-9;
      last = std::min(staged.bound, cost);
    }
  }
  EXPECT_GT(raised, 4);
}

/// Parts that leave most of a problem as it is: what comes of them is legal, and in small problems often the
/// best.
TEST(SolveAgain, MakesPartsCheaperAndStaysLegal) {
  int improved = 0, best = 0, rounds = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    for (const PartitionProblem& problem :
         {straightLine(9, seed, seed % 2 ? 0.5 : 20),
          ShapedProblem(kRegionShapes[seed % std::size(kRegionShapes)], 9, seed).problem(),
          straightLine(48, seed, seed % 2 ? 0.0187 : 18.7),
          ShapedProblem(kRegionShapes[seed % std::size(kRegionShapes)], 48, seed).problem()}) {
      const PairTable pairs(problem);
      const Assignment start = separate(problem.nodes);
      const Assignment again = solveAgain(problem, pairs, start, Deadline(0.5), problem.nodes < 10 ? 5 : 16);
      ASSERT_EQ(illegal(problem, again), std::nullopt);
      EXPECT_LE(costOf(problem, again), costOf(problem, start) + 1e-9);
      improved += costOf(problem, again) < costOf(problem, start) - 1e-6;
      if (problem.nodes > 9) continue;
      ++rounds;
      best += costOf(problem, again) < exhaustiveOptimum(problem) + 1e-6;
    }
  }
  EXPECT_GT(improved, 120);
  EXPECT_GT(best, rounds / 3);
}

/// What nobody reads is not loaded, and what does not outlive the region is not stored for nobody.
TEST(Contraction, SavesNothingOfWhatNobodyReads) {
  PartitionProblem p =
      plainProblem(4);  // 0 -> 1 -> 2 -> 3, and 3 reads 0's array: the budget parts two and two
  p.edges = {{0, 1, true}, {1, 2, true}, {2, 3, true}, {0, 3, true}};
  p.budget = 10;
  p.weight = {6, 0, 6, 0};
  p.accesses = {{0, {1}, 3}, {1, {2}, 2}, {2, {3}, 5}};
  p.stores = {{1, {}, false, 5}};
  const PairTable pairs(p);
  EXPECT_NEAR(solveIlp(p, pairs).cost, exhaustiveOptimum(p), 1e-9);
  p.stores.clear();
  p.accesses.push_back({1, {}, 5});
  EXPECT_NEAR(solveIlp(p, pairs).cost, exhaustiveOptimum(p), 1e-9);
}

/// Partitions cost less without the least loads and stores, but no more than asked.
TEST(Contraction, LeavesOutNoMoreThanAsked) {
  std::mt19937 random(20);
  int left = 0;
  for (int round = 0; round < 200; ++round) {
    const PartitionProblem p = randomProblem(random, {});
    for (const double most : {0.0, 1.0, 10.0, 1000.0}) {
      const PartitionProblem without = withoutLeastCosts(p, most);
      left += without.accesses.size() + without.stores.size() < p.accesses.size() + p.stores.size();
      for (const Assignment& cluster : {separate(p.nodes), solveGreedy(p, PairTable(p))}) {
        EXPECT_LE(costOf(without, cluster), costOf(p, cluster));
        EXPECT_LE(costOf(p, cluster), costOf(without, cluster) + most + 1e-9);
      }
    }
  }
  EXPECT_GT(left, 200);
}

/// Regions over a few elements: launches are all that counts, and the search does not go on about bytes.
TEST(SolveIlp, IsSoonDoneWhereLoadsAndStoresAreNothing) {
  double counted = 0;
  for (uint32_t seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE(seed);
    PartitionProblem p = ShapedProblem(kRegionShapes[seed % std::size(kRegionShapes)], 90, seed).problem();
    std::mt19937 random(seed);
    const auto bytes = [&] { return 1.7e-6 * static_cast<double>(1 + random() % 50); };
    for (Access& a : p.accesses) a.cost = bytes();
    for (Store& s : p.stores) s.cost = bytes();
    const PairTable pairs(p);
    const Partition best = solveIlp(p, pairs, {5, true, true});
    EXPECT_TRUE(best.proven());
    EXPECT_EQ(illegal(p, best.cluster), std::nullopt);
    EXPECT_LE(best.cost, costOf(p, solveGreedy(p, pairs)));
    counted = std::max(counted, best.counted);
  }
  EXPECT_LT(counted, 5);
}

class EmitLp : public testing::Test {
 protected:
  /// What GLPK's own branch and cut finds in the file: its optimum is that of all legal partitions.
  void expectOptimum(const PartitionProblem& p) {
    const PairTable pairs(p);
    ASSERT_TRUE(emitLp(p, pairs, "a region", path_));
    glp_term_out(GLP_OFF);
    const std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp(glp_create_prob(), glp_delete_prob);
    ASSERT_EQ(glp_read_lp(lp.get(), nullptr, path_.c_str()), 0);
    glp_iocp search;
    glp_init_iocp(&search);
    search.msg_lev = GLP_MSG_OFF;
    search.presolve = GLP_ON;
    ASSERT_EQ(glp_intopt(lp.get(), &search), 0);
    EXPECT_EQ(glp_mip_status(lp.get()), GLP_OPT);
    EXPECT_NEAR(glp_mip_obj_val(lp.get()), solveIlp(p, pairs).cost, 1e-5);
    EXPECT_NEAR(glp_mip_obj_val(lp.get()), exhaustiveOptimum(p), 1e-5);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("kelpie-emit-" + std::to_string(getpid()) + ".lp");
};

TEST_F(EmitLp, AnotherSolverFindsTheSameOptimumOfRandomRegions) {
  std::mt19937 random(9);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    expectOptimum(randomProblem(random, {9, 0.25, 0.25, 0.1, 2, round % 3 == 0}));
  }
  for (int round = 0; round < 12; ++round) {  // clusters that depend on each other
    SCOPED_TRACE(round);
    expectOptimum(randomProblem(random, {9, 0.15, 0.6, 0.25, 0, false}));
  }
}

TEST_F(EmitLp, AnotherSolverFindsTheSameOptimumOfRegionsOfAllShapes) {
  for (const RegionShape shape : kRegionShapes) {
    for (uint32_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(::testing::Message() << toString(shape) << " " << seed);
      expectOptimum(ShapedProblem(shape, 8 + static_cast<int>(seed) % 2, 100 + seed).problem());
    }
  }
}

}  // namespace
}  // namespace kelpie::fusion

// What makes the exact solver's bounds strong: budgets of functions, links that are cut, the order of
// components.
#include <glpk.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fusion/budget_weights.h"
#include "fusion/link_bound.h"
#include "fusion/link_cuts.h"
#include "fusion/lower_bound.h"
#include "fusion/restricted_problem.h"
#include "fusion/search_orders.h"
#include "fusion/solve_ilp.h"
#include "fusion/stage_program.h"
#include "tests/fusion/random_problem.h"
#include "tests/fusion/shaped_problem.h"

namespace kelpie::fusion {
namespace {

TEST(BudgetWeights, WhatFitsStillDoes) {
  std::mt19937 random(3);
  int more = 0;
  for (int round = 0; round < 200; ++round) {
    PartitionProblem p = plainProblem(10);
    p.budget = 64;
    for (double& w : p.weight) w = 4.0 * std::uniform_int_distribution<>(0, 10)(random);
    const std::vector<std::vector<double>> functions = budgetWeights(p);
    for (int set = 0; set < 1024; ++set) {
      double weight = 0;
      std::vector<double> mapped(functions.size(), 0);
      for (int v = 0; v < p.nodes; ++v) {
        if ((set >> v & 1) == 0) continue;
        weight += p.weight[v];
        for (size_t f = 0; f < functions.size(); ++f) mapped[f] += functions[f][v];
      }
      const double most = *std::max_element(mapped.begin(), mapped.end());
      if (weight <= p.budget) {
        ASSERT_LE(most, 1 + 1e-9);
      } else {
        more += most > weight / p.budget + 1e-9;
      }
    }
  }
  EXPECT_GT(more, 10'000);
}

TEST(BudgetWeights, OfNodesThatTakeTwentyOfSixtyFourThreeFillAll) {
  PartitionProblem p = plainProblem(1);
  p.budget = 64;
  p.weight = {20};
  double most = 0;
  for (const std::vector<double>& f : budgetWeights(p)) most = std::max(most, f[0]);
  EXPECT_DOUBLE_EQ(most, 1.0 / 3);
}

TEST(BudgetWeights, OfNoBudgetNodesWithoutWeightTakeNothing) {
  PartitionProblem p = plainProblem(2);
  p.budget = 0;
  EXPECT_EQ(budgetWeights(p)[0], (std::vector<double>{0, 0}));
}

TEST(LinkCuts, OfAChainToWhatCannotShareOneIsCut) {
  PartitionProblem p = plainProblem(4);  // f (1) and g (2) read x (0), h (3) reads g's array; f blocks h
  p.edges = {{0, 1, true}, {0, 2, true}, {2, 3, true}, {1, 3, false}};
  const PairTable pairs(p);
  const LinkCuts cuts(p, pairs, pairs.shareMatrix(), {{0, 1, 2}, {2, 3}});
  const std::vector<LinkCut> broken = cuts.broken({0, 0.5}, 0.01);
  ASSERT_FALSE(broken.empty());
  for (const LinkCut& cut : broken) EXPECT_EQ(cut, (LinkCut{{0, 1}, {1, 1}}));
  EXPECT_TRUE(cuts.broken({1, 0}, 0.01).empty());
  EXPECT_TRUE(cuts.broken({0.5, 0.5}, 0.01).empty());
}

TEST(LinkCuts, WhoeverLiesBetweenTwoNodesOfALinkIsInIt) {
  PartitionProblem p = plainProblem(4);  // 1 is between 0 and 2, and excludes 3
  p.edges = {{0, 1, true}, {1, 2, true}, {2, 3, true}};
  p.forbidden = {{1, 3}};
  const PairTable pairs(p);
  EXPECT_FALSE(LinkCuts(p, pairs, pairs.shareMatrix(), {{0, 2}, {2, 3}}).broken({0, 0}, 0.01).empty());
}

TEST(LinkCuts, OfATreeOverTheBudgetSoMuchIsCutThatTheRestFits) {
  PartitionProblem p = plainProblem(3);
  p.budget = 10;
  p.weight = {4, 4, 4};
  p.edges = {{0, 1, true}, {1, 2, true}};
  const PairTable pairs(p);
  const LinkCuts cuts(p, pairs, pairs.shareMatrix(), {{0, 1}, {1, 2}});
  const std::vector<LinkCut> broken = cuts.broken({0.4, 0.4}, 0.01);
  ASSERT_FALSE(broken.empty());
  for (const LinkCut& cut : broken) EXPECT_EQ(cut, (LinkCut{{0, 1}, {1, 1}}));
  EXPECT_TRUE(cuts.broken({1, 0}, 0.01).empty());
}

TEST(LinkBound, IsAtMostWhatTheBestPartitionPaysForArrays) {
  std::mt19937 random(31);
  const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; };
  int tight = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    PartitionProblem p = randomProblem(random, {8, 0.4, 0.2, 0.05, 1, round % 2 == 0});
    std::fill(p.launch.begin(), p.launch.end(), 0);
    // Readers that load nothing, arrays that are loaded in several ways, and some that are not stored again.
    for (size_t k = p.accesses.size(); k-- > 0;) {
      Access& a = p.accesses[k];
      if (a.readers.size() < 2 || !chance(0.4)) continue;
      const Access rest{a.producer, {a.readers.back()}, a.cost + 1};
      a.readers.pop_back();
      if (chance(0.5)) p.accesses.push_back(rest);
    }
    const double best = exhaustiveOptimum(p);
    const double bound = linkBound(p, PairTable(p), Deadline(20));
    EXPECT_LE(bound, best + 1e-6);
    EXPECT_GE(bound, lowerBound(p, PairTable(p)) - 1e-6);
    tight += bound > best - 1e-6;
  }
  EXPECT_GT(tight, 50);
}

TEST(LinkBound, OfWhatIsNeededElsewhereWithoutALoadIsTheStoreAlone) {
  PartitionProblem p = plainProblem(3);
  p.edges = {{0, 1, true}, {0, 2, false}};
  p.accesses = {{0, {1}, 5}};
  p.stores = {{0, {1, 2}, false, 3}};  // 2 needs the size
  EXPECT_NEAR(linkBound(p, PairTable(p), Deadline(20)), 3, 1e-9);
}

/// The program with whatever cuts its relaxation breaks, and then some random solution's.
void addCuts(const StageProgram& program) {
  glp_term_out(GLP_OFF);
  glp_smcp simplex;
  glp_init_smcp(&simplex);
  simplex.msg_lev = GLP_MSG_OFF;
  for (int round = 0; round < 10; ++round) {
    if (glp_simplex(program.lp(), &simplex) != 0 || glp_get_status(program.lp()) != GLP_OPT) return;
    const bool requirements = program.addBrokenRules(program.lp());
    if (!program.addBrokenCuts(program.lp()) && !requirements) return;
  }
}

/// The first row that these values of all columns break; 0 if there is none.
int brokenRow(glp_prob* lp, const std::vector<double>& values) {
  std::vector<int> columns(values.size());
  std::vector<double> times(values.size());
  for (int row = 1; row <= glp_get_num_rows(lp); ++row) {
    const int length = glp_get_mat_row(lp, row, columns.data(), times.data());
    double sum = 0;
    for (int k = 1; k <= length; ++k) sum += times[k] * values[columns[k]];
    if (sum > glp_get_row_ub(lp, row) + 1e-7) return row;
  }
  return 0;
}

TEST(StageProgram, HasNoRowThatAPartitionBreaks) {
  std::mt19937 random(17);
  int cuts = 0, partitions = 0;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    const PartitionProblem p = round % 3 == 0 ? ShapedProblem(kRegionShapes[round % std::size(kRegionShapes)],
                                                              7, static_cast<uint32_t>(round))
                                                    .problem()
                                              : randomProblem(random, {7, 0.4, 0.2, 0.05, 1, round % 2 == 0});
    const PairTable pairs(p);
    const std::vector<std::vector<int>> apart = exclusions(p, pairs);
    for (int stages = 1; stages <= 4; ++stages) {
      const StageProgram program(p, pairs, apart, stages);
      if (!program.possible()) continue;
      const int rows = program.rows();
      addCuts(program);
      cuts += program.rows() - rows;
      forEachPartition(p, pairs, [&](const Assignment& cluster) {
        if (illegal(p, cluster)) return;
        const std::optional<std::vector<double>> values = program.solution(cluster);
        if (!values) return;
        ++partitions;
        ASSERT_EQ(brokenRow(program.lp(), *values), 0)
            << "of " << rows << " and cuts, " << stages << " stages";
      });
    }
  }
  EXPECT_GT(cuts, 200);
  EXPECT_GT(partitions, 5'000);
}

/// Nodes of two or three index spaces, which share nothing; the order is all they have in common.
PartitionProblem problemOfSpaces(std::mt19937& random, int nodes, int spaces) {
  PartitionProblem p = randomProblem(random, {nodes, 0.3, 0.1, 0, 0, false});
  for (int a = 0; a < nodes; ++a) {
    for (int b = 0; b < a; ++b)
      if (a % spaces != b % spaces) p.forbidden.emplace_back(b, a);
  }
  std::fill(p.launch.begin(), p.launch.end(), 3);
  return p;
}

TEST(SearchOrders, FindsTheBestOfComponentsThatGetIntoEachOthersWay) {
  std::mt19937 random(23);
  int dearer = 0, improvedInTurn = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const int spaces = 2 + round % 2;
    const PartitionProblem p = problemOfSpaces(random, 9, spaces);
    const PairTable pairs(p);
    std::vector<SolvedComponent> components;
    double alone = 0;
    for (int space = 0; space < spaces; ++space) {
      SolvedComponent c;
      for (int v = space; v < p.nodes; v += spaces) c.nodes.push_back(v);
      const PartitionProblem part = restricted(p, pairs, c.nodes);
      const Partition best = solveIlp(part, PairTable(part));
      ASSERT_TRUE(best.proven());
      c.cluster = best.cluster;
      c.bound = best.cost;
      alone += best.cost;
      components.push_back(std::move(c));
    }
    const double best = exhaustiveOptimum(p);
    dearer += best > alone + 1e-6;

    const Assignment inTurn = solveInTurn(p, pairs, components, separate(p.nodes), Deadline(20));
    ASSERT_EQ(illegal(p, inTurn), std::nullopt);
    EXPECT_GE(costOf(p, inTurn), best - 1e-6);
    improvedInTurn += costOf(p, inTurn) < costOf(p, separate(p.nodes)) - 1e-6;

    const SearchedOrders found = searchOrders(p, components, separate(p.nodes), Deadline(20));
    ASSERT_EQ(illegal(p, found.cluster), std::nullopt);
    EXPECT_NEAR(costOf(p, found.cluster), best, 1e-6);
    EXPECT_NEAR(found.bound, best, 1e-6);

    const SearchedOrders cutShort = searchOrders(p, components, separate(p.nodes), Deadline(0));
    EXPECT_LE(cutShort.bound, best + 1e-6);
  }
  EXPECT_GT(dearer, 15);
  EXPECT_GT(improvedInTurn, 100);
}

}  // namespace
}  // namespace kelpie::fusion

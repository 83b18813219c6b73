// What is known of a problem from before is what would be found again.
#include "fusion/solved_problems.h"

#include <gtest/gtest.h>

#include "fusion/cheapest_together.h"
#include "fusion/fuse.h"
#include "fusion/solve_greedy.h"
#include "tests/fusion/random_problem.h"
#include "tests/fusion/random_program.h"
#include "tests/fusion/shaped_problem.h"

namespace kelpie::fusion {
namespace {

using kelpie::testing::RandomProgram;

Partition partitionOf(const PartitionProblem& problem, double bound) {
  Partition result;
  result.cluster = solveGreedy(problem, PairTable(problem));
  result.cost = costOf(problem, result.cluster);
  result.bound = bound;
  return result;
}

TEST(SolvedProblems, AreFoundByTheirNumbers) {
  std::mt19937 random(1);
  const PartitionProblem problem = randomProblem(random, {});
  SolvedProblems solved;
  solved.of(problem).add("greedy", 0, partitionOf(problem, 0));
  const PartitionProblem same = problem;
  ASSERT_NE(solved.of(same).partition("greedy", 0), nullptr);
  EXPECT_EQ(solved.of(same).partition("greedy", 0)->cluster, partitionOf(problem, 0).cluster);
  EXPECT_EQ(solved.of(same).partition("ilp", 0), nullptr);

  std::vector<PartitionProblem> others(9, problem);
  others[0].nodes += 1;
  others[1].launch.back() += 1;
  others[2].weight.back() += 1;
  others[3].budget = 7.5;
  others[4].edges.back().fusible = !others[4].edges.back().fusible;
  others[5].forbidden.emplace_back(0, 1);
  others[6].requirements.push_back({0, 1, 2});
  others[7].accesses.back().cost += 1;
  others[8].stores.back().outlives = !others[8].stores.back().outlives;
  for (const PartitionProblem& other : others)
    EXPECT_EQ(solved.of(other).partition("greedy", 0), nullptr) << &other - others.data();
}

/// A search that was stopped is worth as much as a shorter one would be.
TEST(SolvedProblems, AreSearchedAgainWhereThereIsMoreTime) {
  std::mt19937 random(2);
  const PartitionProblem problem = randomProblem(random, {});
  SolvedProblems solved;
  Partition stopped = partitionOf(problem, 0);
  ASSERT_FALSE(stopped.proven());
  solved.of(problem).add("ilp", 5, stopped);
  EXPECT_NE(solved.of(problem).partition("ilp", 5), nullptr);
  EXPECT_NE(solved.of(problem).partition("ilp", 1), nullptr);
  EXPECT_EQ(solved.of(problem).partition("ilp", 25), nullptr);
  solved.of(problem).add("ilp", 5, partitionOf(problem, stopped.cost));
  EXPECT_NE(solved.of(problem).partition("ilp", 25), nullptr);
}

/// The second time with the first one's costs: the same costs, and as much work is left.
TEST(SolvedProblems, CostsAreTheSameTheSecondTime) {
  int searched = 0;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    for (const RegionShape shape : kRegionShapes) {
      const PartitionProblem problem = ShapedProblem(shape, 12, seed).problem();
      const PairTable pairs(problem);
      const std::vector<Partition> known{partitionOf(problem, 0)};
      SolvedProblems solved;
      FoundCosts& found = solved.of(problem).costs(known[0].cluster, known);
      const CheapestTogether alone(problem, pairs, known[0].cluster, known),
          remembering(problem, pairs, known[0].cluster, known, &found);
      for (int b = 1; b < problem.nodes; ++b) {
        Assignment group = separate(problem.nodes);
        group[b] = b - 1;
        group = normalised(group);
        if (illegal(problem, group)) continue;
        for (const int64_t steps : {2'000, 1'000'000}) {
          CountedWork expected(steps), first(steps), second(steps);
          const TogetherCost cost = alone.of(group, b, expected);
          for (CountedWork* work : {&first, &second}) {
            const TogetherCost again = remembering.of(group, b, *work);
            EXPECT_EQ(again.cost, cost.cost);
            EXPECT_EQ(again.proven, cost.proven);
            EXPECT_EQ(work->left(), expected.left());
          }
          ++searched;
        }
      }
      EXPECT_GT(found.size(), 0u);
    }
  }
  EXPECT_GT(searched, 100);
}

/// Programs compiled one after the other become what they become alone, and their reports say the same.
TEST(SolvedProblems, ChangeNoScheduleAndNoReason) {
  FusionOptions remembering;
  remembering.compare = remembering.explain = true;
  remembering.solved = std::make_shared<SolvedProblems>();
  FusionOptions anew = remembering;
  anew.solved = nullptr;
  int compared = 0;
  for (const uint32_t seed : {1, 2, 3, 1, 2, 3}) {
    RandomProgram one(seed, 12, false), other(seed, 12, false);
    const FusionReport with = fuse(one.b.program, remembering), without = fuse(other.b.program, anew);
    EXPECT_EQ(lcu::toString(one.b.program), lcu::toString(other.b.program));
    ASSERT_EQ(with.regions.size(), without.regions.size());
    for (size_t r = 0; r < with.regions.size(); ++r) {
      const RegionReport &a = with.regions[r], &b = without.regions[r];
      ASSERT_EQ(a.strategies.size(), b.strategies.size());
      for (size_t s = 0; s < a.strategies.size(); ++s) {
        EXPECT_EQ(a.strategies[s].cluster, b.strategies[s].cluster);
        EXPECT_EQ(a.strategies[s].bound, b.strategies[s].bound);
      }
      ASSERT_EQ(a.pairs.size(), b.pairs.size());
      for (size_t p = 0; p < a.pairs.size(); ++p, ++compared) EXPECT_EQ(a.pairs[p].reason, b.pairs[p].reason);
    }
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace kelpie::fusion

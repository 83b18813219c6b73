// The known answers of the literature, in its own formulation.
#include "fusion/textbook.h"

#include <gtest/gtest.h>

namespace kelpie::fusion {
namespace {

int clusters(const TextbookSolution& solution) {
  int count = 0;
  for (int c : solution.cluster) count = std::max(count, c + 1);
  return count;
}

enum Normalize2 { kSum1, kGts, kSum2, kYs1, kYs2 };

TEST(Textbook, Normalize2TakesTwoClusters) {
  TextbookProblem p;
  p.nodes = 5;
  p.edges = {{kGts, kSum2, true}, {kSum1, kYs1, false}, {kSum2, kYs2, false}};
  p.makesArray = {false, true, false, false, false};
  p.sharedInputs = {{kSum1, kGts, kYs1, kYs2}};
  p.sizes = {{kSum2, kSum1, kGts, kSum1},
             {kSum2, kYs1, kGts, kYs1}};  // sum2 runs over gts, the others over xs
  const TextbookSolution solution = solveTextbook(p, 10);
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(solution.objective, 51);
  EXPECT_EQ(solution.cluster, (Assignment{0, 0, 0, 1, 1}));
}

// One step of the closest pair of points: the middle, both halves, and after the recursive calls (outside of
// the region, so whoever needs their results waits) the points near the border on both sides.
enum ClosestPoints { kMidX, kMidY, kAbove, kBelow, kNearAbove, kNearBelow };

TEST(Textbook, ClosestPointsTakesThreeClusters) {
  TextbookProblem p;
  p.nodes = 6;
  p.edges = {{kMidX, kAbove, false},      {kMidY, kAbove, false},      {kMidX, kBelow, false},
             {kMidY, kBelow, false},      {kAbove, kNearAbove, false}, {kBelow, kNearAbove, false},
             {kAbove, kNearBelow, false}, {kBelow, kNearBelow, false}};
  p.makesArray = {false, false, true, true, true, true};
  p.sharedInputs = {{kMidX, kMidY, kAbove, kBelow, kNearAbove, kNearBelow}};
  const TextbookSolution solution = solveTextbook(p, 10);
  EXPECT_TRUE(solution.optimal);
  EXPECT_EQ(clusters(solution), 3);
  EXPECT_EQ(solution.cluster, (Assignment{0, 0, 1, 1, 2, 2}));
}

// as = filter xs; b = reduce as; cs = filter[b] xs; ds = reduce as; es = reduce cs
enum Trap { kAs, kB, kCs, kDs, kEs };

TEST(Textbook, ConsumersOfFiltersThatNeedEachOtherStayApart) {
  TextbookProblem p;
  p.nodes = 5;
  p.edges = {{kAs, kB, true}, {kB, kCs, false}, {kAs, kDs, true}, {kCs, kEs, true}};
  p.makesArray = {true, false, true, false, false};
  p.sharedInputs = {{kAs, kCs}, {kB, kDs}};
  p.sizes = {{kDs, kEs, kAs, kCs},
             {kB, kEs, kAs, kCs},
             {kB, kCs, kAs, kCs},
             {kDs, kCs, kAs, kCs},
             {kAs, kEs, kAs, kCs}};
  const TextbookSolution solution = solveTextbook(p, 10);
  EXPECT_TRUE(solution.optimal);
  EXPECT_NE(solution.cluster[kAs], solution.cluster[kCs]);
  EXPECT_NE(solution.cluster[kDs], solution.cluster[kEs]);
  EXPECT_EQ(solution.cluster, (Assignment{0, 0, 1, 0, 1}));
}

}  // namespace
}  // namespace kelpie::fusion

// Inequalities that keep clusters in an order, found where a fractional solution breaks them.
//
// In: how much each pair of nodes shares a cluster (0 to 1) in a solution that obeys everything but the
// order. Out: inequalities that every legal clustering obeys and this solution breaks; where all is 0 or 1
// there is one whenever the clusters depend on each other in a cycle.
//
// Number the clusters in their order. An edge u -> v says number(u) <= number(v), and two nodes that share
// have equal numbers. So, around a cycle of edges and of pairs that share, all numbers are equal: the pairs
// T of a cycle share only if the ends of each of its edges do, too,
//
//     sum over T of together(a, b)  <=  |T| - 1 + together(u, v)         for any edge u -> v of the cycle.
//
// The most violated inequality through a node is a shortest cycle: a pair costs 1 - together(a, b), the edge
// chosen costs together(u, v), all other edges nothing.
//
// A pair that is followed by a path is more: a shares with *some* node that a path leads from to b, so
// number(a) <= number(b). Such a star (a and those before b, or b and those behind a) counts like a pair, and
// is shared at least as much. The ends of any step of the cycle are then in one cluster, too.
//
// Two pairs cross when a path leads from one to the other and one back, and not all four can share. Of pairs
// that all cross each other only one shares: sum of together(a, b) <= 1.
#pragma once

#include <utility>
#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// sum over `pairs` of together(a, b)  +  number of `stars` that share  -  together(unless)  <=  upper
struct OrderCut {
  /// Shares if the node is in a cluster with one of the others, or with several.
  struct Star {
    int node = 0;
    std::vector<int> others;                        ///< ascending
    auto operator<=>(const Star&) const = default;  // NOLINT(modernize-use-nullptr): none is here
  };
  std::vector<std::pair<int, int>> pairs;
  std::vector<Star> stars;
  std::pair<int, int> unless = {-1, -1};  ///< negative: nothing
  double upper = 0;
  double violation = 0;  ///< by the solution it was found for
};

/// A cluster of a fractional solution.
struct ClusterShare {
  std::vector<int> members;  ///< ascending
  double share = 0;
};

/// Two nodes and how much they share.
struct Together {
  int a = 0, b = 0;
  double share = 0;
};
/// Each pair that shares, once, in order.
std::vector<Together> togetherIn(const std::vector<ClusterShare>& clusters);

class OrderCuts {
 public:
  OrderCuts(const PartitionProblem& problem, const PairTable& pairs);
  /// Only what is violated by more than `leastViolation`.
  std::vector<OrderCut> violated(const std::vector<ClusterShare>& clusters, double leastViolation) const;

 private:
  int nodes_;
  const PairTable* pairs_;
  std::vector<std::vector<int>> out_;  ///< edges, and pairs that a path parts for good
};

}  // namespace kelpie::fusion

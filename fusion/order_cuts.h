// Inequalities that keep clusters in an order, found where a fractional solution breaks them.
//
// In: values of z[r,v] ("v is in the cluster whose first node is r") that obey everything but the order. Out:
// inequalities over z that every legal clustering obeys and these values break; for values that are all 0 or
// 1 there is one whenever the clusters depend on each other in a cycle.
//
// Number the clusters in their order. An edge u -> v says number(u) <= number(v), and two nodes that share
// have equal numbers. So, around a cycle of edges and of pairs that share, all numbers are equal: the pairs
// T of a cycle share only if the ends of each of its edges do, too,
//
//     sum over T of together(a, b)  <=  |T| - 1 + together(u, v)         for any edge u -> v of the cycle.
//
// together(a, b) is at least the sum over any representatives of z[r,a] + z[r,b] - z[r,r], and at most the
// sum over all representatives of either z[r,a] or z[r,b]; the current values say which to take. The most
// violated inequality through a node is a shortest cycle: a pair costs 1 - together(a, b), the edge chosen
// costs together(u, v), all other edges nothing.
//
// Two pairs cross when a path leads from one to the other and one back, and not all four can share. Of pairs
// that all cross each other only one shares: sum of together(a, b) <= 1.
#pragma once

#include <functional>
#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// sum of coefficient * z[representative, node] <= upper
struct OrderCut {
  struct Term {
    int representative = 0, node = 0;
    double coefficient = 0;
  };
  std::vector<Term> terms;
  double upper = 0;
};

class OrderCuts {
 public:
  OrderCuts(const PartitionProblem& problem, const PairTable& pairs);
  /// `value(r, v)` for r <= v that may share, 0 otherwise. Only what is violated by more than
  /// `leastViolation`.
  std::vector<OrderCut> violated(const std::function<double(int, int)>& value, double leastViolation) const;

 private:
  int nodes_;
  const PairTable* pairs_;
  std::vector<std::vector<int>> out_;  ///< edges, and pairs that a path parts for good
};

}  // namespace kelpie::fusion

// What the cheapest schedule takes that has a given group of nodes in one cluster: why a pair that nothing
// forbids is apart.
//
// In: a problem, partitions known to be good, the group, and work that may be done. Out: the least cost
// found, and whether it is proven to be the least of all. First come the partitions known; then those that
// differ from the chosen one in where the group is, improved by moving single nodes; then what greedy makes
// of the problem with the group as one node; last, if this is small, a search through all that could be
// cheaper.
#pragma once

#include <limits>
#include <mutex>
#include <vector>

#include "fusion/counted_work.h"
#include "fusion/partition.h"
#include "fusion/solved_problems.h"

namespace kelpie::fusion {

struct TogetherCost {
  double cost = std::numeric_limits<double>::infinity();  ///< infinite: no legal partition was found
  bool proven = false;
  bool found() const { return cost < std::numeric_limits<double>::infinity(); }
};

class CheapestTogether {
 public:
  /// All must outlive this. `chosen` is one of `known`, which all are legal. `found`: of this problem with
  /// these partitions; grows. Null: none.
  CheapestTogether(const PartitionProblem& problem, const PairTable& pairs, const Assignment& chosen,
                   const std::vector<Partition>& known, FoundCosts* found = nullptr);

  /// May be called side by side. `group` has all that must be with its members (and can be: its clusters have
  /// an order); the group is the cluster of node `a` in it, all others are alone.
  TogetherCost of(const Assignment& group, int a, CountedWork& work) const;

 private:
  TogetherCost search(const Assignment& group, int a, CountedWork& work) const;
  std::vector<Assignment> nearby(const Assignment& group, int a) const;
  double descend(Assignment cluster, double cost, const std::vector<std::vector<int>>& blocks,
                 CountedWork& work) const;
  std::vector<bool> clustersFor(const std::vector<int>& block, const Assignment& cluster) const;

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  const Assignment& chosen_;
  const std::vector<Partition>& known_;
  FoundCosts* const found_;
  mutable std::mutex ofFound_;
  double bound_ = 0;     ///< nothing is cheaper
  int64_t pricing_ = 0;  ///< steps to price a partition and to see whether it is legal
};

}  // namespace kelpie::fusion

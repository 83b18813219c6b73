// Bounds on the cost of every legal partition that need no solver.
#pragma once

#include "fusion/partition.h"

namespace kelpie::fusion {

/// What no legal partition does without.
struct LeastCosts {
  int clusters = 0;          ///< that are launched
  double launches = 0;       ///< cost of all launches together
  std::vector<int> loads;    ///< by access: clusters that load it
  std::vector<bool> stored;  ///< by store
};

/// Nodes that exclude each other need a launch each, and a load each of what they read; so do those that
/// share only as far as the budget goes.
LeastCosts leastCosts(const PartitionProblem& problem, const PairTable& pairs);
double lowerBound(const PartitionProblem& problem, const PairTable& pairs);

}  // namespace kelpie::fusion

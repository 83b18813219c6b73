// Components whose best clusters depend on each other in a cycle: solves one after the other amid those that
// are solved already.
//
// Components share no clusters, so apart from the order each could be solved alone; what all of them cost
// alone together is a bound. Often some of them have other partitions that cost the same, or little more, and
// get into nobody's way. So the first one keeps its best partition, the next one is solved with a blocking
// edge for every path through clusters that are there, and so on; then each again amid all others, as long as
// that helps. Each component has its turn to be the first.
//
// Example: {a, b} and {c, d} are the components, the edges a -> c and d -> b. Both pairs cannot share. With
// {a, b} fixed, the path c .. d has an edge from d to c by way of {a, b}: they stay apart.
#pragma once

#include <vector>

#include "fusion/deadline.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

struct SolvedComponent {
  std::vector<int> nodes;  ///< ascending; of the problem
  Assignment cluster;      ///< by number in `nodes`; legal when other components are left aside
  double bound = 0;        ///< no partition of it alone costs less
};

/// No worse than the incumbent, which is legal. Every node is in one of the components.
Assignment solveInTurn(const PartitionProblem& problem, const PairTable& pairs,
                       std::vector<SolvedComponent> components, const Assignment& incumbent,
                       const Deadline& deadline);

}  // namespace kelpie::fusion

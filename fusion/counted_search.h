// Branch and bound over the partitions of a small problem, limited by counted work.
//
// In: a problem, its pairs, what some legal partition costs. Out: what the cheapest one found costs, never
// more than that, which it is, and whether it is the cheapest of all. Nodes come in the order of the edges,
// each to the clusters that exist or to one of its own, the cheapest first; what a beginning costs at least
// bounds all that begin so. Of twins (twins.h) none goes to an older cluster than those before it.
#pragma once

#include "fusion/counted_work.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

struct CountedSearchResult {
  double cost = 0;
  Assignment cluster;     ///< of what was found; empty: nothing cheaper than what was known
  bool complete = false;  ///< nothing is cheaper
};

CountedSearchResult searchCounted(const PartitionProblem& problem, const PairTable& pairs, double incumbent,
                                  CountedWork& work);

}  // namespace kelpie::fusion

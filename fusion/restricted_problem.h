// A part of a clustering problem: some nodes that share clusters with no others.
#pragma once

#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// The problem on `nodes` (ascending; node k of it is nodes[k]), when no other node is in a cluster with one
/// of them. Costs are those of the clusters of these nodes. `pairs` are those of the whole problem.
PartitionProblem restricted(const PartitionProblem& problem, const PairTable& pairs,
                            const std::vector<int>& nodes);

}  // namespace kelpie::fusion

// A part of a clustering problem: some nodes that share clusters with no others.
#pragma once

#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// The problem on `nodes` (ascending; node k of it is nodes[k]), when no other node is in a cluster with one
/// of them. Costs are those of the clusters of these nodes. `pairs` are those of the whole problem.
PartitionProblem restricted(const PartitionProblem& problem, const PairTable& pairs,
                            const std::vector<int>& nodes);

/// The same when the other nodes are in `cluster`s that stay as they are, which is a legal partition apart
/// from `nodes`: a path through them is a blocking edge, since what is fixed is launched in between. With
/// these edges every partition of `nodes` that can be ordered gives one of the whole that can.
PartitionProblem restrictedAmid(const PartitionProblem& problem, const PairTable& pairs,
                                const std::vector<int>& nodes, const Assignment& cluster);

}  // namespace kelpie::fusion

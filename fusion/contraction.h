// Merging nodes that some optimal partition has together, before any search.
//
// In: a problem and its pairs. Out: for each node the number of its group, groups numbered by first nodes. At
// least one optimal partition keeps every group whole.
#pragma once

#include "fusion/partition.h"

namespace kelpie::fusion {

Assignment contractionGroups(const PartitionProblem& problem, const PairTable& pairs);

/// The problem between groups. Costs of merged nodes that no partition can save are kept, so that a
/// partition of the groups costs what it costs when expanded to their members.
PartitionProblem contracted(const PartitionProblem& problem, const Assignment& group);

/// The problem without the loads and stores that every partition pays for: arrays of whose nodes no two can
/// share, and those that are stored in any case. They may cost millions of times what there is to decide,
/// which then is less than the tolerances of solvers.
PartitionProblem withoutFixedCosts(PartitionProblem problem, const PairTable& pairs);

/// The problem without its least loads and stores, as many as cost `most` together or less. Bounds of its
/// partitions are bounds of the problem's. Of sequences of a few elements nothing but launches may remain,
/// and these come in whole numbers.
PartitionProblem withoutLeastCosts(PartitionProblem problem, double most);

}  // namespace kelpie::fusion

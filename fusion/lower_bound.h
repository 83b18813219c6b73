// Bounds on the cost of every legal partition that need no solver.
#pragma once

#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// Many of `nodes` that all exclude each other: the longest chain of them along one path, or more, found
/// greedily.
std::vector<int> manyApart(const PairTable& pairs, std::vector<int> nodes);
/// How many clusters at least load an array in this way.
int fewestLoads(const Access& access, const PairTable& pairs);
/// Whether some reader can never be with the producer, or the array outlives the region.
bool alwaysStored(const Store& store, const PairTable& pairs);

/// Nodes that exclude each other need a launch each, and a load each of what they read.
double lowerBound(const PartitionProblem& problem, const PairTable& pairs);

}  // namespace kelpie::fusion

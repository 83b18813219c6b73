// Bounds on the cost of every legal partition that need no solver.
#pragma once

#include "fusion/partition.h"

namespace kelpie::fusion {

/// Nodes that exclude each other need a launch each, and a load each of what they read.
double lowerBound(const PartitionProblem& problem, const PairTable& pairs);

}  // namespace kelpie::fusion

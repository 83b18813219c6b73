// The whole integer program of a clustering problem as a file that any solver reads (CPLEX LP format).
//
// In: a problem and its pairs. Out: a file; false when it cannot be written. Its optimum is the cost of the
// best legal partition, in the units of the problem; z_R_V = 1 says that node V is in the cluster whose first
// node is R, position_V is a place in the order of the clusters.
#pragma once

#include <string>

#include "fusion/partition.h"

namespace kelpie::fusion {

bool emitLp(const PartitionProblem& problem, const PairTable& pairs, const std::string& path);

}  // namespace kelpie::fusion

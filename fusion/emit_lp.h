// The whole integer program of a clustering problem as a file that any solver reads (CPLEX LP format).
//
// In: a problem and its pairs, a title for a comment. Out: a file; false when it cannot be written. Its
// optimum is the cost of the best legal partition, in the units of the problem. Columns:
//
//   z_R_V       1 when node V is in the cluster whose first node is R, its representative; for V = R and
//   every
//               later node that may share with R. So clusters are disjoint and transitive by construction.
//   load_K_R    at least 1 when the cluster of R pays for access K
//   store_K     at least 1 when store K is paid for
//   position_V  a place of V's cluster in the order of the clusters
//   both_U_V_R  at most 1, and only when the ends of the edge U -> V are in the cluster of R
#pragma once

#include <string>

#include "fusion/partition.h"

namespace kelpie::fusion {

bool emitLp(const PartitionProblem& problem, const PairTable& pairs, const std::string& title,
            const std::string& path);

}  // namespace kelpie::fusion

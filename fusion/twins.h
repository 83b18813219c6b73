// Nodes that can change places: in every legal partition two twins may be swapped, and it stays legal and
// costs the same. Kernels that are alike and read the same arrays are twins, such as the selections of five
// columns by one condition.
//
// Of k twins all k! orders are partitions of one cost, through which a search goes one by one unless it keeps
// to one of them (stage_program.h, counted_search.h): an order of clusters in which twins come by their
// numbers.
//
// In: a problem and its pairs. Out: classes of two nodes or more, each ascending. Two nodes are twins if the
// problem is the same after their numbers are exchanged, so being twins is an equivalence.
#pragma once

#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

std::vector<std::vector<int>> twinClasses(const PartitionProblem& problem, const PairTable& pairs);

}  // namespace kelpie::fusion

// Simulated annealing over legal partitions: the incumbent of the integer program, and the schedule of
// regions that are too large for it.
//
// In: a legal partition. Out: a legal partition that costs no more. The same input gives the same result,
// unless the time limit ends the search first.
//
// Every cluster has a place in an order, and a node moves only to clusters (old or new) between the places of
// its producers and of its readers. So the clusters can always be ordered, and a move is checked and priced
// by looking at the neighbours of what moves.
#pragma once

#include "fusion/partition.h"

namespace kelpie::fusion {

Assignment anneal(const PartitionProblem& problem, const PairTable& pairs, const Assignment& start,
                  double seconds);

}  // namespace kelpie::fusion

// Makes a clustering better by solving parts of it again: a few clusters at a time, exactly, with all others
// as they are (large neighbourhood search; Shaw, CP 1998).
//
// A part is a cluster with those that have most arrays in common with it, or that are next to it in the order
// of clusters. Between its nodes, a path through the other clusters is a blocking edge: what is fixed is
// launched in between. With these edges any partition of the part that can be ordered gives one of the whole
// that can.
//
// Parts are solved by stages (solve_stages.h), so this is for clusters that are large and few.
//
// Example: clusters {a, b}, {c}, {d, e} of a chain a -> b -> c -> d -> e, c -> d blocking. The part of the
// first two is solved to {a, b, c}; that of {a, b} and {d, e} has blocking edges from a and b to d and e.
#pragma once

#include "fusion/deadline.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

/// No part of the result of at most `mostNodes` nodes, as far as the time went, can be made cheaper; no worse
/// than the incumbent, which is legal.
Assignment solveAgain(const PartitionProblem& problem, const PairTable& pairs, const Assignment& incumbent,
                      const Deadline& deadline, size_t mostNodes = 140);

}  // namespace kelpie::fusion

// A bound on what all legal partitions pay for arrays, by a linear program over links (GLPK).
//
// Columns: is an array stored; how often is it loaded. An array that is stored is loaded again, too. Rows are
// the inequalities of link_cuts.h, added where the solution breaks them. There are no clusters here, nor
// stages, and so no order: launches are not in it, and however many there are, the bound holds.
//
// Example: x is read by f and g, h reads g's array but needs the sum of f's. Either x or g's array is stored
// and loaded again: the cheaper one is the bound.
#pragma once

#include "fusion/deadline.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

/// No legal partition pays less for loads and stores; at least what `leastCosts` tells of them.
double linkBound(const PartitionProblem& problem, const PairTable& pairs, const Deadline& deadline);

}  // namespace kelpie::fusion

// The optimal clustering of components whose best clusters depend on each other in a cycle: branch and bound
// over the order of their nodes.
//
// Nomenclature. Components share no clusters with each other, so a place of the search is the whole problem
// with some more blocking edges, and its bound is what the components cost alone, each with the paths that
// these edges make. A cycle of clusters C1 -> C2 -> .. -> C1 is entered at a_i in C_i and left at b_i, by the
// edges b_i -> a_i+1; at least one of them leads to another component. In the order of a legal partition
// a_i+1 is not before b_i, and behind it if they are of different components. So if b_i were before a_i for
// no i, all of them would be behind themselves. For some i, then, b_i is strictly before a_i, which is a
// blocking edge: a cycle has as many branches as clusters.
//
// Example: {a, b} and {c, d} are the components, the edges b -> c and d -> a. Both pairs together are a
// cycle; either b blocks a, or d blocks c. With b -> a the first pair is apart, and c and d may share.
//
// A component is solved again only when a new edge has changed what may share in it, or the order; and if
// its clusters are still legal they are still the best.
#pragma once

#include <vector>

#include "fusion/deadline.h"
#include "fusion/solve_in_turn.h"

namespace kelpie::fusion {

struct SearchedOrders {
  Assignment cluster;  ///< the best one known; no worse than the incumbent
  double bound = 0;    ///< no partition costs less
};

/// Components as for `solveInTurn`.
SearchedOrders searchOrders(const PartitionProblem& problem, const std::vector<SolvedComponent>& components,
                            const Assignment& incumbent, const Deadline& deadline);

}  // namespace kelpie::fusion

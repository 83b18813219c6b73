// The optimal clustering, by integer programming (GLPK).
//
// Most of a real region never reaches the solver:
//   1. Contraction. A node whose only reader (or only producer) it may always follow, at no possible loss, is
//      merged with it (contraction.h).
//   2. Decomposition. Pairs that can share a cluster span components, solved apart. If together their
//      clusters form a cycle, the components on it are solved amid each other (solve_in_turn.h), then their
//      order is searched (search_orders.h), and what that leaves open is solved as one.
//   3. A combinatorial lower bound (lower_bound.h). When the greedy clustering, improved, meets it, nothing
//      is left to solve.
//   4. What remains of a component is solved by stages (solve_stages.h), annealing (anneal.h) and branch and
//      price over whole clusters (cluster_search.h), in turns (solve_part.h).
//
// The search starts from the incumbent and is bounded in time; what comes out is legal in any case and
// carries its proven bound.
#pragma once

#include "fusion/partition.h"

namespace kelpie::fusion {

struct IlpOptions {
  double seconds = 5;    ///< limit of all searches of one problem together, counted (work_time.h)
  bool contract = true;  ///< off only to test that contraction loses nothing
  bool shortcut = true;  ///< off only to test the integer program where the lower bound would do
};

Partition solveIlp(const PartitionProblem& problem, const PairTable& pairs, const IlpOptions& options = {});

}  // namespace kelpie::fusion

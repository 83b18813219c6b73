// The optimal clustering among those with few clusters, by an integer program over stages (GLPK).
//
// The clusters of a legal partition can be put in an order: the cluster of number k is stage k. So a
// partition into at most m clusters is a stage from 1 to m for every node, and
//
//   - along a path the stage does not fall, and rises if the ends cannot share;
//   - a stage that is left without nodes costs nothing, but m is fixed here: so all are paid for.
//
// Variables: after[v, k], for 1 <= k < m, is 1 if v is in a stage behind k. Then v is in stage k if
// after[v, k-1] - after[v, k] is 1, and rules about the order are of the form after[u, k] <= after[v, k].
// Where a blocking path leads from u to v and m is 2, all of it is decided before anything is searched; and
// if there are only order, stores and loads, the relaxation for m = 2 is a minimum cut: it has no gap.
//
// Example: b reads a, c reads both, a -> c blocks. Of two stages after[a,1] = 0 and after[c,1] = 1; b is with
// a if that saves more (b stored, a loaded once) than with c.
//
// Column generation (cluster_search.h) sees large clusters badly: what is worth most together is there a
// question of its own, with the budget in it. Here a cluster's size does not matter, but the number of
// stages does. What traffic so few clusters have at least is told by cuts of links (link_cuts.h), and what
// any number of them has by links alone (link_bound.h). So this is for regions of one index space that need
// few kernels, however many nodes they have.
#pragma once

#include "fusion/deadline.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

struct StagedPartition {
  Assignment cluster;  ///< the best one known
  int fewest = 0;      ///< whatever is better has so many clusters at least
  double bound = 0;    ///< whatever is better costs that at least
};

/// The best partition, for more and more stages, as far as programs of a size and a time that is worth it go;
/// no worse than the incumbent. It is the best of all if `bound` is not below its cost. None costs less than
/// `lower`: what costs no more is not improved upon.
StagedPartition solveStages(const PartitionProblem& problem, const PairTable& pairs,
                            const Assignment& incumbent, double lower, const Deadline& deadline);

}  // namespace kelpie::fusion

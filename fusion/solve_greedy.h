// The baselines: `none`, `greedy` and `delayed`, and the local search that improves any legal partition.
//
// In: a problem and its pair table. Out: a legal partition; every solver here is fast and proves nothing.
#pragma once

#include "fusion/order_cuts.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

/// Merges, again and again, the two clusters whose merging saves most and is legal.
Assignment solveGreedy(const PartitionProblem& problem, const PairTable& pairs);
/// The same, beginning with the clusters of a legal partition.
Assignment mergeGreedily(const PartitionProblem& problem, const PairTable& pairs, const Assignment& start);

/// Merges the pairs that share most first, then greedily: what a relaxation says, made whole.
Assignment solveAlong(const PartitionProblem& problem, const PairTable& pairs,
                      std::vector<Together> together);

/// Accelerate's producer/consumer fusion: an array with a single reader that may be computed element by
/// element is computed by that reader. Nothing is fused sideways.
Assignment solveDelayed(const PartitionProblem& problem, const PairTable& pairs,
                        const std::vector<bool>& elementwise);

/// Moves single nodes and merges clusters while that lowers the cost. Deterministic.
Assignment improve(const PartitionProblem& problem, const PairTable& pairs, Assignment cluster);

}  // namespace kelpie::fusion

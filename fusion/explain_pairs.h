// For each pair of kernels of a region why it is together or apart.
//
// In: the region's graph and problem, the partition chosen, and all that were solved. Out: reasons, the same
// ones every time: what they take is counted, and limited for all of them together. What forbids a pair is
// always found; what a pair would cost that nothing forbids is looked for as long as work is left, and
// otherwise the reason is what keeps the kernels that the two are in from being one.
#pragma once

#include "fusion/fuse.h"
#include "fusion/region_problem.h"

namespace kelpie::fusion {

/// Pairs of kernels with an edge, a common space or a common input; each apart one with its reason.
/// `strategy`: which one `cluster` is from; `solved`: partitions that it is among; `found`: costs known of
/// the problem with these, which grow.
std::vector<PairReport> explainPairs(const DependenceGraph& graph, const RegionProblem& problem,
                                     const PairTable& pairs, const Assignment& cluster, Strategy strategy,
                                     const std::vector<Partition>& solved, FoundCosts& found);

}  // namespace kelpie::fusion

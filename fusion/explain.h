// The report's data: what is in a region, what each strategy makes of it, and for each pair of kernels why it
// is together or apart. Nothing here decides anything. `texts`: also what takes time to print.
#pragma once

#include "fusion/fuse.h"
#include "fusion/region_problem.h"

namespace kelpie::fusion {

RegionReport describeRegion(const std::string& name, const DependenceGraph& graph,
                            const lcu::Program& program, bool texts);
StrategyReport describeStrategy(Strategy strategy, const Partition& partition, const RegionProblem& problem,
                                const CostModel& model);
ClusterReport describeCluster(int number, const Assignment& cluster, const DependenceGraph& graph,
                              const lcu::Program& program, bool texts);
/// Pairs of kernels with an edge, a common space or a common input; each apart one with its reason.
/// `strategy`: which one `cluster` is from.
std::vector<PairReport> explainPairs(const DependenceGraph& graph, const RegionProblem& problem,
                                     const PairTable& pairs, const Assignment& cluster, Strategy strategy);

}  // namespace kelpie::fusion

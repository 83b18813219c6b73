// The report's data: what is in a region, and what each strategy makes of it. Nothing here decides anything.
// `texts`: also what takes time to print.
#pragma once

#include "fusion/fuse.h"
#include "fusion/region_problem.h"

namespace kelpie::fusion {

RegionReport describeRegion(const std::string& name, const DependenceGraph& graph,
                            const lcu::Program& program, bool texts);
/// `model`: null: no times.
StrategyReport describeStrategy(Strategy strategy, const Partition& partition, const RegionProblem& problem,
                                const CostModel* model);
ClusterReport describeCluster(int number, const Assignment& cluster, const DependenceGraph& graph,
                              const lcu::Program& program, bool texts);

}  // namespace kelpie::fusion

// The report's data: what is in a region, and what each strategy makes of it. Nothing here decides anything.
// `names`: of the variables, for what takes time to print; null: not that.
#pragma once

#include "fusion/fuse.h"
#include "fusion/region_problem.h"
#include "ir/lcu_names.h"

namespace kelpie::fusion {

RegionReport describeRegion(const std::string& name, const DependenceGraph& graph,
                            const lcu::Program& program, const lcu::Names* names);
/// `model`: null: no times.
StrategyReport describeStrategy(Strategy strategy, const Partition& partition, const RegionProblem& problem,
                                const CostModel* model);
ClusterReport describeCluster(int number, const Assignment& cluster, const DependenceGraph& graph,
                              const lcu::Names* names);

}  // namespace kelpie::fusion

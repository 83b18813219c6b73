// From a region's dependence graph to the clustering problem: what may share a kernel, and what it all costs.
//
// In: the graph of a block, its program, a cost model. Out: a PartitionProblem with one node for each
// statement, in microseconds, and for reports the bytes behind every access and store.
#pragma once

#include "fusion/cost_model.h"
#include "fusion/dependence_graph.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

struct RegionProblem {
  PartitionProblem problem;
  std::vector<bool> elementwise;      ///< by node: a Map, which its readers could compute themselves
  std::vector<double> accessBytes;    ///< by problem.accesses
  std::vector<double> storeBytes;     ///< by problem.stores
  std::vector<bool> countsSurvivors;  ///< by problem.stores: count or offsets of a filter
  std::vector<SoacTime> rest;         ///< by node: beside loads and stores
};

RegionProblem regionProblem(const lcu::Block& block, const DependenceGraph& graph,
                            const lcu::Program& program, const CostModel& model);

}  // namespace kelpie::fusion

// The clusters of one representative as the cuts of a network.
//
// In: a problem; the representative r; `allowed`, the nodes that may be with it. Out: of these the ones that
// some legal cluster with r can have, and a network with a vertex for each of them: on the source side it is
// in the cluster, on the sink side it is out. A cut, with `always` and `own` of the nodes that are in, costs
// what the cluster does: its launch, its loads and its stores, in whole numbers (`scale` of them a unit of
// the problem). Every one of these is of the form "this node here, that one not: pay", which is an arc.
//
// So are the rules about r and one node: whoever lies on a path between them is in, if the node is. Those
// about paths to and from any other node are arcs that are opened once that node is in for certain. The rules
// that are no arcs (nodes that exclude each other, requirements that do not begin at r) are listed.
#pragma once

#include <cstdint>
#include <vector>

#include "fusion/minimum_cut.h"
#include "fusion/node_set.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

/// What networks of the same problem share.
struct ClusterNetworkTables {
  ClusterNetworkTables(const PartitionProblem& problem, const PairTable& pairs);
  const PartitionProblem& problem;
  const PairTable& pairs;
  double scale = 1;
  std::vector<NodeSet> reach, reachedBy;               ///< by node: who is on paths from it, to it
  std::vector<std::vector<int>> producers, consumers;  ///< by node: along edges
  std::vector<std::vector<Requirement>> requirements;  ///< by node: those about it and another
};

struct ClusterNetwork {
  ClusterNetwork(const ClusterNetworkTables& tables, int representative, const std::vector<bool>& allowed);

  int size() const { return static_cast<int>(nodes.size()); }
  static int vertex(int node) { return node + 2; }  ///< behind source and sink

  std::vector<int> nodes;                 ///< numbers in the problem; the representative is node 0
  std::vector<NodeSet> conflicts;         ///< by node: who cannot be in a cluster with it
  std::vector<NodeSet> before, after;     ///< by node: who is on paths to it, from it
  std::vector<Requirement> requirements;  ///< about two nodes here; third is -1 where it is not here
  MinimumCut cut;
  /// An edge between two nodes here, and the arcs that hold if somebody before `from`, or behind `to`, is in.
  struct Edge {
    int from = 0, to = 0;
    int takesFrom = 0;  ///< `from` is in if `to` is
    int takesTo = 0;    ///< `to` is in if `from` is
  };
  std::vector<Edge> edges;
  std::vector<int> in, out;  ///< by node: the arcs to pay if it is out, if it is in; of no capacity yet
  std::vector<int64_t> own;  ///< by node: the cost of having it in, whatever else is
  int64_t always = 0;        ///< the cost of every cluster

 private:
  void chooseNodes(const ClusterNetworkTables& tables, const std::vector<bool>& allowed);
  void addLoads(const ClusterNetworkTables& tables);
  void addStores(const ClusterNetworkTables& tables);
  void addPaths(const ClusterNetworkTables& tables);
  void addEdges(const ClusterNetworkTables& tables);
  void listRules(const ClusterNetworkTables& tables);
  bool missesSomeone(const ClusterNetworkTables& tables, int node) const;
  bool has(int node) const { return number_[node] >= 0; }

  int representative_;
  std::vector<int> number_;  ///< of each node of the problem here; -1: not here
};

}  // namespace kelpie::fusion

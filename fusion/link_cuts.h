// Inequalities about links, which are cut or hold: of a chain whose ends can never share one link is cut, and
// of a tree that is over the budget.
//
// Nomenclature. A link is a set of nodes that share a cluster unless something is paid: an array's producer
// and its readers, with what storing it costs; or those and what loading it costs. How much a link is cut is
// 0 where they all share, and a whole number otherwise. Whoever lies on a path between two nodes of a link,
// or is required by them, is in their cluster if the link holds: these are nodes of the link, too. Links meet
// in nodes.
//
// Chains. From a node to one that it cannot share with no chain of links holds (multicut):
//
//     sum over the chain of cut(link)  >=  1.
//
// Trees. Nodes that hang together by links that hold take no more than the budget. So if nodes v of a tree
// with root r weigh W > 1 (of a budget of 1), and more(link) is what hangs on a link, seen from r,
//
//     sum over the tree of min(more(link), W - 1) cut(link)  >=  W - 1:
//
// the links that are cut take that much off, and one that takes off all that is too much suffices. (Knapsack
// tree inequalities; Ferreira, Martin, de Souza, Weismantel and Wolsey, Math. Programming 74, 1996.)
//
// Why: a relaxation whose stages are fractions cuts nothing of this. Example: f and g read x, h reads g's
// array but needs the sum of f's, so f and h cannot share. Half of x, f and g in stage 1 and half in 2, half
// of h in 2 and half in 3: that looks like one cluster that is not sure where it is. The chain f, x, g, h
// says it is two.
//
// In: links, and how much each is cut in a solution. Out: broken inequalities, of each node the one of the
// nearest nodes: a shortest path, or a shortest-path tree, in the graph of nodes and links.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// Links and how often they count: together their cuts are 1 at least.
using LinkCut = std::map<int, double>;

class LinkCuts {
 public:
  /// `share` says who can share a cluster: pairs of `pairs`, or fewer. By link: its nodes.
  LinkCuts(const PartitionProblem& problem, const PairTable& pairs, const BitMatrix& share,
           std::vector<std::vector<int>> links);
  /// Those with less than 1 - `least`, each once; `cut` by link.
  std::vector<LinkCut> broken(const std::vector<double>& cut, double least) const;

 private:
  /// The nodes that are nearer than 1 to a node, and how they are reached.
  struct Neighbourhood {
    int root;
    std::vector<int> nodes;            ///< the nearest first, beginning with the root
    std::vector<int> through, before;  ///< by node: the last link, and the node before that
    int excluded = -1;                 ///< one that cannot share with the root; there are none behind it
  };
  Neighbourhood around(int root, const std::vector<double>& cut, double within) const;
  static void addChain(const Neighbourhood& near, int node, double times, LinkCut& links);
  LinkCut overBudget(const Neighbourhood& near, const std::vector<double>& weights,
                     const std::vector<double>& cut, double least) const;

  BitMatrix share_;
  std::vector<std::vector<double>> weights_;  ///< see budget_weights.h
  std::vector<std::vector<int>> members_;     ///< by link
  std::vector<std::vector<int>> links_;       ///< by node
};

}  // namespace kelpie::fusion

// Which single cluster is worth most, when every node brings in a price: the question that column generation
// (cluster_relaxation.h) asks again and again.
//
// In: a problem, prices of nodes, costs of pairs that share. Out: for a representative r the legal cluster
// with r and without the representatives before it for which
//
//     its cost in the partition  -  the prices of its nodes  +  the costs of its pairs and stars
//
// is least, or all for which it is below a limit. Legal by itself: pairs, requirements, budget, and nobody
// outside on a path between two members; the order among clusters is not looked at.
//
// Without the rules between nodes other than r the best cluster is a minimum cut (cluster_network.h). Where
// its source side breaks such a rule, the search branches on a node of it: in or out.
#pragma once

#include <functional>
#include <vector>

#include "fusion/cluster_network.h"
#include "fusion/deadline.h"
#include "fusion/order_cuts.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

struct ClusterPrices {
  struct Pair {
    int a = 0, b = 0;
    double cost = 0;  ///< if both are in the cluster; negative: they bring in something
  };
  struct Star {
    OrderCut::Star star;
    double cost = 0;  ///< if it shares; not negative
  };
  std::vector<double> node;
  double cluster = 0;  ///< of every cluster, whatever is in it
  std::vector<Pair> pairs;
  std::vector<Star> stars;
};

class ClusterPricing {
 public:
  ClusterPricing(const PartitionProblem& problem, const PairTable& pairs);

  /// What a cluster of these nodes costs in a partition: its launch, loads and stores.
  double costOf(const std::vector<int>& members) const;

  struct Cheapest {
    std::vector<int> members;              ///< ascending; empty when nothing below the limit was found
    double cost = 0;                       ///< after prices
    std::vector<std::vector<int>> others;  ///< found on the way, below the limit as well
    double bound = 0;                      ///< nothing below this exists; at most the limit
  };
  /// At most `steps` minimum cuts, none after the deadline; `steps` is what is left then.
  Cheapest cheapest(int representative, const ClusterPrices& prices, double limit, int64_t& steps,
                    const Deadline* deadline = nullptr) const;

  struct Forced {
    bool any = false;          ///< some cluster with the node may be below the limit; if not, no more is said
    std::vector<int> with;     ///< who is in every one of them
    std::vector<int> without;  ///< who is in none, of those that can share with the node
  };
  /// What is common to all clusters below the limit that have the node, whatever their representatives; as
  /// far as a few minimum cuts a question tell, and the time goes. `known`: some of these clusters, which
  /// save questions.
  Forced forced(int node, const ClusterPrices& prices, double limit,
                const std::vector<const std::vector<int>*>& known, const Deadline& deadline) const;

  /// Calls `found` for every cluster below the limit; false when the steps did not suffice.
  bool forEachBelow(int representative, const ClusterPrices& prices, double limit, int64_t& steps,
                    const std::function<void(std::vector<int>)>& found) const;

 private:
  class Search;

  const PartitionProblem& problem_;
  ClusterNetworkTables tables_;
  std::vector<std::vector<int>> accessesOf_, storesOf_;  ///< by node: numbers in the problem
  std::vector<ClusterNetwork> networks_;                 ///< by representative
};

}  // namespace kelpie::fusion

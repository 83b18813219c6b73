// The clusters of one representative at given prices, as far as a search has decided who is in.
//
// In: the network of a representative (cluster_network.h) and prices (cluster_pricing.h). Out: for the place
// where a search is (some nodes in for certain, some out) a minimum cut, and with it a bound that no legal
// cluster of that place is below:
//
//   - a node's price, if it is worth more than it costs, is paid when it is out;
//   - of a pair or star that costs something when it shares, that is a cost of the others once one is in for
//     certain; before, it is left out;
//   - whoever lies on a path between a node that is in for certain and another one is in, if that one is;
//   - the budget has a price p (Lagrange's): every node in pays p times what it takes of the budget, and p
//     times the most that a cluster here can take is given back. Whatever p, no legal cluster gains by that.
//
// Capacities only grow on the way down, so what flows stays. Costs are in whole numbers, as in the network.
#pragma once

#include <cstdint>
#include <vector>

#include "fusion/cluster_network.h"
#include "fusion/cluster_pricing.h"

namespace kelpie::fusion {

class PricedNetwork {
 public:
  enum State : uint8_t { Free, In, Out };
  /// If the node is with one of the others, or with several, that costs.
  struct Star {
    int node;
    NodeSet others;
    double cost;
  };
  /// Where a search is.
  struct Place {
    MinimumCut::State flow;
    double budgetPrice;
    std::vector<State> state;
    std::vector<int> decisions;
  };

  /// All must outlive this.
  PricedNetwork(const PartitionProblem& problem, double scale, const ClusterNetwork& network,
                const ClusterPrices& prices);

  // ---- by numbers of the network ----

  int size() const { return network_.size(); }
  State state(int node) const { return state_[node]; }
  double price(int node) const { return price_[node]; }
  double weight(int node) const { return weight_[node]; }  ///< 0 of the representative
  const std::vector<ClusterPrices::Pair>& pairs() const { return pairs_; }
  const std::vector<Star>& stars() const { return stars_; }  ///< of two others or more
  int64_t always() const { return always_; }  ///< the cost of every cluster, above which cuts are

  // ---- places ----

  Place place() const { return {cut_.state(), budgetPrice_, state_, decisions_}; }
  void comeBack(const Place& place);
  /// Decides about a free node, and who cannot be with it; false when that breaks a rule.
  bool fix(int node, State state);

  // ---- the budget ----

  double budget() const { return budget_; }  ///< that the representative leaves
  double taken(const NodeSet& in) const;
  double takenAtMost() const;  ///< by a cluster here; at most the budget
  double budgetPrice() const { return budgetPrice_; }
  /// What is given back at the price of now.
  int64_t credit() const;
  /// Prices ascend.
  void priceBudget(double price);
  void forgetBudgetPrice();

  // ---- cuts ----

  /// The value so far, with what is to be given back; see MinimumCut.
  int64_t augment(int64_t enough) { return cut_.augment(enough); }
  NodeSet sourceSide() const;

 private:
  /// To raise once a node is in for certain, unless `other` was before.
  struct Charge {
    int other;  ///< negative: nobody
    int arc;
    int64_t cost;
  };

  int64_t whole(double cost) const;
  void addPair(int a, int b, double price);
  void addStar(const ClusterPrices::Star& priced, const std::vector<int>& number);
  void chargePairs(int node);
  void decide(int node, State state);

  const ClusterNetwork& network_;
  const double scale_;
  MinimumCut cut_;
  int64_t always_;
  std::vector<double> price_;
  std::vector<ClusterPrices::Pair> pairs_;
  std::vector<Star> stars_;
  std::vector<std::vector<Charge>> costly_;
  std::vector<State> state_;
  std::vector<int> decisions_;  ///< in order
  const double budget_;
  std::vector<double> weight_;
  double budgetPrice_ = 0;  ///< for one of weight, in whole costs
  MinimumCut::State withoutPrice_;
};

}  // namespace kelpie::fusion

#include "fusion/priced_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr int64_t kNanosecondsOfANode = 60, kNanosecondsOfAPair = 20;

}  // namespace

PricedNetwork::PricedNetwork(const PartitionProblem& problem, double scale, const ClusterNetwork& network,
                             const ClusterPrices& prices)
    : network_(network),
      scale_(scale),
      cut_(network.cut),
      always_(network.always + whole(-prices.cluster)),
      costly_(network.nodes.size()),
      state_(network.nodes.size(), Free),
      budget_(problem.budget - problem.weight[network.nodes[0]]) {
  for (int v = 0; v < size(); ++v) {
    price_.push_back(prices.node[network_.nodes[v]]);
    weight_.push_back(v == 0 ? 0 : problem.weight[network_.nodes[v]]);
    const int64_t cost = network_.own[v] + whole(-price_[v]);
    if (v > 0 && cost > 0) {
      cut_.raise(network_.out[v], cost);
    } else {
      always_ += cost;
      if (v > 0) cut_.raise(network_.in[v], -cost);
    }
  }
  WorkTime::spend(kNanosecondsOfANode * (size() + problem.nodes / 8) +
                  kNanosecondsOfAPair * static_cast<int64_t>(prices.pairs.size() + 4 * prices.stars.size()));
  std::vector<int> number(problem.nodes, -1);
  for (int v = 0; v < size(); ++v) number[network_.nodes[v]] = v;
  for (const ClusterPrices::Pair& p : prices.pairs) addPair(number[p.a], number[p.b], p.cost);
  for (const ClusterPrices::Star& s : prices.stars) addStar(s, number);
  state_[0] = In;
  chargePairs(0);
  withoutPrice_ = cut_.state();
}

int64_t PricedNetwork::whole(double cost) const { return static_cast<int64_t>(std::floor(cost * scale_)); }

/// Numbers of this network; negative: not here.
void PricedNetwork::addPair(int a, int b, double price) {
  if (a < 0 || b < 0 || network_.conflicts[a].has(b)) return;
  pairs_.push_back({a, b, price});
  const int64_t cost = whole(price);
  if (price >= 0) {
    costly_[a].push_back({b, network_.out[b], cost});
    costly_[b].push_back({a, network_.out[a], cost});
    return;
  }
  always_ += cost;
  const int both = cut_.addNode();
  cut_.addArc(MinimumCut::kSource, both, -cost);
  for (int v : {a, b}) cut_.addArc(both, ClusterNetwork::vertex(v), MinimumCut::kInfinite);
}

void PricedNetwork::addStar(const ClusterPrices::Star& priced, const std::vector<int>& number) {
  const int node = number[priced.star.node];
  if (node < 0) return;
  std::vector<int> others;
  for (int v : priced.star.others) {
    if (number[v] >= 0 && !network_.conflicts[node].has(number[v])) others.push_back(number[v]);
  }
  if (others.size() == 1) addPair(node, others[0], priced.cost);
  if (others.size() < 2) return;
  Star star{node, NodeSet(state_.size()), priced.cost};
  const int some = cut_.addNode();
  for (int v : others) {
    star.others.add(v);
    cut_.addArc(ClusterNetwork::vertex(v), some, MinimumCut::kInfinite);
  }
  costly_[node].push_back({-1, cut_.addArc(some, MinimumCut::kSink, 0), whole(priced.cost)});
  stars_.push_back(std::move(star));
}

void PricedNetwork::chargePairs(int node) {
  for (const auto& [other, arc, cost] : costly_[node]) {
    if (other < 0 || state_[other] != In) cut_.raise(arc, cost);
  }
}

void PricedNetwork::comeBack(const Place& place) {
  cut_.restore(place.flow);
  budgetPrice_ = place.budgetPrice;
  state_ = place.state;
  decisions_ = place.decisions;
}

void PricedNetwork::decide(int node, State state) {
  state_[node] = state;
  decisions_.push_back(node);
  cut_.raise(state == In ? network_.in[node] : network_.out[node], MinimumCut::kInfinite);
  if (state == Out) return;
  chargePairs(node);
  for (const ClusterNetwork::Edge& e : network_.edges) {
    if (network_.after[node].has(e.from)) cut_.open(e.takesFrom);
    if (network_.before[node].has(e.to)) cut_.open(e.takesTo);
  }
}

bool PricedNetwork::fix(int node, State state) {
  decide(node, state);
  if (state == Out) return true;
  for (int v = 0; v < size(); ++v) {
    if (state_[v] == Out || !network_.conflicts[node].has(v)) continue;
    if (state_[v] == In) return false;
    decide(v, Out);
  }
  return true;
}

double PricedNetwork::takenAtMost() const {
  double total = 0;
  for (int v = 0; v < size(); ++v) total += state_[v] == Out ? 0 : weight_[v];
  return std::min(total, budget_);
}

double PricedNetwork::taken(const NodeSet& in) const {
  double total = 0;
  for (int v = 0; v < size(); ++v) total += in.has(v) ? weight_[v] : 0;
  return total;
}

int64_t PricedNetwork::credit() const {
  return budgetPrice_ == 0 ? 0 : static_cast<int64_t>(std::ceil(budgetPrice_ * takenAtMost()));
}

void PricedNetwork::priceBudget(double price) {
  for (int v = 1; v < size(); ++v) {
    const auto paidAt = [&](double price) { return static_cast<int64_t>(std::floor(price * weight_[v])); };
    if (weight_[v] > 0) cut_.raise(network_.out[v], paidAt(price) - paidAt(budgetPrice_));
  }
  budgetPrice_ = price;
}

/// From the beginning: capacities cannot shrink.
void PricedNetwork::forgetBudgetPrice() {
  const std::vector<int> decisions = std::move(decisions_);
  const std::vector<State> state = state_;
  decisions_.clear();
  std::fill(state_.begin() + 1, state_.end(), Free);
  cut_.restore(withoutPrice_);
  budgetPrice_ = 0;
  for (int v : decisions) decide(v, state[v]);
}

NodeSet PricedNetwork::sourceSide() const {
  NodeSet in(state_.size());
  for (int v = 0; v < size(); ++v) {
    if (cut_.onSourceSide(ClusterNetwork::vertex(v))) in.add(v);
  }
  return in;
}

}  // namespace kelpie::fusion

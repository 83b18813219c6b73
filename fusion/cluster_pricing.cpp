#include "fusion/cluster_pricing.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kelpie::fusion {
namespace {

constexpr int64_t kStepsForAQuestion = 20;
constexpr int kMostBudgetPrices = 8;       ///< tried in one place of a search
constexpr double kGreatestPrice = 0x1p44;  ///< whole costs for one of weight

bool contains(const std::vector<int>& items, int item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

/// Representatives in the order of the fewest partners left, which keeps all networks small.
std::vector<int> representativesInOrder(const PartitionProblem& problem, const PairTable& pairs) {
  std::vector<int> partners(problem.nodes, 0), order;
  std::vector<bool> placed(problem.nodes, false);
  for (int a = 0; a < problem.nodes; ++a) {
    for (int b = 0; b < problem.nodes; ++b) partners[a] += a != b && pairs.canShare(a, b);
  }
  while (static_cast<int>(order.size()) < problem.nodes) {
    int next = -1;
    for (int v = 0; v < problem.nodes; ++v) {
      if (!placed[v] && (next < 0 || partners[v] < partners[next])) next = v;
    }
    placed[next] = true;
    order.push_back(next);
    for (int v = 0; v < problem.nodes; ++v) partners[v] -= v != next && pairs.canShare(next, v);
  }
  return order;
}

}  // namespace

ClusterPricing::ClusterPricing(const PartitionProblem& problem, const PairTable& pairs)
    : problem_(problem), tables_(problem, pairs), accessesOf_(problem.nodes), storesOf_(problem.nodes) {
  for (size_t k = 0; k < problem.accesses.size(); ++k) {
    for (int r : problem.accesses[k].readers) accessesOf_[r].push_back(static_cast<int>(k));
  }
  for (size_t k = 0; k < problem.stores.size(); ++k)
    storesOf_[problem.stores[k].producer].push_back(static_cast<int>(k));
  std::vector<bool> allowed(problem.nodes, true);
  std::vector<std::optional<ClusterNetwork>> networks(problem.nodes);
  for (int r : representativesInOrder(problem, pairs)) {
    networks[r].emplace(tables_, r, allowed);
    allowed[r] = false;
  }
  for (auto& network : networks) networks_.push_back(std::move(*network));
}

double ClusterPricing::costOf(const std::vector<int>& members) const {
  double total = problem_.launch[members[0]];
  std::vector<int> accesses;
  for (int v : members) {
    accesses.insert(accesses.end(), accessesOf_[v].begin(), accessesOf_[v].end());
    for (int k : storesOf_[v]) {
      const Store& s = problem_.stores[k];
      const bool stored = s.outlives || std::any_of(s.readers.begin(), s.readers.end(),
                                                    [&](int r) { return !contains(members, r); });
      if (stored) total += s.cost;
    }
  }
  std::sort(accesses.begin(), accesses.end());
  accesses.erase(std::unique(accesses.begin(), accesses.end()), accesses.end());
  for (int k : accesses) {
    const Access& a = problem_.accesses[k];
    if (a.producer < 0 || !contains(members, a.producer)) total += a.cost;
  }
  return total;
}

/// Branch and bound over the clusters of one representative; nodes have their numbers in its network.
class ClusterPricing::Search {
 public:
  using Found = std::function<void(std::vector<int>)>;

  Search(const ClusterPricing& pricing, const ClusterNetwork& network, const ClusterPrices& prices,
         double limit, int64_t& steps)
      : pricing_(pricing),
        network_(network),
        cut_(network_.cut),
        always_(network_.always + whole(-prices.cluster)),
        clusterPrice_(prices.cluster),
        costly_(network_.nodes.size()),
        state_(network_.nodes.size(), Free),
        budget_(pricing.problem_.budget - pricing.problem_.weight[network_.nodes[0]]),
        limit_(limit),
        steps_(steps),
        open_(limit) {
    for (int v = 0; v < network_.size(); ++v) {
      price_.push_back(prices.node[network_.nodes[v]]);
      weight_.push_back(v == 0 ? 0 : pricing_.problem_.weight[network_.nodes[v]]);
      const int64_t cost = network_.own[v] + whole(-price_[v]);
      if (v > 0 && cost > 0) {
        cut_.raise(network_.out[v], cost);
      } else {
        always_ += cost;
        if (v > 0) cut_.raise(network_.in[v], -cost);
      }
    }
    std::vector<int> number(pricing_.problem_.nodes, -1);
    for (int v = 0; v < network_.size(); ++v) number[network_.nodes[v]] = v;
    for (const ClusterPrices::Pair& p : prices.pairs) addPair(number[p.a], number[p.b], p.cost);
    for (const ClusterPrices::Star& s : prices.stars) addStar(s, number);
    state_[0] = In;
    chargePairs(0);
    withoutPrice_ = cut_.state();
  }

  /// Improves on the limit until nothing is below it.
  Cheapest cheapest() {
    explore();
    best_.bound = std::min(open_, limit_);
    return best_;
  }

  /// `known`: clusters with the representative, below the limit.
  Forced forced(const std::vector<const std::vector<int>*>& known) {
    Forced result;
    const int n = network_.size();
    const double limit = limit_;
    std::vector<int> number(pricing_.problem_.nodes, -1);
    for (int v = 0; v < n; ++v) number[network_.nodes[v]] = v;
    NodeSet seenIn(state_.size()), seenOut(state_.size());
    const auto witness = [&](const std::vector<int>& members) {
      NodeSet in(state_.size());
      for (int v : members) in.add(number[v]);
      for (int v = 0; v < n; ++v) (in.has(v) ? seenIn : seenOut).add(v);
      result.any = true;
    };
    for (const std::vector<int>* members : known) witness(*members);
    /// Whether there may be a cluster below the limit.
    const auto possible = [&] {
      best_ = {};
      cutShort_ = false;
      oneIsEnough_ = true;
      limit_ = limit;
      steps_ = kStepsForAQuestion;
      explore();
      limit_ = limit;
      if (!best_.members.empty()) witness(best_.members);
      return cutShort_ || !best_.members.empty();
    };
    const Place start = place();
    if (!result.any) {
      result.any = possible();
      comeBack(start);
    }
    for (int v = 1; v < n && result.any; ++v) {
      for (const State side : {In, Out}) {
        if ((side == In ? seenIn : seenOut).has(v)) continue;
        if (!fix(v, side) || !possible())
          (side == In ? result.without : result.with).push_back(network_.nodes[v]);
        comeBack(start);
      }
    }
    return result;
  }

  /// False when the steps did not suffice.
  bool forEach(const Found& found) {
    found_ = &found;
    explore();
    return !cutShort_;
  }

 private:
  enum State : uint8_t { Free, In, Out };
  struct Star {
    int node;
    NodeSet others;
    double cost;
  };
  /// In the tree of the search.
  struct Place {
    MinimumCut::State flow;
    double budgetPrice;
    std::vector<State> state;
    std::vector<int> decisions;
  };
  /// To raise once a node is in for certain, unless `other` was before.
  struct Charge {
    int other;  ///< negative: nobody
    int arc;
    int64_t cost;
  };

  int64_t whole(double cost) const { return static_cast<int64_t>(std::floor(cost * pricing_.tables_.scale)); }

  /// Numbers of this network; negative: not here.
  void addPair(int a, int b, double price) {
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

  void addStar(const ClusterPrices::Star& priced, const std::vector<int>& number) {
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

  /// Once v is in for certain, what it costs to have another with it is a cost of the other.
  void chargePairs(int v) {
    for (const auto& [other, arc, cost] : costly_[v]) {
      if (other < 0 || state_[other] != In) cut_.raise(arc, cost);
    }
  }

  Place place() const { return {cut_.state(), budgetPrice_, state_, decisions_}; }
  void comeBack(const Place& place) {
    cut_.restore(place.flow);
    budgetPrice_ = place.budgetPrice;
    state_ = place.state;
    decisions_ = place.decisions;
  }

  void decide(int v, State state) {
    state_[v] = state;
    decisions_.push_back(v);
    cut_.raise(state == In ? network_.in[v] : network_.out[v], MinimumCut::kInfinite);
    if (state == Out) return;
    chargePairs(v);
    for (const ClusterNetwork::Edge& e : network_.edges) {
      if (network_.after[v].has(e.from)) cut_.open(e.takesFrom);
      if (network_.before[v].has(e.to)) cut_.open(e.takesTo);
    }
  }

  /// False when that breaks a rule.
  bool fix(int v, State state) {
    decide(v, state);
    if (state == Out) return true;
    for (int w = 0; w < network_.size(); ++w) {
      if (state_[w] == Out || !network_.conflicts[v].has(w)) continue;
      if (state_[w] == In) return false;
      fix(w, Out);
    }
    return true;
  }

  // ---- the price of the budget ----

  /// The most that a cluster here can take of the budget; the representative's share aside.
  double takenAtMost() const {
    double total = 0;
    for (int v = 0; v < network_.size(); ++v) total += state_[v] == Out ? 0 : weight_[v];
    return std::min(total, budget_);
  }
  double taken(const NodeSet& in) const {
    double total = 0;
    for (int v = 0; v < network_.size(); ++v) total += in.has(v) ? weight_[v] : 0;
    return total;
  }
  /// Prices ascend: the flow stays.
  void priceBudget(double price) {
    for (int v = 1; v < network_.size(); ++v) {
      const auto at = [&](double price) { return static_cast<int64_t>(std::floor(price * weight_[v])); };
      if (weight_[v] > 0) cut_.raise(network_.out[v], at(price) - at(budgetPrice_));
    }
    budgetPrice_ = price;
  }
  void forgetBudgetPrice() {
    const std::vector<int> decisions = std::move(decisions_);
    const std::vector<State> state = state_;
    decisions_.clear();
    std::fill(state_.begin() + 1, state_.end(), Free);
    cut_.restore(withoutPrice_);
    budgetPrice_ = 0;
    for (int v : decisions) decide(v, state[v]);
  }

  /// What is below all clusters here, when the cut is known, in whole costs above `always_`.
  int64_t least(int64_t cut) const {
    return cut - static_cast<int64_t>(std::ceil(budgetPrice_ * takenAtMost()));
  }

  NodeSet sourceSide() const {
    NodeSet in(state_.size());
    for (int v = 0; v < network_.size(); ++v) {
      if (cut_.onSourceSide(ClusterNetwork::vertex(v))) in.add(v);
    }
    return in;
  }

  /// Where the best price of the budget is.
  struct BudgetPrice {
    bool nothing = false;  ///< is below the limit
    int64_t bound;         ///< at the best price
    NodeSet in;            ///< at the best price
    Place low;             ///< where the price was too low last, and `over` the budget
    NodeSet over, under;   ///< what is in at prices too low and too high
  };
  /// Raises the price of the budget while that raises the bound; `in` and `bound` are those of the cut.
  BudgetPrice findBudgetPrice(const NodeSet& in, int64_t bound, int64_t enough) {
    struct Line {
      double price, value, slope;
      double meets(const Line& other) const {
        return (other.value - value + slope * price - other.slope * other.price) / (slope - other.slope);
      }
    };
    BudgetPrice result{false, bound, in, place(), in, NodeSet(state_.size())};
    const double atMost = takenAtMost();
    Line left{budgetPrice_, static_cast<double>(bound), taken(in) - atMost},
        right{0, static_cast<double>(enough), 0};
    for (int k = 0; k < kMostBudgetPrices && steps_ > 0; ++k) {
      const double price = left.meets(right);
      if (!(price > left.price * (1 + 1e-9)) || price > kGreatestPrice) break;
      comeBack(result.low);
      priceBudget(price);
      --steps_;
      const auto credit = static_cast<int64_t>(std::ceil(price * atMost));
      const int64_t cut = cut_.augment(enough + credit);
      if (cut >= enough + credit) {
        result.nothing = true;
        return result;
      }
      const NodeSet here = sourceSide();
      const Line line{price, static_cast<double>(cut - credit), taken(here) - atMost};
      if (cut - credit > result.bound) {
        result.bound = cut - credit;
        result.in = here;
      }
      if (line.slope > 0) {
        result.low = place();
        result.over = here;
        left = line;
      } else {
        result.under = here;
        right = line;
      }
      if (line.slope == 0) break;
    }
    comeBack(result.low);
    return result;
  }

  /// What is needed for that nothing is below the limit, in whole costs above `always_`; 0 if nothing is.
  int64_t roomInWhole() const {
    const double room = limit_ * pricing_.tables_.scale - static_cast<double>(always_);
    return static_cast<int64_t>(std::clamp(std::ceil(room), 0.0, std::exp2(57)));
  }

  /// A place with clusters that may be below the limit, and the node to decide next.
  struct Open {
    int64_t bound;
    int node;
    int number;  ///< in the order they were found
    Place place;
    bool operator<(const Open& other) const {  // the best one last
      return std::pair(bound, number) > std::pair(other.bound, other.number);
    }
  };

  /// From where the search stands until nothing is below the limit, or the steps did not suffice. The place
  /// with the least bound is next, so that what is left says most; but from there on always into the better
  /// half, which finds clusters. Where all are wanted there are too many places to keep: those found last.
  void explore() {
    std::vector<Open> open;
    std::optional<Open> next = look();
    while (next || !open.empty()) {
      if (!next) {
        if (!found_) std::pop_heap(open.begin(), open.end());
        next = std::move(open.back());
        open.pop_back();
      }
      if (steps_ <= 0) {
        cutShort_ = true;
        int64_t least = next->bound;
        for (const Open& o : open) least = std::min(least, o.bound);
        open_ = static_cast<double>(always_ + least) / pricing_.tables_.scale;
        return;
      }
      const Open here = std::move(*next);
      next.reset();
      if (here.bound >= roomInWhole()) continue;
      for (const State choice : {In, Out}) {
        comeBack(here.place);
        if (!fix(here.node, choice)) continue;
        std::optional<Open> half = look();
        if (!half) continue;
        if (next && half->bound < next->bound) std::swap(next, half);
        if (!next) {
          next = std::move(half);
          continue;
        }
        open.push_back(std::move(*half));
        if (!found_) std::push_heap(open.begin(), open.end());
      }
    }
  }

  /// Nothing if no cluster here is below the limit, or the one that is has been recorded.
  std::optional<Open> look() {
    const int64_t enough = roomInWhole();
    if (enough <= 0) return std::nullopt;
    if (budgetPrice_ > 0 && takenAtMost() < budget_) forgetBudgetPrice();
    --steps_;
    const int64_t credit = -least(0);
    int64_t bound = cut_.augment(enough + credit) - credit;
    if (bound >= enough) return std::nullopt;
    NodeSet in = sourceSide();
    over_ = under_ = NodeSet(state_.size());
    priced_ = budgetPrice_ > 0;
    if (budget_ > 0 && taken(in) > budget_) {
      BudgetPrice found = findBudgetPrice(in, bound, enough);
      if (found.nothing) return std::nullopt;
      priced_ = true;
      bound = found.bound;
      in = std::move(found.in);
      over_ = std::move(found.over);
      under_ = std::move(found.under);
    }
    const int v = nodeToBranchOn(in);
    if (v == kNone) record(in);
    if (v == kNone || v == kIllegal) return std::nullopt;
    return Open{bound, v, looked_++, place()};
  }

  static constexpr int kNone = -1, kIllegal = -2;

  int firstFree(std::initializer_list<int> nodes) const {
    for (int v : nodes) {
      if (state_[v] == Free) return v;
    }
    return kIllegal;
  }

  /// A node whose being in or out decides about a rule that `in` breaks; kIllegal if it breaks one for good,
  /// kNone if it breaks none.
  int nodeToBranchOn(const NodeSet& in) {
    const int n = network_.size();
    int most = 0, worst = kNone;
    double weight = 0;
    for (int v = 0; v < n; ++v) {
      if (!in.has(v)) continue;
      weight += pricing_.problem_.weight[network_.nodes[v]];
      const int conflicts = state_[v] == Free ? in.common(network_.conflicts[v]) : 0;
      if (conflicts > most) {
        most = conflicts;
        worst = v;
      }
    }
    if (worst != kNone) return worst;
    for (const Requirement& q : network_.requirements) {
      if (!in.has(q.a) || !in.has(q.b) || (q.third >= 0 && in.has(q.third))) continue;
      return q.third >= 0 ? firstFree({q.third, q.a, q.b}) : firstFree({q.a, q.b});
    }
    if (const int v = mostOnBrokenPaths(in); v != kNone) return v;
    if (weight > pricing_.problem_.budget && in.common(in) > 1) {
      const int v = heaviestFree();
      return v == kNone ? kIllegal : v;
    }
    if (const int v = priced_ ? heaviestFree() : kNone; v != kNone) {
      if (!found_) offer(in);
      return v;
    }
    if (const int v = mostUncharged(in); v != kNone) {
      if (!found_) offer(in);
      return v;
    }
    for (int v = 0; v < n && found_; ++v) {
      if (state_[v] == Free) return v;
    }
    return kNone;
  }

  /// The node at the end of most paths that leave and come back; kNone if there are none.
  int mostOnBrokenPaths(const NodeSet& in) {
    waiting_.assign(state_.size(), 0.0);
    bool broken = false;
    for (int w = 0; w < network_.size(); ++w) {
      if (in.has(w) || !in.meets(network_.before[w]) || !in.meets(network_.after[w])) continue;
      broken = true;
      const NodeSet before = in & network_.before[w], after = in & network_.after[w];
      const double b = before.common(before), a = after.common(after);
      for (int v = 0; v < network_.size(); ++v) {
        if (state_[v] != Free) continue;
        if (before.has(v)) waiting_[v] += a;
        if (after.has(v)) waiting_[v] += b;
      }
    }
    if (!broken) return kNone;
    const auto most = std::max_element(waiting_.begin(), waiting_.end());
    return *most > 0 ? static_cast<int>(most - waiting_.begin()) : kIllegal;
  }

  /// kNone if what is free takes nothing of the budget. Rather one that the price decides about.
  int heaviestFree() const {
    int heaviest = kNone;
    double most = 0;
    for (int v = 0; v < network_.size(); ++v) {
      if (state_[v] != Free || weight_[v] <= 0) continue;
      const double rank = weight_[v] + (over_.has(v) && !under_.has(v) ? 1e9 : 0);
      if (rank <= most) continue;
      heaviest = v;
      most = rank;
    }
    return heaviest;
  }

  /// The node that most costs of pairs and stars wait for; kNone if all are charged.
  int mostUncharged(const NodeSet& in) {
    waiting_.assign(state_.size(), 0.0);
    for (const ClusterPrices::Pair& p : pairs_) {
      if (p.cost <= 0 || !in.has(p.a) || !in.has(p.b) || state_[p.a] == In || state_[p.b] == In) continue;
      waiting_[p.a] += p.cost;
      waiting_[p.b] += p.cost;
    }
    for (const Star& s : stars_) {
      if (in.has(s.node) && state_[s.node] != In && in.meets(s.others)) waiting_[s.node] += s.cost;
    }
    const auto most = std::max_element(waiting_.begin(), waiting_.end());
    return *most > 0 ? static_cast<int>(most - waiting_.begin()) : kNone;
  }

  std::vector<int> membersOf(const NodeSet& in) const {
    std::vector<int> members;
    for (int v = 0; v < network_.size(); ++v) {
      if (in.has(v)) members.push_back(network_.nodes[v]);
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  void record(const NodeSet& in) {
    if (found_) return (*found_)(membersOf(in));
    offer(in);
  }

  /// A legal cluster: the cheapest so far?
  void offer(const NodeSet& in) {
    std::vector<int> members = membersOf(in);
    double cost = pricing_.costOf(members) - clusterPrice_;
    for (int v = 0; v < network_.size(); ++v) cost -= in.has(v) ? price_[v] : 0;
    for (const ClusterPrices::Pair& p : pairs_) cost += in.has(p.a) && in.has(p.b) ? p.cost : 0;
    for (const Star& s : stars_) cost += in.has(s.node) && in.meets(s.others) ? s.cost : 0;
    if (cost >= limit_) return;
    limit_ = oneIsEnough_ ? -1e300 : cost;
    if (!best_.members.empty()) best_.others.push_back(std::move(best_.members));
    best_.members = std::move(members);
    best_.cost = cost;
  }

  const ClusterPricing& pricing_;
  const ClusterNetwork& network_;
  MinimumCut cut_;
  int64_t always_;
  const double clusterPrice_;
  std::vector<double> price_;
  std::vector<ClusterPrices::Pair> pairs_;
  std::vector<Star> stars_;  ///< of two others or more
  std::vector<std::vector<Charge>> costly_;
  std::vector<double> waiting_;  ///< scratch
  std::vector<State> state_;
  std::vector<int> decisions_;  ///< in order
  const double budget_;         ///< that the representative leaves
  std::vector<double> weight_;  ///< by node; 0 of the representative
  double budgetPrice_ = 0;      ///< for one of weight, in whole costs
  MinimumCut::State withoutPrice_;
  NodeSet over_, under_;  ///< BudgetPrice of the place looked at
  bool priced_ = false;   ///< the bound of the place looked at has a price of the budget in it
  int looked_ = 0;
  double limit_;
  int64_t& steps_;
  double open_;  ///< the least bound of what was not searched
  bool cutShort_ = false, oneIsEnough_ = false;
  const Found* found_ = nullptr;  ///< all clusters go there; otherwise the cheapest is wanted
  Cheapest best_;
};

ClusterPricing::Cheapest ClusterPricing::cheapest(int representative, const ClusterPrices& prices,
                                                  double limit, int64_t& steps) const {
  return Search(*this, networks_[representative], prices, limit, steps).cheapest();
}

bool ClusterPricing::forEachBelow(int representative, const ClusterPrices& prices, double limit,
                                  int64_t& steps, const std::function<void(std::vector<int>)>& found) const {
  return Search(*this, networks_[representative], prices, limit, steps).forEach(found);
}

ClusterPricing::Forced ClusterPricing::forced(int node, const ClusterPrices& prices, double limit,
                                              const std::vector<const std::vector<int>*>& known) const {
  const ClusterNetwork network(tables_, node, std::vector<bool>(problem_.nodes, true));
  int64_t steps = 0;
  Forced result = Search(*this, network, prices, limit, steps).forced(known);
  for (int v = 0; result.any && v < problem_.nodes; ++v) {
    if (v != node && tables_.pairs.canShare(node, v) && !contains(network.nodes, v))
      result.without.push_back(v);
  }
  return result;
}

}  // namespace kelpie::fusion

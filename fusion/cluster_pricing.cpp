#include "fusion/cluster_pricing.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "fusion/priced_network.h"
#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr int64_t kStepsForAQuestion = 20;
constexpr int64_t kNanosecondsOfALook = 1'000, kNanosecondsOfALookAtANode = 65;
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
         double limit, int64_t& steps, const Deadline* deadline = nullptr)
      : pricing_(pricing),
        network_(network),
        priced_(pricing.problem_, pricing.tables_.scale, network, prices),
        clusterPrice_(prices.cluster),
        limit_(limit),
        steps_(steps),
        deadline_(deadline),
        open_(limit) {}

  /// Improves on the limit until nothing is below it.
  Cheapest cheapest() {
    explore();
    best_.bound = std::min(open_, limit_);
    return best_;
  }

  /// `known`: clusters with the representative, below the limit.
  Forced forced(const std::vector<const std::vector<int>*>& known, const Deadline& deadline) {
    Forced result;
    const int n = network_.size();
    const double limit = limit_;
    std::vector<int> number(pricing_.problem_.nodes, -1);
    for (int v = 0; v < n; ++v) number[network_.nodes[v]] = v;
    NodeSet seenIn(static_cast<size_t>(network_.size())), seenOut(static_cast<size_t>(network_.size()));
    const auto witness = [&](const std::vector<int>& members) {
      NodeSet in(static_cast<size_t>(network_.size()));
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
    const Place start = priced_.place();
    if (!result.any) {
      result.any = possible();
      priced_.comeBack(start);
    }
    for (int v = 1; v < n && result.any; ++v) {
      for (const State side : {In, Out}) {
        if (deadline.passed()) return result;
        if ((side == In ? seenIn : seenOut).has(v)) continue;
        if (!priced_.fix(v, side) || !possible())
          (side == In ? result.without : result.with).push_back(network_.nodes[v]);
        priced_.comeBack(start);
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
  using State = PricedNetwork::State;
  using Place = PricedNetwork::Place;
  static constexpr State Free = PricedNetwork::Free, In = PricedNetwork::In, Out = PricedNetwork::Out;

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
    BudgetPrice result{false, bound, in, priced_.place(), in, NodeSet(static_cast<size_t>(network_.size()))};
    const double atMost = priced_.takenAtMost();
    Line left{priced_.budgetPrice(), static_cast<double>(bound), priced_.taken(in) - atMost},
        right{0, static_cast<double>(enough), 0};
    for (int k = 0; k < kMostBudgetPrices && steps_ > 0; ++k) {
      const double price = left.meets(right);
      if (!(price > left.price * (1 + 1e-9)) || price > kGreatestPrice) break;
      priced_.comeBack(result.low);
      priced_.priceBudget(price);
      --steps_;
      const int64_t credit = priced_.credit();
      const int64_t cut = priced_.augment(enough + credit);
      if (cut >= enough + credit) {
        result.nothing = true;
        return result;
      }
      const NodeSet here = priced_.sourceSide();
      const Line line{price, static_cast<double>(cut - credit), priced_.taken(here) - atMost};
      if (cut - credit > result.bound) {
        result.bound = cut - credit;
        result.in = here;
      }
      if (line.slope > 0) {
        result.low = priced_.place();
        result.over = here;
        left = line;
      } else {
        result.under = here;
        right = line;
      }
      if (line.slope == 0) break;
    }
    priced_.comeBack(result.low);
    return result;
  }

  /// What is needed for that nothing is below the limit, in whole costs above `priced_.always()`; 0 if
  /// nothing is.
  int64_t roomInWhole() const {
    const double room = limit_ * pricing_.tables_.scale - static_cast<double>(priced_.always());
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
      if (deadline_ && deadline_->passed()) steps_ = 0;
      if (steps_ <= 0) {
        cutShort_ = true;
        int64_t least = next->bound;
        for (const Open& o : open) least = std::min(least, o.bound);
        open_ = static_cast<double>(priced_.always() + least) / pricing_.tables_.scale;
        return;
      }
      const Open here = std::move(*next);
      next.reset();
      if (here.bound >= roomInWhole()) continue;
      for (const State choice : {In, Out}) {
        priced_.comeBack(here.place);
        if (!priced_.fix(here.node, choice)) continue;
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
    WorkTime::spend(kNanosecondsOfALook + kNanosecondsOfALookAtANode * network_.size());
    const int64_t enough = roomInWhole();
    if (enough <= 0) return std::nullopt;
    if (priced_.budgetPrice() > 0 && priced_.takenAtMost() < priced_.budget()) priced_.forgetBudgetPrice();
    --steps_;
    const int64_t credit = priced_.credit();
    int64_t bound = priced_.augment(enough + credit) - credit;
    if (bound >= enough) return std::nullopt;
    NodeSet in = priced_.sourceSide();
    over_ = under_ = NodeSet(static_cast<size_t>(network_.size()));
    atPrice_ = priced_.budgetPrice() > 0;
    if (priced_.budget() > 0 && priced_.taken(in) > priced_.budget()) {
      BudgetPrice found = findBudgetPrice(in, bound, enough);
      if (found.nothing) return std::nullopt;
      atPrice_ = true;
      bound = found.bound;
      in = std::move(found.in);
      over_ = std::move(found.over);
      under_ = std::move(found.under);
    }
    const int v = nodeToBranchOn(in);
    if (v == kNone) record(in);
    if (v == kNone || v == kIllegal) return std::nullopt;
    return Open{bound, v, looked_++, priced_.place()};
  }

  static constexpr int kNone = -1, kIllegal = -2;

  int firstFree(std::initializer_list<int> nodes) const {
    for (int v : nodes) {
      if (priced_.state(v) == Free) return v;
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
      const int conflicts = priced_.state(v) == Free ? in.common(network_.conflicts[v]) : 0;
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
    if (const int v = atPrice_ ? heaviestFree() : kNone; v != kNone) {
      if (!found_) offer(in);
      return v;
    }
    if (const int v = mostUncharged(in); v != kNone) {
      if (!found_) offer(in);
      return v;
    }
    for (int v = 0; v < n && found_; ++v) {
      if (priced_.state(v) == Free) return v;
    }
    return kNone;
  }

  /// The node at the end of most paths that leave and come back; kNone if there are none.
  int mostOnBrokenPaths(const NodeSet& in) {
    waiting_.assign(static_cast<size_t>(network_.size()), 0.0);
    bool broken = false;
    for (int w = 0; w < network_.size(); ++w) {
      if (in.has(w) || !in.meets(network_.before[w]) || !in.meets(network_.after[w])) continue;
      broken = true;
      const NodeSet before = in & network_.before[w], after = in & network_.after[w];
      const double b = before.common(before), a = after.common(after);
      for (int v = 0; v < network_.size(); ++v) {
        if (priced_.state(v) != Free) continue;
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
      if (priced_.state(v) != Free || priced_.weight(v) <= 0) continue;
      const double rank = priced_.weight(v) + (over_.has(v) && !under_.has(v) ? 1e9 : 0);
      if (rank <= most) continue;
      heaviest = v;
      most = rank;
    }
    return heaviest;
  }

  /// The node that most costs of pairs and stars wait for; kNone if all are charged.
  int mostUncharged(const NodeSet& in) {
    waiting_.assign(static_cast<size_t>(network_.size()), 0.0);
    for (const ClusterPrices::Pair& p : priced_.pairs()) {
      if (p.cost <= 0 || !in.has(p.a) || !in.has(p.b) || priced_.state(p.a) == In || priced_.state(p.b) == In)
        continue;
      waiting_[p.a] += p.cost;
      waiting_[p.b] += p.cost;
    }
    for (const PricedNetwork::Star& s : priced_.stars()) {
      if (in.has(s.node) && priced_.state(s.node) != In && in.meets(s.others)) waiting_[s.node] += s.cost;
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
    for (int v = 0; v < network_.size(); ++v) cost -= in.has(v) ? priced_.price(v) : 0;
    for (const ClusterPrices::Pair& p : priced_.pairs()) cost += in.has(p.a) && in.has(p.b) ? p.cost : 0;
    for (const PricedNetwork::Star& s : priced_.stars())
      cost += in.has(s.node) && in.meets(s.others) ? s.cost : 0;
    if (cost >= limit_) return;
    limit_ = oneIsEnough_ ? -1e300 : cost;
    if (!best_.members.empty()) best_.others.push_back(std::move(best_.members));
    best_.members = std::move(members);
    best_.cost = cost;
  }

  const ClusterPricing& pricing_;
  const ClusterNetwork& network_;
  PricedNetwork priced_;
  const double clusterPrice_;
  std::vector<double> waiting_;  ///< scratch
  NodeSet over_, under_;         ///< BudgetPrice of the place looked at
  bool atPrice_ = false;         ///< the bound of the place looked at has a price of the budget in it
  int looked_ = 0;
  double limit_;
  int64_t& steps_;
  const Deadline* deadline_;  ///< null: none
  double open_;               ///< the least bound of what was not searched
  bool cutShort_ = false, oneIsEnough_ = false;
  const Found* found_ = nullptr;  ///< all clusters go there; otherwise the cheapest is wanted
  Cheapest best_;
};

ClusterPricing::Cheapest ClusterPricing::cheapest(int representative, const ClusterPrices& prices,
                                                  double limit, int64_t& steps,
                                                  const Deadline* deadline) const {
  return Search(*this, networks_[representative], prices, limit, steps, deadline).cheapest();
}

bool ClusterPricing::forEachBelow(int representative, const ClusterPrices& prices, double limit,
                                  int64_t& steps, const std::function<void(std::vector<int>)>& found) const {
  return Search(*this, networks_[representative], prices, limit, steps).forEach(found);
}

ClusterPricing::Forced ClusterPricing::forced(int node, const ClusterPrices& prices, double limit,
                                              const std::vector<const std::vector<int>*>& known,
                                              const Deadline& deadline) const {
  if (deadline.passed()) return {true, {}, {}};
  const ClusterNetwork network(tables_, node, std::vector<bool>(problem_.nodes, true));
  int64_t steps = 0;
  Forced result = Search(*this, network, prices, limit, steps).forced(known, deadline);
  for (int v = 0; result.any && v < problem_.nodes; ++v) {
    if (v != node && tables_.pairs.canShare(node, v) && !contains(network.nodes, v))
      result.without.push_back(v);
  }
  return result;
}

}  // namespace kelpie::fusion

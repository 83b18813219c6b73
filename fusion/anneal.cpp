#include "fusion/anneal.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "fusion/deadline.h"
#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

template <typename T>
void sortUnique(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

/// A legal partition whose clusters have places: along every edge places grow, or stay within a cluster.
class Annealer {
 public:
  Annealer(const PartitionProblem& problem, const PairTable& pairs, const Assignment& start)
      : problem_(problem), pairs_(pairs), random_(1) {
    indexNeighbours();
    load(start);
  }

  Assignment run(double seconds) {
    const Deadline deadline(seconds);
    const double whole = meanCost(), fine = medianOfLoads();
    cool(whole, deadline);
    // Where loads cost a small part of a launch, they have made no difference yet.
    if (fine < kFine * whole) {
      load(best_);
      cool(fine, deadline);
    }
    return normalised(best_);
  }

 private:
  static constexpr double kFine = 0.2;
  static constexpr int64_t kRound = 1024;  ///< moves between two looks at the time
  static constexpr int64_t kNanosecondsOfAMove = 180, kNanosecondsOfAStep = 15;
  static constexpr int64_t kMovesOfANodeByNodes = 30, kMostMovesOfANode = 10'000, kMostMoves = 20'000'000;

  /// `unit`: what a decision typically costs.
  void cool(double unit, const Deadline& deadline) {
    constexpr double kHottest = 2, kColdest = 0.1;  // in these units
    const int64_t nodes = static_cast<int64_t>(movable_.size());
    // What is small is solved exactly at once; a good beginning is worth time where that takes long.
    const int64_t ofANode = std::min(kMostMovesOfANode, nodes * std::max(kMovesOfANodeByNodes, nodes / 4));
    const int64_t moves = std::min(nodes * ofANode, kMostMoves);
    double temperature = kHottest * unit;
    const double cooling =
        std::pow(kColdest / kHottest, 1.0 / static_cast<double>(std::max<int64_t>(1, moves / kRound)));
    for (int64_t move = 0; move < moves; ++move) {
      if (move % kRound == 0) {
        renumberPlaces();
        temperature *= cooling;
        WorkTime::spend(kNanosecondsOfAMove * kRound + kNanosecondsOfAStep * steps_);
        steps_ = 0;
        if (deadline.passed()) break;
      }
      const int kind = number(0, 15);
      if (kind == 0) {
        shiftCluster();
      } else if (kind <= 2) {
        mergeClusters(temperature);
      } else {
        moveNode(temperature);
      }
    }
  }

  void indexNeighbours() {
    const int n = problem_.nodes;
    before_.resize(n);
    after_.resize(n);
    accesses_.resize(n);
    stores_.resize(n);
    requirements_.resize(n);
    partners_.resize(n);
    close_.resize(n);
    for (const PartitionEdge& e : problem_.edges) {
      before_[e.to].push_back(e.from);
      after_[e.from].push_back(e.to);
    }
    const auto meet = [&](const std::vector<int>& nodes) {
      constexpr size_t kMany = 64;  // those who share what everybody reads are no closer than others
      if (nodes.size() > kMany) return;
      for (int u : nodes) {
        for (int v : nodes) {
          if (u != v && pairs_.canShare(u, v)) close_[u].push_back(v);
        }
      }
    };
    for (size_t k = 0; k < problem_.accesses.size(); ++k) {
      std::vector<int> nodes = problem_.accesses[k].readers;
      if (problem_.accesses[k].producer >= 0) nodes.push_back(problem_.accesses[k].producer);
      sortUnique(nodes);
      for (int v : nodes) accesses_[v].push_back(static_cast<int>(k));
      meet(nodes);
    }
    for (size_t k = 0; k < problem_.stores.size(); ++k) {
      std::vector<int> nodes = problem_.stores[k].readers;
      nodes.push_back(problem_.stores[k].producer);
      sortUnique(nodes);
      for (int v : nodes) stores_[v].push_back(static_cast<int>(k));
      meet(nodes);
    }
    for (const Requirement& r : problem_.requirements) {
      for (int v : {r.a, r.b, r.third}) {
        if (requirements_[v].empty() || requirements_[v].back() != &r) requirements_[v].push_back(&r);
      }
    }
    for (int v = 0; v < n; ++v) {
      sortUnique(close_[v]);
      for (int u = 0; u < n; ++u) {
        if (u != v && pairs_.canShare(u, v)) partners_[v].push_back(u);
      }
      if (!partners_[v].empty()) movable_.push_back(v);
    }
    stamp_.assign(n, 0);
  }

  void load(const Assignment& start) {
    const int n = problem_.nodes;
    cluster_ = normalised(start);
    members_.assign(n, {});
    place_.assign(n, 0);
    weight_.assign(n, 0);
    for (int v = 0; v < n; ++v) {
      members_[cluster_[v]].push_back(v);
      weight_[cluster_[v]] += problem_.weight[v];
    }
    const std::vector<int> order = clusterOrder(problem_, cluster_).value();
    for (size_t k = 0; k < order.size(); ++k) place_[order[k]] = static_cast<double>(k);
    free_.clear();
    for (int c = n - 1; c >= static_cast<int>(order.size()); --c) free_.push_back(c);
    accessCost_.clear();
    storeCost_.clear();
    for (size_t k = 0; k < problem_.accesses.size(); ++k) accessCost_.push_back(costOfAccess(k));
    for (size_t k = 0; k < problem_.stores.size(); ++k) storeCost_.push_back(costOfStore(k));
    best_ = cluster_;
    above_ = 0;
  }

  /// Of launches and loads: what keeps clusters apart or together at first.
  double meanCost() const {
    std::vector<double> costs;
    for (int v : movable_) costs.push_back(problem_.launch[v]);
    for (const Access& a : problem_.accesses) costs.push_back(a.cost);
    if (costs.empty()) return 1;
    return std::max(1e-9,
                    std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size()));
  }

  /// Of those that matter.
  double medianOfLoads() const {
    constexpr double kLeast = 1e-3;  // of the greatest
    std::vector<double> costs;
    double greatest = 0;
    for (const Access& a : problem_.accesses) greatest = std::max(greatest, a.cost);
    for (const Access& a : problem_.accesses)
      if (a.cost > kLeast * greatest) costs.push_back(a.cost);
    if (costs.empty()) return meanCost();
    const auto middle = costs.begin() + static_cast<int64_t>(costs.size() / 2);
    std::nth_element(costs.begin(), middle, costs.end());
    return *middle;
  }

  int number(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  double fraction() { return static_cast<double>(random_()) / 4294967296.0; }
  bool accepted(double change, double temperature) {
    return change <= 0 || fraction() < std::exp(-change / temperature);
  }

  // ---- price ----

  double costOfAccess(size_t k) {
    const Access& a = problem_.accesses[k];
    ++now_;
    steps_ += static_cast<int64_t>(a.readers.size()) + 4;
    if (a.producer >= 0) stamp_[cluster_[a.producer]] = now_;
    int loads = 0;
    for (int r : a.readers) {
      if (stamp_[cluster_[r]] == now_) continue;
      stamp_[cluster_[r]] = now_;
      ++loads;
    }
    return loads * a.cost;
  }
  double costOfStore(size_t k) const {
    const Store& s = problem_.stores[k];
    const int home = cluster_[s.producer];
    const bool stored = s.outlives || std::any_of(s.readers.begin(), s.readers.end(),
                                                  [&](int r) { return cluster_[r] != home; });
    return stored ? s.cost : 0;
  }

  /// The change of cost if all of `nodes`, members of one cluster, went to `to`.
  double priceOfMove(const std::vector<int>& nodes, int to) {
    const int home = cluster_[nodes[0]];
    const bool vanishes = nodes.size() == members_[home].size();
    double change =
        (members_[to].empty() ? problem_.launch[nodes[0]] : 0) - (vanishes ? problem_.launch[nodes[0]] : 0);
    touchedAccesses_.clear();
    touchedStores_.clear();
    for (int v : nodes) {
      touchedAccesses_.insert(touchedAccesses_.end(), accesses_[v].begin(), accesses_[v].end());
      touchedStores_.insert(touchedStores_.end(), stores_[v].begin(), stores_[v].end());
      cluster_[v] = to;
    }
    if (nodes.size() > 1) {
      sortUnique(touchedAccesses_);
      sortUnique(touchedStores_);
    }
    newAccessCost_.clear();
    newStoreCost_.clear();
    for (int k : touchedAccesses_) {
      newAccessCost_.push_back(costOfAccess(k));
      change += newAccessCost_.back() - accessCost_[k];
    }
    for (int k : touchedStores_) {
      newStoreCost_.push_back(costOfStore(k));
      change += newStoreCost_.back() - storeCost_[k];
    }
    for (int v : nodes) cluster_[v] = home;
    return change;
  }

  /// Makes the move that was priced last.
  void move(const std::vector<int>& nodes, int to, double change) {
    const int home = cluster_[nodes[0]];
    for (int v : nodes) {
      cluster_[v] = to;
      members_[to].push_back(v);
      weight_[home] -= problem_.weight[v];
      weight_[to] += problem_.weight[v];
      auto& left = members_[home];
      *std::find(left.begin(), left.end(), v) = left.back();
      left.pop_back();
    }
    if (members_[home].empty()) {
      weight_[home] = 0;
      free_.push_back(home);
    }
    for (size_t k = 0; k < touchedAccesses_.size(); ++k) accessCost_[touchedAccesses_[k]] = newAccessCost_[k];
    for (size_t k = 0; k < touchedStores_.size(); ++k) storeCost_[touchedStores_[k]] = newStoreCost_[k];
    above_ += change;
    if (above_ < -1e-9) {  // better than the best so far
      best_ = cluster_;
      above_ = 0;
    }
  }

  // ---- legality ----

  struct Window {
    double low, high;
  };
  /// The places that the edges leave to `nodes`, when they leave their cluster.
  Window window(const std::vector<int>& nodes) const {
    Window w{-1, static_cast<double>(problem_.nodes)};
    const int home = cluster_[nodes[0]];
    const bool all = nodes.size() == members_[home].size();
    const auto stays = [&](int v) { return cluster_[v] != home || !all; };
    for (int v : nodes) {
      for (int u : before_[v]) {
        if (stays(u)) w.low = std::max(w.low, place_[cluster_[u]]);
      }
      for (int u : after_[v]) {
        if (stays(u)) w.high = std::min(w.high, place_[cluster_[u]]);
      }
    }
    return w;
  }

  bool fits(const std::vector<int>& nodes, int to) {
    double weight = weight_[to];
    for (int v : nodes) {
      weight += problem_.weight[v];
      for (int u : members_[to]) {
        ++steps_;
        if (!pairs_.canShare(u, v)) return false;
      }
    }
    if (weight > problem_.budget && members_[to].size() + nodes.size() > 1) return false;
    const int home = cluster_[nodes[0]];
    for (int v : nodes) cluster_[v] = to;
    const bool met = std::all_of(nodes.begin(), nodes.end(), [&](int v) {
      return std::all_of(requirements_[v].begin(), requirements_[v].end(), [&](const Requirement* r) {
        return cluster_[r->a] != cluster_[r->b] || cluster_[r->third] == cluster_[r->a];
      });
    });
    for (int v : nodes) cluster_[v] = home;
    return met;
  }

  // ---- moves ----

  void moveNode(double temperature) {
    if (movable_.empty()) return;
    const int v = movable_[number(0, static_cast<int>(movable_.size()) - 1)];
    const int home = cluster_[v];
    one_.assign(1, v);
    const std::vector<int>& from = close_[v].empty() || number(0, 3) == 0 ? partners_[v] : close_[v];
    const bool alone = number(0, 9) == 0;
    const int to = alone ? (free_.empty() ? home : free_.back())
                         : cluster_[from[number(0, static_cast<int>(from.size()) - 1)]];
    if (to == home || (alone && members_[home].size() == 1)) return;
    const Window w = window(one_);
    if (alone) {
      if (w.low >= w.high) return;
      place_[to] = w.low + (w.high - w.low) * (0.01 + 0.98 * fraction());
    } else if (place_[to] < w.low || place_[to] > w.high) {
      return;
    }
    if (!fits(one_, to)) return;
    const double change = priceOfMove(one_, to);
    if (!accepted(change, temperature)) return;
    if (alone) free_.pop_back();
    move(one_, to, change);
  }

  void mergeClusters(double temperature) {
    if (movable_.empty()) return;
    const int v = movable_[number(0, static_cast<int>(movable_.size()) - 1)];
    const std::vector<int>& from = close_[v].empty() || number(0, 1) == 0 ? partners_[v] : close_[v];
    const int to = cluster_[from[number(0, static_cast<int>(from.size()) - 1)]];
    if (to == cluster_[v]) return;
    const std::vector<int> nodes = members_[cluster_[v]];
    const Window w = window(nodes);
    if (place_[to] < w.low || place_[to] > w.high || !fits(nodes, to)) return;
    const double change = priceOfMove(nodes, to);
    if (accepted(change, temperature)) move(nodes, to, change);
  }

  /// Another place for a cluster: costs nothing, and opens ways for others.
  void shiftCluster() {
    const int c = cluster_[number(0, problem_.nodes - 1)];
    const Window w = window(members_[c]);
    if (w.low < w.high) place_[c] = w.low + (w.high - w.low) * (0.01 + 0.98 * fraction());
  }

  void renumberPlaces() {
    std::vector<std::pair<double, int>> order;
    for (int c = 0; c < problem_.nodes; ++c) {
      if (!members_[c].empty()) order.emplace_back(place_[c], c);
    }
    std::sort(order.begin(), order.end());
    for (size_t k = 0; k < order.size(); ++k) place_[order[k].second] = static_cast<double>(k);
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  std::mt19937 random_;
  std::vector<std::vector<int>> before_, after_, accesses_, stores_;  ///< by node
  std::vector<std::vector<const Requirement*>> requirements_;
  std::vector<std::vector<int>> partners_,
      close_;  ///< who may share; who may share and has an array in common
  std::vector<int> movable_;
  Assignment cluster_, best_;
  std::vector<std::vector<int>> members_;
  std::vector<double> place_, weight_;  ///< by cluster
  std::vector<int> free_;               ///< numbers without a cluster
  std::vector<double> accessCost_, storeCost_;
  double above_ = 0;  ///< cost of the current partition less that of the best
  std::vector<int> touchedAccesses_, touchedStores_, one_;
  std::vector<double> newAccessCost_, newStoreCost_;
  std::vector<int64_t> stamp_;
  int64_t now_ = 0;
  int64_t steps_ = 0;  ///< readers and members looked at since time was counted
};

}  // namespace

Assignment anneal(const PartitionProblem& problem, const PairTable& pairs, const Assignment& start,
                  double seconds) {
  if (problem.nodes == 0) return start;
  const Assignment found = Annealer(problem, pairs, start).run(seconds);
  const bool better = costOf(problem, found) < costOf(problem, normalised(start));
  return better && !illegal(problem, found) ? found : normalised(start);
}

}  // namespace kelpie::fusion

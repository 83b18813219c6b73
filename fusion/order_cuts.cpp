#include "fusion/order_cuts.h"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

namespace kelpie::fusion {
namespace {

constexpr double kTiny = 1e-7;

/// Shortest cycles through the states (node, whether the edge that pays has been chosen).
class Separation {
 public:
  Separation(const std::vector<std::vector<int>>& out, const PairTable& pairs,
             const std::vector<Together>& together, double leastViolation)
      : out_(out),
        pairs_(pairs),
        limit_(1 - leastViolation),
        nodes_(static_cast<int>(out.size())),
        partners_(nodes_) {
    for (const Together& t : together) {
      if (t.share < kTiny) continue;
      partners_[t.a].emplace_back(t.b, t.share);
      partners_[t.b].emplace_back(t.a, t.share);
    }
    for (auto& partners : partners_) std::sort(partners.begin(), partners.end());
    cost_.resize(2 * static_cast<size_t>(nodes_));
    via_.resize(cost_.size());
  }

  std::vector<OrderCut> run() {
    std::vector<OrderCut> cuts = crossings();
    std::set<std::vector<int>> known;
    for (int start = 0; start < nodes_; ++start) {
      if (partners_[start].empty()) continue;
      const std::vector<int> cycle = shortestCycle(start);
      if (cycle.empty()) continue;
      std::vector<int> key = cycle;
      std::sort(key.begin(), key.end());
      if (known.insert(std::move(key)).second) {
        cuts.push_back(inequality(cycle));
        cuts.back().violation = 1 - cost_[cycle.back()];
      }
    }
    return cuts;
  }

 private:
  // A state is 2 * node + chosen.
  /// The states of a cycle from (start, not chosen) to (start, chosen), if it costs less than 1.
  std::vector<int> shortestCycle(int start) {
    std::fill(cost_.begin(), cost_.end(), limit_);
    using Entry = std::pair<double, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> work;
    const auto relax = [&](int from, int to, double cost) {
      if (cost >= cost_[to] - kTiny) return;
      cost_[to] = cost;
      via_[to] = from;
      work.emplace(cost, to);
    };
    cost_[2 * start] = 0;
    work.emplace(0, 2 * start);
    while (!work.empty()) {
      const auto [cost, state] = work.top();
      work.pop();
      if (cost > cost_[state]) continue;
      if (state == 2 * start + 1) break;
      const int v = state / 2, chosen = state % 2;
      for (const auto& [w, share] : partners_[v])
        relax(state, 2 * w + chosen, cost + std::max(0.0, 1 - share));
      for (int w : out_[v]) {
        relax(state, 2 * w + chosen, cost);
        if (!chosen) relax(state, 2 * w + 1, cost + together(v, w));
      }
    }
    const int last = 2 * start + 1;
    if (cost_[last] >= limit_) return {};
    std::vector<int> cycle{last};
    while (cycle.back() != 2 * start) cycle.push_back(via_[cycle.back()]);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }

  double together(int u, int v) const {
    const auto it = std::lower_bound(partners_[u].begin(), partners_[u].end(), std::pair(v, -1.0));
    return it != partners_[u].end() && it->first == v ? it->second : 0;
  }

  /// Whether two pairs cannot both share: a path leads from one to the other, and one back.
  bool cross(std::pair<int, int> p, std::pair<int, int> q) const {
    if (pairs_.canShare(p.first, q.first) && pairs_.canShare(p.first, q.second) &&
        pairs_.canShare(p.second, q.first) && pairs_.canShare(p.second, q.second)) {
      return false;
    }
    const auto reaches = [&](int u, int v) { return u == v || pairs_.reaches(u, v); };
    for (int k = 0; k < 4; ++k) {
      if (reaches(p.first, q.first) && reaches(q.second, p.second)) return true;
      std::swap(p.first, p.second);
      if (k == 1) std::swap(q.first, q.second);
    }
    return false;
  }

  /// Of pairs that all cross each other only one can share.
  std::vector<OrderCut> crossings() const {
    constexpr double kLeastShare = 0.05;
    constexpr size_t kMostPairs = 2000;
    struct Pair {
      double share;
      int a, b;
    };
    std::vector<Pair> all;
    for (int a = 0; a < nodes_; ++a) {
      for (const auto& [b, share] : partners_[a]) {
        if (a < b && share > kLeastShare) all.push_back({share, a, b});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Pair& x, const Pair& y) { return x.share > y.share; });
    if (all.size() > kMostPairs) all.resize(kMostPairs);
    std::vector<OrderCut> cuts;
    std::vector<bool> used(all.size(), false);
    for (size_t k = 0; k < all.size(); ++k) {
      if (used[k]) continue;
      std::vector<size_t> clique{k};
      double total = all[k].share;
      for (size_t j = 0; j < all.size(); ++j) {
        if (j == k) continue;
        const bool crossesAll = std::all_of(clique.begin(), clique.end(), [&](size_t i) {
          return cross({all[i].a, all[i].b}, {all[j].a, all[j].b});
        });
        if (!crossesAll) continue;
        clique.push_back(j);
        total += all[j].share;
      }
      if (total <= 2 - limit_) continue;
      OrderCut cut;
      cut.upper = 1;
      cut.violation = total - 1;
      for (size_t i : clique) {
        cut.pairs.emplace_back(all[i].a, all[i].b);
        used[i] = true;
      }
      cuts.push_back(std::move(cut));
    }
    return cuts;
  }

  bool isEdge(int u, int v) const { return std::binary_search(out_[u].begin(), out_[u].end(), v); }

  OrderCut inequality(const std::vector<int>& cycle) const {
    OrderCut cut;
    cut.upper = -1;
    for (size_t k = 0; k + 1 < cycle.size(); ++k) {
      const int u = cycle[k] / 2, v = cycle[k + 1] / 2;
      if (cycle[k] % 2 != cycle[k + 1] % 2) {
        cut.unless = {u, v};
      } else if (!isEdge(u, v)) {
        cut.upper += 1;
        cut.pairs.emplace_back(u, v);
      }
    }
    return cut;
  }

  const std::vector<std::vector<int>>& out_;
  const PairTable& pairs_;
  const double limit_;  ///< what a cycle must cost less than
  const int nodes_;
  std::vector<std::vector<std::pair<int, double>>> partners_;  ///< together(v, w), by w
  std::vector<double> cost_;
  std::vector<int> via_;
};

}  // namespace

OrderCuts::OrderCuts(const PartitionProblem& problem, const PairTable& pairs)
    : nodes_(problem.nodes), pairs_(&pairs), out_(problem.nodes) {
  for (const PartitionEdge& e : problem.edges) out_[e.from].push_back(e.to);
  BitMatrix reach(nodes_), reachedBy(nodes_), parts(nodes_), partedBy(nodes_);
  for (int u = 0; u < nodes_; ++u) {
    for (int v = 0; v < nodes_; ++v) {
      if (!pairs.reaches(u, v)) continue;
      reach.set(u, v);
      reachedBy.set(v, u);
      if (pairs.canShare(u, v)) continue;
      parts.set(u, v);
      partedBy.set(v, u);
    }
  }
  for (int u = 0; u < nodes_; ++u) {
    for (int v = 0; v < nodes_; ++v) {  // longer paths that part their ends have shorter ones inside
      if (parts.get(u, v) && !parts.intersects(u, reachedBy, v) && !reach.intersects(u, partedBy, v))
        out_[u].push_back(v);
    }
  }
  for (std::vector<int>& targets : out_) {
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  }
}

std::vector<OrderCut> OrderCuts::violated(const std::vector<Together>& together,
                                          double leastViolation) const {
  return Separation(out_, *pairs_, together, leastViolation).run();
}

}  // namespace kelpie::fusion

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
             const std::function<double(int, int)>& value, double leastViolation)
      : out_(out),
        pairs_(pairs),
        limit_(1 - leastViolation),
        nodes_(static_cast<int>(out.size())),
        in_(nodes_),
        top_(nodes_),
        partners_(nodes_) {
    std::vector<std::vector<std::pair<int, double>>> members(nodes_);
    for (int r = 0; r < nodes_; ++r) {
      top_[r] = value(r, r);
      if (top_[r] < kTiny) continue;
      for (int v = r; v < nodes_; ++v) {
        const double z = value(r, v);
        if (z < kTiny) continue;
        in_[v].emplace_back(r, z);
        members[r].emplace_back(v, z);
      }
    }
    std::vector<std::tuple<int, int, double>> shares;
    for (int r = 0; r < nodes_; ++r) {
      for (const auto& [a, za] : members[r]) {
        for (const auto& [b, zb] : members[r]) {
          if (a != b && za + zb > top_[r] + kTiny) shares.emplace_back(a, b, za + zb - top_[r]);
        }
      }
    }
    std::sort(shares.begin(), shares.end());
    for (const auto& [a, b, share] : shares) {
      if (!partners_[a].empty() && partners_[a].back().first == b) {
        partners_[a].back().second += share;
      } else {
        partners_[a].emplace_back(b, share);
      }
    }
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
      if (known.insert(std::move(key)).second) cuts.push_back(inequality(cycle));
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
        if (!chosen) relax(state, 2 * w + 1, cost + atMost(v, w));
      }
    }
    const int last = 2 * start + 1;
    if (cost_[last] >= limit_) return {};
    std::vector<int> cycle{last};
    while (cycle.back() != 2 * start) cycle.push_back(via_[cycle.back()]);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }

  /// together(u, v) from above.
  double atMost(int u, int v) const {
    double total = 0;
    forEachOf(u, v, [&](int, double zu, double zv) { total += std::min(zu, zv); });
    return total;
  }

  /// Calls f(r, z[r,u], z[r,v]) for each representative r of u or v.
  template <typename F>
  void forEachOf(int u, int v, const F& f) const {
    auto a = in_[u].begin(), b = in_[v].begin();
    while (a != in_[u].end() || b != in_[v].end()) {
      if (b == in_[v].end() || (a != in_[u].end() && a->first < b->first)) {
        f(a->first, a->second, 0.0);
        ++a;
      } else if (a == in_[u].end() || b->first < a->first) {
        f(b->first, 0.0, b->second);
        ++b;
      } else {
        f(a->first, a->second, b->second);
        ++a;
        ++b;
      }
    }
  }

  /// Whether two pairs cannot both share: a path leads from one to the other, and one back.
  bool cross(std::pair<int, int> p, std::pair<int, int> q) const {
    const auto reaches = [&](int u, int v) { return u == v || pairs_.reaches(u, v); };
    for (int k = 0; k < 4; ++k) {
      if (reaches(p.first, q.first) && reaches(q.second, p.second) &&
          (!pairs_.canShare(p.first, q.first) || !pairs_.canShare(q.second, p.second))) {
        return true;
      }
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
      for (size_t i : clique) {
        addTogether(cut, all[i].a, all[i].b);
        used[i] = true;
      }
      cuts.push_back(std::move(cut));
    }
    return cuts;
  }

  /// together(u, v) from below, on the left.
  void addTogether(OrderCut& cut, int u, int v) const {
    forEachOf(u, v, [&](int r, double zu, double zv) {
      if (zu + zv <= top_[r] + kTiny) return;
      cut.terms.push_back({r, u, 1.0});
      cut.terms.push_back({r, v, 1.0});
      cut.terms.push_back({r, r, -1.0});
    });
  }

  bool isEdge(int u, int v) const { return std::binary_search(out_[u].begin(), out_[u].end(), v); }

  OrderCut inequality(const std::vector<int>& cycle) const {
    OrderCut cut;
    cut.upper = -1;
    for (size_t k = 0; k + 1 < cycle.size(); ++k) {
      const int u = cycle[k] / 2, v = cycle[k + 1] / 2;
      if (cycle[k] % 2 != cycle[k + 1] % 2) {
        for (int r = 0; r <= u; ++r) {
          const bool lessInV = valueOf(r, v) < valueOf(r, u);
          if (lessInV && r <= v) cut.terms.push_back({r, v, -1.0});
          if (!lessInV) cut.terms.push_back({r, u, -1.0});
        }
      } else if (!isEdge(u, v)) {
        cut.upper += 1;
        addTogether(cut, u, v);
      }
    }
    return cut;
  }

  double valueOf(int r, int v) const {
    const auto it = std::lower_bound(in_[v].begin(), in_[v].end(), std::pair(r, -1.0));
    return it != in_[v].end() && it->first == r ? it->second : 0;
  }

  const std::vector<std::vector<int>>& out_;
  const PairTable& pairs_;
  const double limit_;  ///< what a cycle must cost less than
  const int nodes_;
  std::vector<std::vector<std::pair<int, double>>> in_;        ///< z[r,v] of each v, by r
  std::vector<double> top_;                                    ///< z[r,r]
  std::vector<std::vector<std::pair<int, double>>> partners_;  ///< together(v, w) from below
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

std::vector<OrderCut> OrderCuts::violated(const std::function<double(int, int)>& value,
                                          double leastViolation) const {
  return Separation(out_, *pairs_, value, leastViolation).run();
}

}  // namespace kelpie::fusion

#include "fusion/order_cuts.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr double kTiny = 1e-7;
constexpr int64_t kNanosecondsOfAStep = 20;

/// Shortest cycles through the states (node, whether the step that pays has been chosen).
class Separation {
 public:
  Separation(const std::vector<std::vector<int>>& out, const PairTable& pairs,
             const std::vector<ClusterShare>& clusters, double leastViolation)
      : out_(out),
        pairs_(pairs),
        limit_(1 - leastViolation),
        nodes_(static_cast<int>(out.size())),
        partners_(nodes_),
        steps_(nodes_) {
    for (const Together& t : togetherIn(clusters)) {
      partners_[t.a].emplace_back(t.b, t.share);
      partners_[t.b].emplace_back(t.a, t.share);
    }
    for (auto& partners : partners_) std::sort(partners.begin(), partners.end());
    addStars(clusters);
    for (int v = 0; v < nodes_; ++v) {
      for (int w : out_[v]) steps_[v].push_back({w, 0, together(v, w), -1});
    }
    cost_.resize(2 * static_cast<size_t>(nodes_));
    via_.resize(cost_.size());
  }

  std::vector<OrderCut> run() {
    WorkTime::spend(kNanosecondsOfAStep * (int64_t{nodes_} * nodes_ + looks_));
    looks_ = 0;
    std::vector<OrderCut> cuts = crossings();
    std::set<std::vector<int>> known;
    for (int start = 0; start < nodes_; ++start) {
      if (partners_[start].empty()) continue;
      const std::vector<Via> cycle = shortestCycle(start);
      if (cycle.empty()) continue;
      std::vector<int> key;
      for (const Via& via : cycle) key.push_back(via.from);
      std::sort(key.begin(), key.end());
      if (known.insert(std::move(key)).second) {
        cuts.push_back(inequality(cycle));
        cuts.back().violation = 1 - cost_[2 * start + 1];
      }
    }
    WorkTime::spend(kNanosecondsOfAStep * looks_);
    return cuts;
  }

 private:
  static constexpr double kLeastShare = 0.05;  ///< of a star, or of a pair that crosses others

  /// From a node to one whose number is not less: along an edge, or by a star that shares.
  struct Step {
    int to;
    double cost;      ///< what the star lacks
    double together;  ///< of both ends
    int star;         ///< number; -1: an edge
  };
  struct Via {
    int from = -1;  ///< a state: 2 * node + chosen
    const Step* step = nullptr;
  };

  /// Stars of the clusters, where they say more than a smaller star and an edge.
  void addStars(const std::vector<ClusterShare>& clusters) {
    // ahead[a][b]: how much a shares with some node before b or with b; behind[b][a]: b with a or behind a.
    std::vector<std::vector<double>> ahead(nodes_, std::vector<double>(nodes_, 0.0)), behind = ahead;
    for (const ClusterShare& c : clusters) {
      if (c.members.size() < 2) continue;
      looks_ += int64_t{nodes_} * static_cast<int64_t>(c.members.size());
      for (int v = 0; v < nodes_; ++v) {
        bool hasBefore = false, hasBehind = false;
        for (int m : c.members) {
          hasBefore |= m == v || pairs_.reaches(m, v);
          hasBehind |= m == v || pairs_.reaches(v, m);
        }
        for (int m : c.members) {
          if (hasBefore) ahead[m][v] += c.share;
          if (hasBehind) behind[m][v] += c.share;
        }
      }
    }
    std::vector<std::vector<int>> in(nodes_);
    for (int v = 0; v < nodes_; ++v) {
      for (int w : out_[v]) in[w].push_back(v);
    }
    const auto known = [](const std::vector<double>& shares, const std::vector<int>& smaller, double share) {
      return std::any_of(smaller.begin(), smaller.end(), [&](int v) { return shares[v] >= share - kTiny; });
    };
    for (int a = 0; a < nodes_; ++a) {
      for (int b = 0; b < nodes_; ++b) {
        if (a == b || pairs_.reaches(a, b)) continue;
        const double forward = ahead[a][b], backward = behind[b][a];
        const bool useForward = forward >= kLeastShare && !known(ahead[a], in[b], forward);
        const bool useBackward = backward >= kLeastShare && !known(behind[b], out_[a], backward);
        if (useForward && forward >= backward - kTiny) {
          addStar(a, b, a, forward, [&](int v) { return v == b || pairs_.reaches(v, b); });
        } else if (useBackward && backward >= forward - kTiny) {
          addStar(a, b, b, backward, [&](int v) { return v == a || pairs_.reaches(a, v); });
        }
      }
    }
  }

  template <typename IsOther>
  void addStar(int from, int to, int node, double share, const IsOther& isOther) {
    OrderCut::Star star{node, {}};
    for (int v = 0; v < nodes_; ++v) {
      if (v != node && isOther(v) && pairs_.canShare(node, v)) star.others.push_back(v);
    }
    steps_[from].push_back(
        {to, std::max(0.0, 1 - share), together(from, to), static_cast<int>(stars_.size())});
    stars_.push_back(std::move(star));
  }

  /// The steps of a cycle from (start, not chosen) to (start, chosen), if it costs less than 1.
  std::vector<Via> shortestCycle(int start) {
    std::fill(cost_.begin(), cost_.end(), limit_);
    using Entry = std::pair<double, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> work;
    const auto relax = [&](const Via& via, int to, double cost) {
      if (cost >= cost_[to] - kTiny) return;
      cost_[to] = cost;
      via_[to] = via;
      work.emplace(cost, to);
    };
    cost_[size_t{2} * start] = 0;
    work.emplace(0, 2 * start);
    while (!work.empty()) {
      const auto [cost, state] = work.top();
      work.pop();
      if (cost > cost_[state]) continue;
      if (state == 2 * start + 1) break;
      const int chosen = state % 2;
      looks_ += 2 * static_cast<int64_t>(steps_[state / 2].size());
      for (const Step& step : steps_[state / 2]) {
        relax({state, &step}, 2 * step.to + chosen, cost + step.cost);
        if (!chosen) relax({state, &step}, 2 * step.to + 1, cost + step.cost + step.together);
      }
    }
    const int last = 2 * start + 1;
    if (cost_[last] >= limit_) return {};
    std::vector<Via> cycle;
    for (int state = last; state != 2 * start; state = cycle.back().from) cycle.push_back(via_[state]);
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
    constexpr size_t kMostPairs = 600;
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

  OrderCut inequality(const std::vector<Via>& cycle) const {
    OrderCut cut;
    cut.upper = -1;
    for (size_t k = 0; k < cycle.size(); ++k) {
      const auto& [state, step] = cycle[k];
      const int chosenNow = state % 2, chosenThen = k + 1 < cycle.size() ? cycle[k + 1].from % 2 : 1;
      if (chosenNow != chosenThen && pairs_.canShare(state / 2, step->to)) cut.unless = {state / 2, step->to};
      if (step->star < 0) continue;
      cut.upper += 1;
      const OrderCut::Star& star = stars_[static_cast<size_t>(step->star)];
      if (star.others.size() == 1) {
        cut.pairs.emplace_back(star.node, star.others[0]);
      } else {
        cut.stars.push_back(star);
      }
    }
    return cut;
  }

  const std::vector<std::vector<int>>& out_;
  const PairTable& pairs_;
  const double limit_;  ///< what a cycle must cost less than
  const int nodes_;
  std::vector<std::vector<std::pair<int, double>>> partners_;  ///< together(v, w), by w
  std::vector<std::vector<Step>> steps_;                       ///< by the node they start from
  std::vector<OrderCut::Star> stars_;
  std::vector<double> cost_;  ///< by state
  std::vector<Via> via_;      ///< by state
  int64_t looks_ = 0;         ///< whose time is not counted yet
};

}  // namespace

std::vector<Together> togetherIn(const std::vector<ClusterShare>& clusters) {
  std::map<std::pair<int, int>, double> shares;
  for (const auto& [members, share] : clusters) {
    for (size_t i = 0; i < members.size(); ++i) {
      for (size_t j = i + 1; j < members.size(); ++j) shares[{members[i], members[j]}] += share;
    }
  }
  std::vector<Together> result;
  for (const auto& [pair, share] : shares) result.push_back({pair.first, pair.second, share});
  return result;
}

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

std::vector<OrderCut> OrderCuts::violated(const std::vector<ClusterShare>& clusters,
                                          double leastViolation) const {
  return Separation(out_, *pairs_, clusters, leastViolation).run();
}

}  // namespace kelpie::fusion

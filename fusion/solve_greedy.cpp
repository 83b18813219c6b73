#include "fusion/solve_greedy.h"

#include <algorithm>
#include <map>
#include <set>

namespace kelpie::fusion {
namespace {

/// A legal partition under change, with what is needed to price and to check a change locally.
class Clustering {
 public:
  Clustering(const PartitionProblem& problem, const PairTable& pairs, const Assignment& cluster)
      : problem_(problem), pairs_(pairs), cluster_(normalised(cluster)), members_(problem.nodes + 1) {
    out_.resize(problem.nodes);
    accessesOf_.resize(problem.nodes);
    storesOf_.resize(problem.nodes);
    requirementsOf_.resize(problem.nodes);
    for (const PartitionEdge& e : problem.edges) out_[e.from].push_back(e.to);
    for (const Access& a : problem.accesses) {
      if (a.producer >= 0) accessesOf_[a.producer].push_back(&a);
      for (int r : a.readers) accessesOf_[r].push_back(&a);
    }
    for (const Store& s : problem.stores) {
      storesOf_[s.producer].push_back(&s);
      for (int r : s.readers) storesOf_[r].push_back(&s);
    }
    for (const Requirement& r : problem.requirements) {
      requirementsOf_[r.a].push_back(&r);
      if (r.b != r.a) requirementsOf_[r.b].push_back(&r);
    }
    for (int v = 0; v < problem.nodes; ++v) members_[cluster_[v]].push_back(v);
  }

  const Assignment& cluster() const { return cluster_; }
  const std::vector<int>& members(int c) const { return members_[c]; }
  int clusterCount() const { return static_cast<int>(members_.size()); }
  /// What merging cluster b into a saves: a launch, loads that both make, loads and stores of what passes
  /// between.
  double mergeSaving(int a, int b) const {
    double saving = std::min(launchOf(a), launchOf(b));
    const auto& small = members_[a].size() < members_[b].size() ? members_[a] : members_[b];
    std::vector<const Access*> accesses;
    std::vector<const Store*> stores;
    for (int v : small) {
      accesses.insert(accesses.end(), accessesOf_[v].begin(), accessesOf_[v].end());
      stores.insert(stores.end(), storesOf_[v].begin(), storesOf_[v].end());
    }
    unique(accesses);
    unique(stores);
    for (const Access* access : accesses) {
      const int home = access->producer < 0 ? -1 : cluster_[access->producer];
      bool inA = false, inB = false;
      for (int r : access->readers) {
        inA |= cluster_[r] == a;
        inB |= cluster_[r] == b;
      }
      const int before = (inA && home != a) + (inB && home != b);
      const int after = (inA || inB) && home != a && home != b;
      saving += access->cost * (before - after);
    }
    for (const Store* store : stores) {
      const int home = cluster_[store->producer];
      if (store->outlives || (home != a && home != b)) continue;
      bool before = false, after = false;
      for (int r : store->readers) {
        before |= cluster_[r] != home;
        after |= cluster_[r] != a && cluster_[r] != b;
      }
      saving += store->cost * (before - after);
    }
    return saving;
  }

  /// Whether no pair of nodes keeps the clusters apart for good.
  bool mayShare(int a, int b) const {
    for (int u : members_[a]) {
      for (int v : members_[b]) {
        if (!pairs_.canShare(u, v)) return false;
      }
    }
    return true;
  }

  bool mayMerge(int a, int b) const {
    if (!mayShare(a, b)) return false;
    double weight = 0;
    for (int c : {a, b}) {
      for (int v : members_[c]) weight += problem_.weight[v];
    }
    if (weight > problem_.budget) return false;
    const auto inside = [&](int v) { return cluster_[v] == a || cluster_[v] == b; };
    for (int c : {a, b}) {
      for (int v : members_[c]) {
        for (const Requirement* r : requirementsOf_[v]) {
          if (inside(r->a) && inside(r->b) && !inside(r->third)) return false;
        }
      }
    }
    return !pathThroughOthers(a, b) && !pathThroughOthers(b, a);
  }

  void merge(int a, int b) {
    for (int v : members_[b]) {
      cluster_[v] = a;
      members_[a].push_back(v);
    }
    members_[b].clear();
    std::sort(members_[a].begin(), members_[a].end());
  }

 private:
  template <typename T>
  static void unique(std::vector<T>& items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
  }

  double launchOf(int c) const {
    double launch = 0;
    for (int v : members_[c]) launch = std::max(launch, problem_.launch[v]);
    return launch;
  }

  /// Whether some path leads from cluster a through another cluster to cluster b.
  bool pathThroughOthers(int a, int b) const {
    std::vector<bool> seen(members_.size(), false);
    std::vector<int> work;
    const auto visit = [&](int c, bool start) {
      for (int v : members_[c]) {
        for (int w : out_[v]) {
          const int d = cluster_[w];
          if (seen[d] || d == a || d == c || (start && d == b)) continue;
          seen[d] = true;
          work.push_back(d);
        }
      }
    };
    visit(a, true);
    while (!work.empty()) {
      const int c = work.back();
      work.pop_back();
      if (c == b) return true;
      visit(c, false);
    }
    return false;
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  Assignment cluster_;
  std::vector<std::vector<int>> members_;
  std::vector<std::vector<int>> out_;
  std::vector<std::vector<const Access*>> accessesOf_;
  std::vector<std::vector<const Store*>> storesOf_;
  std::vector<std::vector<const Requirement*>> requirementsOf_;
};

constexpr double kTiny = 1e-9;
constexpr int kNodesMoved = 300;  ///< in larger problems moving single nodes takes too long for what it gives

void mergeGreedily(Clustering& clustering) {
  // Savings of all pairs; only those of the merged clusters change from one round to the next.
  const int n = clustering.clusterCount();
  std::map<std::pair<int, int>, double> savings;
  std::set<std::pair<double, std::pair<int, int>>> bySaving;  // negated; the greatest first
  const auto forget = [&](std::map<std::pair<int, int>, double>::iterator it) {
    bySaving.erase({-it->second, it->first});
    savings.erase(it);
  };
  const auto price = [&](int a, int b) {
    const std::pair<int, int> pair = std::minmax(a, b);
    const double saving = clustering.mayShare(a, b) ? clustering.mergeSaving(pair.first, pair.second) : 0;
    if (const auto it = savings.find(pair); it != savings.end()) forget(it);
    if (saving <= kTiny) return;
    savings[pair] = saving;
    bySaving.insert({-saving, pair});
  };
  for (int a = 0; a < n; ++a) {
    if (clustering.members(a).empty()) continue;
    for (int b = a + 1; b < n; ++b) {
      if (!clustering.members(b).empty()) price(a, b);
    }
  }
  // A merge that is illegal now can become legal later (its missing node joins): it waits until no other is
  // left, and is tried again if anything has changed.
  std::vector<std::pair<int, int>> waiting;
  bool changed = false;
  for (;;) {
    if (bySaving.empty()) {
      if (!changed) return;
      for (const auto& pair : waiting) {
        if (const auto it = savings.find(pair); it != savings.end()) bySaving.insert({-it->second, pair});
      }
      waiting.clear();
      changed = false;
      continue;
    }
    const auto [a, b] = bySaving.begin()->second;
    if (!clustering.mayMerge(a, b)) {
      waiting.emplace_back(a, b);
      bySaving.erase(bySaving.begin());
      continue;
    }
    clustering.merge(a, b);
    changed = true;
    for (int c = 0; c < n; ++c) {
      if (const auto it = savings.find(std::minmax(b, c)); it != savings.end()) forget(it);
    }
    for (int c = 0; c < n; ++c) {
      if (c != a && !clustering.members(c).empty()) price(a, c);
    }
  }
}

}  // namespace

Assignment solveGreedy(const PartitionProblem& problem, const PairTable& pairs) {
  return mergeGreedily(problem, pairs, separate(problem.nodes));
}

Assignment mergeGreedily(const PartitionProblem& problem, const PairTable& pairs, const Assignment& start) {
  Clustering clustering(problem, pairs, start);
  mergeGreedily(clustering);
  return normalised(clustering.cluster());
}

Assignment solveAlong(const PartitionProblem& problem, const PairTable& pairs,
                      std::vector<Together> together) {
  std::stable_sort(together.begin(), together.end(),
                   [](const Together& a, const Together& b) { return a.share > b.share; });
  Clustering clustering(problem, pairs, separate(problem.nodes));
  for (const Together& t : together) {
    const int a = clustering.cluster()[t.a], b = clustering.cluster()[t.b];
    if (a != b && clustering.mayMerge(a, b)) clustering.merge(a, b);
  }
  return improve(problem, pairs, normalised(clustering.cluster()));
}

Assignment solveDelayed(const PartitionProblem& problem, const PairTable& pairs,
                        const std::vector<bool>& elementwise) {
  Clustering clustering(problem, pairs, separate(problem.nodes));
  std::vector<std::vector<const PartitionEdge*>> out(problem.nodes);
  for (const PartitionEdge& e : problem.edges) out[e.from].push_back(&e);
  std::vector<bool> stored(problem.nodes, false);
  for (const Store& s : problem.stores) {
    if (s.outlives) stored[s.producer] = true;
  }
  for (int v = problem.nodes - 1; v >= 0; --v) {
    if (!elementwise[v] || stored[v] || out[v].empty()) continue;
    const int reader = out[v].front()->to;
    const bool single = std::all_of(out[v].begin(), out[v].end(),
                                    [&](const PartitionEdge* e) { return e->fusible && e->to == reader; });
    const int a = clustering.cluster()[reader], b = clustering.cluster()[v];
    if (single && a != b && clustering.mayMerge(a, b)) clustering.merge(a, b);
  }
  return normalised(clustering.cluster());
}

Assignment improve(const PartitionProblem& problem, const PairTable& pairs, Assignment cluster) {
  double cost = costOf(problem, normalised(cluster));
  for (bool better = true; better;) {
    better = false;
    Clustering clustering(problem, pairs, cluster);
    mergeGreedily(clustering);
    cluster = normalised(clustering.cluster());
    cost = costOf(problem, cluster);
    if (problem.nodes > kNodesMoved) break;
    for (int v = 0; v < problem.nodes; ++v) {
      int clusters = 0;
      for (int c : cluster) clusters = std::max(clusters, c + 1);
      const int home = cluster[v];
      int best = home;
      for (int to = 0; to <= clusters; ++to) {
        if (to == home) continue;
        bool possible = true;
        for (int u = 0; u < problem.nodes && possible; ++u)
          possible = cluster[u] != to || pairs.canShare(u, v);
        if (!possible) continue;
        cluster[v] = to;
        const Assignment candidate = normalised(cluster);
        const double changed = costOf(problem, candidate);
        if (changed < cost - kTiny * (1 + cost) && !illegal(problem, candidate)) {
          cost = changed;
          best = to;
          better = true;
        }
      }
      cluster[v] = best;
      cluster = normalised(cluster);
    }
  }
  return normalised(cluster);
}

}  // namespace kelpie::fusion

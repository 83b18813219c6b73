#include "fusion/counted_search.h"

#include <algorithm>

#include "fusion/lower_bound.h"
#include "fusion/twins.h"

namespace kelpie::fusion {
namespace {

constexpr double kTiny = 1e-9;

class CountedSearch {
 public:
  CountedSearch(const PartitionProblem& problem, const PairTable& pairs, double incumbent, CountedWork& work)
      : problem_(problem),
        pairs_(pairs),
        work_(work),
        least_(leastCosts(problem, pairs)),
        best_(incumbent),
        cluster_(problem.nodes, -1),
        accesses_(problem.nodes),
        stores_(problem.nodes),
        requirements_(problem.nodes),
        twin_(problem.nodes, -1) {
    for (int v = 0; v < problem.nodes; ++v) order_.push_back(v);
    std::sort(order_.begin(), order_.end(), [&](int a, int b) { return pairs.rank(a) < pairs.rank(b); });
    for (std::vector<int>& twins : twinClasses(problem, pairs)) {
      std::sort(twins.begin(), twins.end(), [&](int a, int b) { return pairs.rank(a) < pairs.rank(b); });
      for (size_t k = 1; k < twins.size(); ++k) twin_[twins[k]] = twins[k - 1];
    }
    for (size_t k = 0; k < problem.accesses.size(); ++k) {
      const Access& a = problem.accesses[k];
      if (a.producer >= 0) accesses_[a.producer].push_back(k);
      for (int r : a.readers) accesses_[r].push_back(k);
      accessCost_.push_back(costOfAccess(k));
    }
    for (size_t k = 0; k < problem.stores.size(); ++k) {
      stores_[problem.stores[k].producer].push_back(k);
      for (int r : problem.stores[k].readers) stores_[r].push_back(k);
      storeCost_.push_back(costOfStore(k));
    }
    for (const Requirement& r : problem.requirements)
      for (int v : {r.a, r.b, r.third}) requirements_[v].push_back(&r);
  }

  CountedSearchResult run() {
    double memory = 0;
    for (double cost : accessCost_) memory += cost;
    for (double cost : storeCost_) memory += cost;
    extend(0, 0, memory);
    return {best_, found_.empty() ? found_ : normalised(found_), !work_.spent()};
  }

 private:
  struct Child {
    int cluster;
    double launches, memory, cost;
  };

  /// All partitions that begin as the clusters are now.
  void extend(size_t place, double launches, double memory) {
    if (place == order_.size()) {
      const double cost = std::max(launches, least_.launches) + memory;
      if (cost >= best_) return;
      best_ = cost;
      found_ = cluster_;
      return;
    }
    const int v = order_[place];
    std::vector<Child> children;
    for (int c = twin_[v] < 0 ? 0 : cluster_[twin_[v]]; c <= static_cast<int>(members_.size()); ++c)
      if (fits(v, c)) children.push_back(child(v, c, launches, memory));
    std::stable_sort(children.begin(), children.end(),
                     [](const Child& a, const Child& b) { return a.cost < b.cost; });
    for (const Child& child : children) {
      if (work_.spent() || child.cost >= best_ - kTiny * (1 + best_)) return;
      put(v, child.cluster);
      if (meetsRequirements(v) && !dependsOnItself(child.cluster))
        extend(place + 1, child.launches, child.memory);
      take(v);
    }
  }

  bool fits(int v, int c) const {
    if (c == static_cast<int>(members_.size())) return true;
    double weight = problem_.weight[v];
    for (int u : members_[c]) weight += problem_.weight[u];
    return weight <= problem_.budget &&
           std::all_of(members_[c].begin(), members_[c].end(), [&](int u) { return pairs_.canShare(u, v); });
  }

  Child child(int v, int c, double launches, double memory) {
    if (c == static_cast<int>(members_.size())) launches += problem_.launch[v];
    cluster_[v] = c;
    for (size_t k : accesses_[v]) memory += costOfAccess(k) - accessCost_[k];
    for (size_t k : stores_[v]) memory += costOfStore(k) - storeCost_[k];
    cluster_[v] = -1;
    return {c, launches, memory, std::max(launches, least_.launches) + memory};
  }

  void put(int v, int c) {
    if (c == static_cast<int>(members_.size())) members_.emplace_back();
    members_[c].push_back(v);
    cluster_[v] = c;
    price(v);
  }

  /// Undoes the last put().
  void take(int v) {
    std::vector<int>& members = members_[cluster_[v]];
    members.pop_back();
    if (members.empty()) members_.pop_back();
    cluster_[v] = -1;
    price(v);
  }

  void price(int v) {
    for (size_t k : accesses_[v]) accessCost_[k] = costOfAccess(k);
    for (size_t k : stores_[v]) storeCost_[k] = costOfStore(k);
  }

  /// What the clusters so far pay, or what has to be paid anyway.
  double costOfAccess(size_t k) {
    const Access& a = problem_.accesses[k];
    work_.spend(static_cast<int64_t>(a.readers.size()) + 1);
    const int home = a.producer < 0 ? -1 : cluster_[a.producer];
    paid_.clear();
    if (a.producer < 0 || home >= 0) {
      for (int r : a.readers)
        if (cluster_[r] >= 0 && cluster_[r] != home) paid_.push_back(cluster_[r]);
    }
    std::sort(paid_.begin(), paid_.end());
    const auto loads = std::unique(paid_.begin(), paid_.end()) - paid_.begin();
    return a.cost * static_cast<double>(std::max<ptrdiff_t>(loads, least_.loads[k]));
  }

  double costOfStore(size_t k) {
    const Store& s = problem_.stores[k];
    work_.spend(static_cast<int64_t>(s.readers.size()) + 1);
    const int home = cluster_[s.producer];
    const bool stored =
        least_.stored[k] || (home >= 0 && std::any_of(s.readers.begin(), s.readers.end(), [&](int r) {
                               return cluster_[r] >= 0 && cluster_[r] != home;
                             }));
    return stored ? s.cost : 0;
  }

  bool meetsRequirements(int v) const {
    return std::all_of(requirements_[v].begin(), requirements_[v].end(), [&](const Requirement* r) {
      const int c = cluster_[r->a], third = cluster_[r->third];
      return c < 0 || c != cluster_[r->b] || third < 0 || third == c;
    });
  }

  /// Whether a path leads from the cluster through others back to it.
  bool dependsOnItself(int c) {
    std::vector<bool> seen(members_.size(), false);
    std::vector<int> open{c};
    while (!open.empty()) {
      const int from = open.back();
      open.pop_back();
      work_.spend(static_cast<int64_t>(problem_.edges.size()));
      for (const PartitionEdge& e : problem_.edges) {
        const int to = cluster_[e.to];
        if (cluster_[e.from] != from || to < 0 || to == from || seen[to]) continue;
        if (to == c) return true;
        seen[to] = true;
        open.push_back(to);
      }
    }
    return false;
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  CountedWork& work_;
  const LeastCosts least_;
  double best_;
  std::vector<int> order_;
  Assignment cluster_;  ///< -1: not yet anywhere
  Assignment found_;    ///< what costs best_
  std::vector<std::vector<int>> members_;
  std::vector<std::vector<size_t>> accesses_, stores_;  ///< by node
  std::vector<std::vector<const Requirement*>> requirements_;
  std::vector<int> twin_;  ///< the one that is placed before; -1: none
  std::vector<double> accessCost_, storeCost_;
  std::vector<int> paid_;
};

}  // namespace

CountedSearchResult searchCounted(const PartitionProblem& problem, const PairTable& pairs, double incumbent,
                                  CountedWork& work) {
  return CountedSearch(problem, pairs, incumbent, work).run();
}

}  // namespace kelpie::fusion

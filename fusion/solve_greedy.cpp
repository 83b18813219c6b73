#include "fusion/solve_greedy.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "fusion/clustering.h"

namespace kelpie::fusion {
namespace {

constexpr double kTiny = 1e-9;
constexpr int kNodesMoved = 300;  ///< in larger problems moving single nodes takes too long for what it gives

/// Pairs of clusters by what merging them saves: the greatest first, of equal ones the one with the smallest
/// numbers. Those that have changed since are left in the heap, and skipped when they come up.
class SavingQueue {
 public:
  explicit SavingQueue(int clusters)
      : clusters_(clusters), pairs_(static_cast<size_t>(clusters) * clusters) {}

  /// The pair is in the queue from now on, whatever was said of it before; `a` < `b`. 0: it is not.
  void set(int a, int b, double saving) {
    Pair& pair = of(a, b);
    if (pair.saving == saving && pair.queued) return;
    pair = {saving, saving > 0};
    if (pair.queued) push({saving, a, b});
  }
  /// The first pair, which is not in the queue any more; nothing: there is none.
  std::optional<std::pair<int, int>> take() {
    while (!heap_.empty()) {
      const Entry entry = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
      Pair& pair = of(entry.a, entry.b);
      if (!pair.queued || pair.saving != entry.saving) continue;
      pair.queued = false;
      return std::pair(entry.a, entry.b);
    }
    return std::nullopt;
  }
  /// Back into the queue, if merging it still saves something.
  void putBack(int a, int b) { set(a, b, of(a, b).saving); }

 private:
  struct Pair {
    double saving = 0;
    bool queued = false;
  };
  struct Entry {
    double saving;
    int a, b;
    bool operator<(const Entry& other) const {
      return std::tuple(saving, other.a, other.b) < std::tuple(other.saving, a, b);
    }
  };
  Pair& of(int a, int b) { return pairs_[static_cast<size_t>(a) * clusters_ + b]; }
  void push(const Entry& entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end());
  }

  int clusters_;
  std::vector<Pair> pairs_;
  std::vector<Entry> heap_;
};

void mergeGreedily(Clustering& clustering) {
  std::vector<int> clusters;  // in the queue they have the numbers of their places here
  for (int c = 0; c < clustering.clusterCount(); ++c)
    if (!clustering.members(c).empty()) clusters.push_back(c);
  const int n = static_cast<int>(clusters.size());
  SavingQueue queue(n);
  const auto price = [&](int a, int b) {
    if (a > b) std::swap(a, b);
    const int first = clusters[a], second = clusters[b];
    const double saving = clustering.mayShare(first, second) ? clustering.mergeSaving(first, second) : 0;
    queue.set(a, b, saving > kTiny ? saving : 0);
  };
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b) price(a, b);
  // A merge that is illegal now can become legal later (its missing node joins): it waits until no other is
  // left, and is tried again if anything has changed.
  std::vector<std::pair<int, int>> waiting;
  bool changed = false;
  for (;;) {
    const auto pair = queue.take();
    if (!pair) {
      if (!changed) return;
      for (const auto& [a, b] : waiting) queue.putBack(a, b);
      waiting.clear();
      changed = false;
      continue;
    }
    const auto [a, b] = *pair;
    if (!clustering.mayMerge(clusters[a], clusters[b])) {
      waiting.push_back(*pair);
      continue;
    }
    clustering.merge(clusters[a], clusters[b]);
    changed = true;
    for (int c = 0; c < n; ++c) {
      if (c != b) queue.set(std::min(b, c), std::max(b, c), 0);
      if (c != a && !clustering.members(clusters[c]).empty()) price(a, c);
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

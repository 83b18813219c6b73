#include "fusion/lower_bound.h"

#include <algorithm>
#include <cmath>

#include "fusion/budget_weights.h"

namespace kelpie::fusion {
namespace {

/// Many of `nodes` that all exclude each other: the longest chain of them along one path, or more, found
/// greedily.
std::vector<int> manyApart(const PairTable& pairs, std::vector<int> nodes) {
  if (nodes.empty()) return {};
  // "On a path and apart" is transitive: what lies on a path between two that share can share with both.
  std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return pairs.rank(a) < pairs.rank(b); });
  std::vector<int> length(nodes.size(), 1), before(nodes.size(), -1);
  for (size_t k = 0; k < nodes.size(); ++k) {
    for (size_t j = 0; j < k; ++j) {
      if (length[j] < length[k] || !pairs.reaches(nodes[j], nodes[k]) || pairs.canShare(nodes[j], nodes[k]))
        continue;
      length[k] = length[j] + 1;
      before[k] = static_cast<int>(j);
    }
  }
  std::vector<int> best;
  const auto last = std::max_element(length.begin(), length.end()) - length.begin();
  for (int k = static_cast<int>(last); k >= 0; k = before[k]) best.push_back(nodes[k]);
  // Chains of different index spaces add up: the chain extended, and sets grown from the nodes with most
  // conflicts.
  std::vector<std::pair<int, int>> byPartners;
  for (int v : nodes) {
    int partners = 0;
    for (int u : nodes) partners += pairs.canShare(u, v);
    byPartners.emplace_back(partners, v);
  }
  std::sort(byPartners.begin(), byPartners.end());
  const auto grow = [&](std::vector<int> set) {
    for (auto [partners, v] : byPartners) {
      const bool apart =
          std::all_of(set.begin(), set.end(), [&, v = v](int u) { return u != v && !pairs.canShare(u, v); });
      if (apart) set.push_back(v);
    }
    if (set.size() > best.size()) best = set;
  };
  grow(best);
  constexpr size_t kStarts = 16;
  for (size_t k = 0; k < std::min(kStarts, byPartners.size()); ++k) grow({byPartners[k].second});
  return best;
}

/// How many clusters `nodes` are in at least. Groups, of which every node excludes all nodes of other groups,
/// need clusters of their own, and as many as they fill budgets. `weights`: see budget_weights.h.
int fewestClusters(const std::vector<std::vector<double>>& weights, const PairTable& pairs,
                   const std::vector<int>& nodes) {
  std::vector<std::vector<int>> groups;
  for (int v : manyApart(pairs, nodes)) groups.push_back({v});
  std::vector<int> heavy;
  for (int v : nodes)
    if (weights[0][v] > 0 && std::none_of(groups.begin(), groups.end(),
                                          [&](const std::vector<int>& group) { return group[0] == v; }))
      heavy.push_back(v);
  std::stable_sort(heavy.begin(), heavy.end(), [&](int a, int b) { return weights[0][a] > weights[0][b]; });
  for (int v : heavy) {
    size_t others = 0, own = 0;
    for (size_t k = 0; k < groups.size(); ++k) {
      const bool excluded =
          std::none_of(groups[k].begin(), groups[k].end(), [&](int u) { return pairs.canShare(u, v); });
      if (excluded)
        ++others;
      else
        own = k;
    }
    if (others + 1 == groups.size()) groups[own].push_back(v);
  }
  int clusters = 0;
  for (const std::vector<int>& group : groups) {
    int most = 1;
    for (const std::vector<double>& weight : weights) {
      double budgets = 0;
      for (int v : group) budgets += weight[v];
      most = std::max(most, static_cast<int>(std::ceil(budgets - 1e-9)));
    }
    clusters += most;
  }
  return clusters;
}

/// How many clusters at least load an array in this way: of readers that exclude each other one may be with
/// the producer.
int fewestLoads(const std::vector<std::vector<double>>& weights, const Access& access,
                const PairTable& pairs) {
  const int apart = fewestClusters(weights, pairs, access.readers);
  if (access.producer < 0) return apart;
  std::vector<int> elsewhere;
  for (int r : access.readers)
    if (!pairs.canShare(access.producer, r)) elsewhere.push_back(r);
  return std::max(apart - 1, fewestClusters(weights, pairs, elsewhere));
}

/// Whether two of those who have the array can never share, or it outlives the region.
bool alwaysStored(const Store& store, const PairTable& pairs) {
  std::vector<int> nodes = store.readers;
  nodes.push_back(store.producer);
  return store.outlives || manyApart(pairs, nodes).size() > 1;
}

}  // namespace

LeastCosts leastCosts(const PartitionProblem& problem, const PairTable& pairs) {
  const std::vector<std::vector<double>> weights = budgetWeights(problem);
  LeastCosts least;
  std::vector<int> launching;  // statements of the host cost nothing, and share with nobody
  double launch = 1e300;
  for (int v = 0; v < problem.nodes; ++v) {
    if (problem.launch[v] <= 0) continue;
    launching.push_back(v);
    launch = std::min(launch, problem.launch[v]);
  }
  if (!launching.empty()) {
    least.clusters = fewestClusters(weights, pairs, launching);
    least.launches = launch * least.clusters;
  }
  for (const Access& a : problem.accesses) least.loads.push_back(fewestLoads(weights, a, pairs));
  for (const Store& s : problem.stores) least.stored.push_back(alwaysStored(s, pairs));
  return least;
}

double lowerBound(const PartitionProblem& problem, const PairTable& pairs) {
  const LeastCosts least = leastCosts(problem, pairs);
  double total = least.launches;
  for (size_t k = 0; k < problem.accesses.size(); ++k) total += problem.accesses[k].cost * least.loads[k];
  for (size_t k = 0; k < problem.stores.size(); ++k) total += least.stored[k] ? problem.stores[k].cost : 0;
  return total;
}

}  // namespace kelpie::fusion

#include "fusion/link_cuts.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>

#include "fusion/budget_weights.h"
#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr double kNothing = 1e-6;           ///< of the budget
constexpr int64_t kNanosecondsOfALook = 2;  ///< at a link, or a node of one

/// With all who are in their cluster if they share one.
std::vector<int> closed(const PartitionProblem& problem, const PairTable& pairs, std::vector<int> nodes) {
  std::vector<bool> in(problem.nodes, false);
  for (int v : nodes) in[v] = true;
  const auto add = [&](int v) {
    if (!in[v]) nodes.push_back(v);
    in[v] = true;
  };
  for (size_t before = 0; before != nodes.size();) {
    before = nodes.size();
    for (int v = 0; v < problem.nodes; ++v) {
      const auto isBefore = [&](int u) { return pairs.reaches(u, v); };
      const auto isBehind = [&](int u) { return pairs.reaches(v, u); };
      if (!in[v] && std::any_of(nodes.begin(), nodes.end(), isBefore) &&
          std::any_of(nodes.begin(), nodes.end(), isBehind))
        add(v);
    }
    for (const Requirement& r : problem.requirements)
      if (in[r.a] && in[r.b]) add(r.third);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

LinkCuts::LinkCuts(const PartitionProblem& problem, const PairTable& pairs, const BitMatrix& share,
                   std::vector<std::vector<int>> links)
    : share_(share), weights_(budgetWeights(problem)), links_(problem.nodes) {
  for (std::vector<int>& link : links) {
    const int number = static_cast<int>(members_.size());
    members_.push_back(closed(problem, pairs, std::move(link)));
    for (int v : members_.back()) links_[v].push_back(number);
  }
}

LinkCuts::Neighbourhood LinkCuts::around(int root, const std::vector<double>& cut, double within) const {
  const size_t nodes = links_.size();
  Neighbourhood near{root, {}, std::vector<int>(nodes, -1), std::vector<int>(nodes, -1)};
  std::vector<double> distance(nodes, within);
  std::vector<bool> taken(members_.size(), false);
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  distance[root] = 0;
  open.emplace(0, root);
  while (!open.empty()) {
    const auto [length, v] = open.top();
    open.pop();
    if (length > distance[v]) continue;
    if (v != root && !share_.get(root, v)) {
      near.excluded = v;
      return near;
    }
    near.nodes.push_back(v);
    for (int link : links_[v]) {
      if (taken[link]) continue;
      taken[link] = true;  // whoever comes to it later is no nearer
      WorkTime::spend(kNanosecondsOfALook * static_cast<int64_t>(members_[link].size()));
      const double there = length + std::max(0.0, cut[link]);
      for (int u : members_[link]) {
        if (there >= distance[u]) continue;
        distance[u] = there;
        near.through[u] = link;
        near.before[u] = v;
        open.emplace(there, u);
      }
    }
  }
  return near;
}

void LinkCuts::addChain(const Neighbourhood& near, int node, double times, LinkCut& links) {
  for (int v = node; v != near.root; v = near.before[v]) links[near.through[v]] += times;
}

/// Of the trees of the nearest nodes that are over the budget, the one that is broken most.
LinkCut LinkCuts::overBudget(const Neighbourhood& near, const std::vector<double>& weights,
                             const std::vector<double>& cut, double least) const {
  std::vector<double> more(members_.size(), 0);  // what hangs on each link of the tree
  std::vector<int> tree;                         // in order
  double weight = 0, fewest = 1 - least;
  size_t best = 0;  // nodes of the tree
  int64_t looks = 0;
  for (size_t k = 0; k < near.nodes.size(); ++k) {
    const int node = near.nodes[k];
    if (weights[node] <= 0) continue;
    weight += weights[node];
    for (int v = node; v != near.root; v = near.before[v], ++looks) {
      const int link = near.through[v];
      if (more[link] == 0) tree.insert(std::lower_bound(tree.begin(), tree.end(), link), link);
      more[link] += weights[node];
    }
    const double over = weight - 1;
    if (over <= kNothing) continue;
    double cuts = 0;
    for (int link : tree) cuts += std::min(more[link], over) / over * std::max(0.0, cut[link]);
    looks += static_cast<int64_t>(tree.size());
    if (cuts >= fewest) continue;
    fewest = cuts;
    best = k + 1;
  }
  WorkTime::spend(kNanosecondsOfALook * looks);
  LinkCut links;
  weight = 0;
  for (size_t k = 0; k < best; ++k) {
    const int node = near.nodes[k];
    if (weights[node] <= 0) continue;
    weight += weights[node];
    addChain(near, node, weights[node], links);
  }
  for (auto& [link, hanging] : links) hanging = std::min(hanging, weight - 1) / (weight - 1);
  return links;
}

std::vector<LinkCut> LinkCuts::broken(const std::vector<double>& cut, double least) const {
  std::set<LinkCut> found;
  for (size_t v = 0; v < links_.size(); ++v) {
    const Neighbourhood near = around(static_cast<int>(v), cut, 1 - least);
    if (near.excluded >= 0) {
      LinkCut chain;
      addChain(near, near.excluded, 1, chain);
      found.insert(std::move(chain));
      continue;
    }
    for (const std::vector<double>& weights : weights_) {
      if (LinkCut tree = overBudget(near, weights, cut, least); !tree.empty()) found.insert(std::move(tree));
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace kelpie::fusion

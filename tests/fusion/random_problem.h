// Random clustering problems and their exhaustive solution, to compare solvers with.
#pragma once

#include <algorithm>
#include <random>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// Nodes without anything between them.
inline PartitionProblem plainProblem(int nodes) {
  PartitionProblem p;
  p.nodes = nodes;
  p.launch.assign(nodes, 1);
  p.weight.assign(nodes, 0);
  return p;
}

struct RandomShape {
  int nodes = 8;
  double edgeDensity = 0.3, blocking = 0.3, forbidden = 0.15;
  int requirements = 2;
  bool tightBudget = false;
};

inline PartitionProblem randomProblem(std::mt19937& random, const RandomShape& shape) {
  const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; };
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<>(low, high)(random); };
  PartitionProblem p;
  p.nodes = shape.nodes;
  p.launch.assign(p.nodes, number(0, 5));
  for (int v = 0; v < p.nodes; ++v) p.weight.push_back(number(0, 2));
  if (shape.tightBudget) {
    p.budget = number(3, 6);
    for (double& weight : p.weight) weight = chance(0.1) ? p.budget + 1 : weight;
  }
  std::vector<Access> inputs(number(1, 4));
  for (Access& a : inputs) a.cost = number(1, 4);
  for (int v = 0; v < p.nodes; ++v) {
    Access load{v, {}, 1.0 * number(1, 4)};
    Store store{v, {}, chance(0.2), load.cost};
    for (int w = v + 1; w < p.nodes; ++w) {
      if (!chance(shape.edgeDensity)) continue;
      p.edges.push_back({v, w, !chance(shape.blocking)});
      load.readers.push_back(w);
      store.readers.push_back(w);
    }
    for (Access& a : inputs) {
      if (chance(0.3)) a.readers.push_back(v);
    }
    if (!load.readers.empty()) p.accesses.push_back(load);
    if (!store.readers.empty() || store.outlives) p.stores.push_back(store);
  }
  for (Access& a : inputs) {
    if (!a.readers.empty()) p.accesses.push_back(a);
  }
  for (int a = 0; a < p.nodes; ++a) {
    for (int b = a + 1; b < p.nodes; ++b) {
      if (chance(shape.forbidden)) p.forbidden.emplace_back(a, b);
    }
  }
  for (int k = 0; k < shape.requirements && p.nodes >= 3; ++k) {
    std::vector<int> nodes(p.nodes);
    for (int v = 0; v < p.nodes; ++v) nodes[v] = v;
    std::shuffle(nodes.begin(), nodes.end(), random);
    p.requirements.push_back({nodes[0], nodes[1], nodes[2]});
  }
  return p;
}

/// All partitions whose members may share in pairs.
template <typename F>
void forEachPartition(const PartitionProblem& p, const PairTable& pairs, const F& f) {
  Assignment cluster(p.nodes);
  const auto place = [&](const auto& self, int v, int clusters) -> void {
    if (v == p.nodes) return f(cluster);
    for (int c = 0; c <= clusters; ++c) {
      bool possible = true;
      for (int u = 0; u < v && possible; ++u) possible = cluster[u] != c || pairs.canShare(u, v);
      if (!possible) continue;
      cluster[v] = c;
      self(self, v + 1, std::max(clusters, c + 1));
    }
  };
  place(place, 0, 0);
}

/// The cost of the best legal partition into `most` clusters or fewer, by trying all.
inline double exhaustiveOptimum(const PartitionProblem& problem, int most = 1 << 30) {
  const PairTable pairs(problem);
  double best = 1e300;
  forEachPartition(problem, pairs, [&](const Assignment& cluster) {
    if (*std::max_element(cluster.begin(), cluster.end()) >= most) return;
    const double cost = costOf(problem, cluster);
    if (cost < best && !illegal(problem, cluster)) best = cost;
  });
  return best;
}

}  // namespace kelpie::fusion

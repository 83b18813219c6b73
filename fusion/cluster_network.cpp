#include "fusion/cluster_network.h"

#include <algorithm>
#include <cmath>

#include "fusion/work_time.h"

namespace kelpie::fusion {

namespace {

constexpr int64_t kNanosecondsOfAPair = 12, kNanosecondsOfARequirement = 5;

}  // namespace

ClusterNetworkTables::ClusterNetworkTables(const PartitionProblem& problem, const PairTable& pairs)
    : problem(problem),
      pairs(pairs),
      reach(problem.nodes, NodeSet(problem.nodes)),
      reachedBy(reach),
      producers(problem.nodes),
      consumers(problem.nodes),
      requirements(problem.nodes) {
  double total = 1;
  for (double launch : problem.launch) total += launch;
  for (const Access& a : problem.accesses) total += a.cost * static_cast<double>(a.readers.size());
  for (const Store& s : problem.stores) total += s.cost;
  // Sums of costs and prices stay far below what MinimumCut takes as infinite.
  scale = std::exp2(std::floor(42 - std::log2(total)));
  for (int u = 0; u < problem.nodes; ++u) {
    for (int v = 0; v < problem.nodes; ++v) {
      if (!pairs.reaches(u, v)) continue;
      reach[u].add(v);
      reachedBy[v].add(u);
    }
  }
  for (const PartitionEdge& e : problem.edges) {
    producers[e.to].push_back(e.from);
    consumers[e.from].push_back(e.to);
  }
  for (const Requirement& r : problem.requirements) {
    if (!pairs.canShare(r.a, r.b)) continue;
    requirements[r.a].push_back(r);
    requirements[r.b].push_back(r);
  }
}

ClusterNetwork::ClusterNetwork(const ClusterNetworkTables& tables, int representative,
                               const std::vector<bool>& allowed)
    : representative_(representative), number_(tables.problem.nodes, -1) {
  chooseNodes(tables, allowed);
  for (int k = 0; k < size(); ++k) {
    cut.addNode();
    in.push_back(cut.addArc(MinimumCut::kSource, vertex(k), k == 0 ? MinimumCut::kInfinite : 0));
    out.push_back(cut.addArc(vertex(k), MinimumCut::kSink, 0));
  }
  own.assign(nodes.size(), 0);
  always = static_cast<int64_t>(tables.problem.launch[representative] * tables.scale);
  addLoads(tables);
  addStores(tables);
  addPaths(tables);
  addEdges(tables);
  listRules(tables);
}

/// Whether someone who has to be with the representative and the node is not here.
bool ClusterNetwork::missesSomeone(const ClusterNetworkTables& tables, int node) const {
  for (int w : tables.producers[node]) {
    if (!has(w) && tables.pairs.reaches(representative_, w)) return true;
  }
  for (int w : tables.consumers[node]) {
    if (!has(w) && tables.pairs.reaches(w, representative_)) return true;
  }
  for (const Requirement& q : tables.requirements[node]) {
    if ((q.a == representative_ || q.b == representative_) && !has(q.third)) return true;
  }
  return false;
}

void ClusterNetwork::chooseNodes(const ClusterNetworkTables& tables, const std::vector<bool>& allowed) {
  const int n = tables.problem.nodes;
  for (int v = 0; v < n; ++v) {
    if (v == representative_ || (allowed[v] && tables.pairs.canShare(representative_, v))) number_[v] = 0;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int v = 0; v < n; ++v) {
      if (v == representative_ || !has(v) || !missesSomeone(tables, v)) continue;
      number_[v] = -1;
      changed = true;
    }
  }
  nodes = {representative_};
  for (int v = 0; v < n; ++v) {
    if (v == representative_ || !has(v)) continue;
    number_[v] = size();
    nodes.push_back(v);
  }
}

/// Pay if some reader is in and the producer is not.
void ClusterNetwork::addLoads(const ClusterNetworkTables& tables) {
  for (const Access& a : tables.problem.accesses) {
    std::vector<int> readers;
    for (int v : a.readers) {
      if (has(v)) readers.push_back(number_[v]);
    }
    const int producer = a.producer < 0 ? -1 : number_[a.producer];
    if (readers.empty() || producer == 0) continue;
    const auto cost = static_cast<int64_t>(a.cost * tables.scale);
    if (std::find(readers.begin(), readers.end(), 0) != readers.end()) {
      always += cost;
      if (producer > 0) own[producer] -= cost;
      continue;
    }
    if (readers.size() == 1 && producer < 0) {
      own[readers[0]] += cost;
      continue;
    }
    int load = vertex(readers[0]);
    if (readers.size() > 1) {
      load = cut.addNode();
      for (int v : readers) cut.addArc(vertex(v), load, MinimumCut::kInfinite);
    }
    cut.addArc(load, producer < 0 ? MinimumCut::kSink : vertex(producer), cost);
  }
}

/// Pay if the producer is in and some reader is not.
void ClusterNetwork::addStores(const ClusterNetworkTables& tables) {
  for (const Store& s : tables.problem.stores) {
    if (!has(s.producer)) continue;
    const int producer = number_[s.producer];
    const auto cost = static_cast<int64_t>(s.cost * tables.scale);
    bool stored = s.outlives;
    std::vector<int> readers;
    for (int v : s.readers) {
      if (v == s.producer) continue;
      stored |= !has(v) || !tables.pairs.canShare(v, s.producer);
      if (has(v) && v != representative_) readers.push_back(number_[v]);
    }
    if (stored) {
      own[producer] += cost;
      continue;
    }
    if (readers.empty()) continue;
    int kept = vertex(readers[0]);
    if (readers.size() > 1) {
      kept = cut.addNode();
      for (int v : readers) cut.addArc(kept, vertex(v), MinimumCut::kInfinite);
    }
    cut.addArc(vertex(producer), kept, cost);
  }
}

/// Whoever has to be with the representative and a node is in, if the node is.
void ClusterNetwork::addPaths(const ClusterNetworkTables& tables) {
  for (int k = 1; k < size(); ++k) {
    const int v = nodes[k];
    const auto takes = [&](int w) { cut.addArc(vertex(k), vertex(number_[w]), MinimumCut::kInfinite); };
    for (int w : tables.producers[v]) {
      if (has(w) && tables.pairs.reaches(representative_, w)) takes(w);
    }
    for (int w : tables.consumers[v]) {
      if (has(w) && tables.pairs.reaches(w, representative_)) takes(w);
    }
    for (const Requirement& q : tables.requirements[v]) {
      const bool about = q.a == representative_ || q.b == representative_;
      if (about && q.third != representative_ && q.third != v) takes(q.third);
    }
  }
}

void ClusterNetwork::addEdges(const ClusterNetworkTables& tables) {
  for (int k = 1; k < size(); ++k) {
    for (int w : tables.consumers[nodes[k]]) {
      if (!has(w) || w == representative_) continue;
      const int from = vertex(k), to = vertex(number_[w]);
      edges.push_back({k, number_[w], cut.addArc(to, from, 0), cut.addArc(from, to, 0)});
    }
  }
}

void ClusterNetwork::listRules(const ClusterNetworkTables& tables) {
  const int n = tables.problem.nodes;
  NodeSet absent(n);
  for (int v = 0; v < n; ++v) {
    if (!has(v)) absent.add(v);
  }
  conflicts.assign(nodes.size(), NodeSet(nodes.size()));
  before = after = conflicts;
  for (int k = 0; k < size(); ++k) {
    const int u = nodes[k];
    const NodeSet lost = tables.reach[u] & absent;
    for (int j = 0; j < size(); ++j) {
      const int v = nodes[j];
      if (tables.pairs.reaches(v, u)) before[k].add(j);
      if (tables.pairs.reaches(u, v)) after[k].add(j);
      if (k == j || (tables.pairs.canShare(u, v) && !lost.meets(tables.reachedBy[v]))) continue;
      conflicts[k].add(j);
      conflicts[j].add(k);
    }
  }
  WorkTime::spend(kNanosecondsOfAPair * size() * size() +
                  kNanosecondsOfARequirement * static_cast<int64_t>(tables.problem.requirements.size()));
  // What one of the two needs to be with the representative is an arc (addPaths).
  std::vector<NodeSet> taken(nodes.size(), NodeSet(n));
  for (int k = 1; k < size(); ++k)
    for (const Requirement& q : tables.requirements[nodes[k]])
      if (q.a == representative_ || q.b == representative_) taken[k].add(q.third);
  for (const Requirement& q : tables.problem.requirements) {
    if (!has(q.a) || !has(q.b) || !tables.pairs.canShare(q.a, q.b)) continue;
    const int a = number_[q.a], b = number_[q.b];
    if (q.third == representative_ || taken[a].has(q.third) || taken[b].has(q.third)) continue;
    requirements.push_back({a, b, number_[q.third]});
  }
}

}  // namespace kelpie::fusion

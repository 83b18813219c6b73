#include "fusion/restricted_problem.h"

#include <utility>

namespace kelpie::fusion {

PartitionProblem restricted(const PartitionProblem& problem, const PairTable& pairs,
                            const std::vector<int>& nodes) {
  PartitionProblem part;
  part.nodes = static_cast<int>(nodes.size());
  part.budget = problem.budget;
  std::vector<int> local(problem.nodes, -1);
  for (int v : nodes) {
    local[v] = static_cast<int>(part.launch.size());
    part.launch.push_back(problem.launch[v]);
    part.weight.push_back(problem.weight[v]);
  }
  for (const PartitionEdge& e : problem.edges) {
    if (local[e.from] >= 0 && local[e.to] >= 0) part.edges.push_back({local[e.from], local[e.to], e.fusible});
  }
  for (int a : nodes) {
    for (int b : nodes) {
      if (a == b || pairs.canShare(a, b)) continue;
      // Paths between them may lead through nodes that are not here; what remains of them is the order.
      if (pairs.reaches(a, b)) {
        part.edges.push_back({local[a], local[b], false});
      } else if (a < b && !pairs.reaches(b, a)) {
        part.forbidden.emplace_back(local[a], local[b]);
      }
    }
  }
  for (const Requirement& r : problem.requirements) {
    if (local[r.a] < 0 || local[r.b] < 0 || !pairs.canShare(r.a, r.b)) continue;
    if (local[r.third] >= 0) {
      part.requirements.push_back({local[r.a], local[r.b], local[r.third]});
    } else {
      part.forbidden.emplace_back(local[r.a], local[r.b]);
    }
  }
  const auto readersHere = [&](const std::vector<int>& readers) {
    std::vector<int> here;
    for (int r : readers) {
      if (local[r] >= 0) here.push_back(local[r]);
    }
    return here;
  };
  for (const Access& a : problem.accesses) {
    Access access{a.producer < 0 ? -1 : local[a.producer], readersHere(a.readers), a.cost};
    if (!access.readers.empty()) part.accesses.push_back(std::move(access));
  }
  for (const Store& s : problem.stores) {
    if (local[s.producer] < 0) continue;
    Store store{local[s.producer], readersHere(s.readers), s.outlives, s.cost};
    store.outlives |= store.readers.size() < s.readers.size();
    part.stores.push_back(std::move(store));
  }
  return part;
}

PartitionProblem restrictedAmid(const PartitionProblem& problem, const PairTable& pairs,
                                const std::vector<int>& nodes, const Assignment& cluster) {
  PartitionProblem part = restricted(problem, pairs, nodes);
  std::vector<int> local(problem.nodes, -1);
  for (size_t k = 0; k < nodes.size(); ++k) local[nodes[k]] = static_cast<int>(k);
  std::vector<std::vector<int>> out(problem.nodes), members(problem.nodes);
  for (const PartitionEdge& e : problem.edges) out[e.from].push_back(e.to);
  for (int v = 0; v < problem.nodes; ++v)
    if (local[v] < 0) members[cluster[v]].push_back(v);
  for (int from : nodes) {
    std::vector<bool> seen(problem.nodes, false);
    std::vector<int> work;
    const auto follow = [&](int v, bool outside) {
      for (int w : out[v]) {
        if (local[w] >= 0) {
          if (outside) part.edges.push_back({local[from], local[w], false});
        } else if (!seen[cluster[w]]) {
          seen[cluster[w]] = true;
          work.push_back(cluster[w]);
        }
      }
    };
    follow(from, false);
    while (!work.empty()) {
      const int c = work.back();
      work.pop_back();
      for (int v : members[c]) follow(v, true);
    }
  }
  return part;
}

}  // namespace kelpie::fusion

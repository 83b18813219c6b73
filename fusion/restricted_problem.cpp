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

}  // namespace kelpie::fusion

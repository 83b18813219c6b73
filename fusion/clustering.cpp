#include "fusion/clustering.h"

#include <algorithm>
#include <iterator>

namespace kelpie::fusion {
namespace {

void addOnce(std::vector<int>& sorted, int item) {
  if (sorted.empty() || sorted.back() != item) sorted.push_back(item);
}

void uniteWith(std::vector<int>& sorted, std::vector<int>& other) {
  std::vector<int> all;
  all.reserve(sorted.size() + other.size());
  std::set_union(sorted.begin(), sorted.end(), other.begin(), other.end(), std::back_inserter(all));
  sorted = std::move(all);
  other.clear();
}

}  // namespace

Clustering::Readers::Readers(const std::vector<int>& readers) : all_(static_cast<int>(readers.size())) {
  std::vector<int> sorted = readers;
  std::sort(sorted.begin(), sorted.end());
  for (int r : sorted) {
    if (counts_.empty() || counts_.back().cluster != r) counts_.push_back({r, 0});
    ++counts_.back().readers;
  }
}

int Clustering::Readers::in(int c) const {
  const auto it = std::lower_bound(counts_.begin(), counts_.end(), c,
                                   [](const Count& count, int cluster) { return count.cluster < cluster; });
  return it != counts_.end() && it->cluster == c ? it->readers : 0;
}

void Clustering::Readers::move(int from, int to) {
  const auto place = [this](int c) {
    return std::lower_bound(counts_.begin(), counts_.end(), c,
                            [](const Count& count, int cluster) { return count.cluster < cluster; });
  };
  const auto source = place(from);
  if (source == counts_.end() || source->cluster != from) return;
  const int moved = source->readers;
  counts_.erase(source);
  const auto target = place(to);
  if (target != counts_.end() && target->cluster == to) {
    target->readers += moved;
  } else {
    counts_.insert(target, {to, moved});
  }
}

Clustering::Clustering(const PartitionProblem& problem, const PairTable& pairs, const Assignment& start)
    : problem_(problem),
      cluster_(separate(problem.nodes)),
      share_(pairs.shareMatrix()),
      members_(problem.nodes),
      launch_(problem.launch),
      accesses_(problem.nodes),
      stores_(problem.nodes),
      out_(problem.nodes),
      requirementsOf_(problem.nodes) {
  for (int v = 0; v < problem.nodes; ++v) members_[v] = {v};
  for (const PartitionEdge& e : problem.edges) out_[e.from].push_back(e.to);
  accessReaders_.reserve(problem.accesses.size());
  for (const Access& access : problem.accesses) {
    const int number = static_cast<int>(accessReaders_.size());
    if (access.producer >= 0) addOnce(accesses_[access.producer], number);
    for (int r : access.readers) addOnce(accesses_[r], number);
    accessReaders_.emplace_back(access.readers);
  }
  storeReaders_.reserve(problem.stores.size());
  for (const Store& store : problem.stores) {
    const int number = static_cast<int>(storeReaders_.size());
    addOnce(stores_[store.producer], number);
    for (int r : store.readers) addOnce(stores_[r], number);
    storeReaders_.emplace_back(store.readers);
  }
  for (const Requirement& r : problem.requirements) {
    requirementsOf_[r.a].push_back(&r);
    if (r.b != r.a) requirementsOf_[r.b].push_back(&r);
  }
  std::vector<int> first(problem.nodes, -1);  // of each cluster of `start`
  const Assignment clusters = normalised(start);
  for (int v = 0; v < problem.nodes; ++v) {
    int& home = first[clusters[v]];
    if (home < 0) home = v;
    if (home != v) merge(home, v);
  }
}

double Clustering::mergeSaving(int a, int b) const {
  double saving = std::min(launch_[a], launch_[b]);
  // What only one of them touches stays as it is.
  for (int number : accesses_[a].size() < accesses_[b].size() ? accesses_[a] : accesses_[b]) {
    const Access& access = problem_.accesses[number];
    const Readers& readers = accessReaders_[number];
    const int home = access.producer < 0 ? -1 : cluster_[access.producer];
    const bool inA = readers.in(a) > 0, inB = readers.in(b) > 0;
    const int before = (inA && home != a) + (inB && home != b);
    const int after = (inA || inB) && home != a && home != b;
    saving += access.cost * (before - after);
  }
  for (int number : stores_[a].size() < stores_[b].size() ? stores_[a] : stores_[b]) {
    const Store& store = problem_.stores[number];
    const Readers& readers = storeReaders_[number];
    const int home = cluster_[store.producer];
    if (store.outlives || (home != a && home != b)) continue;
    const bool before = readers.in(home) < readers.all(),
               after = readers.in(a) + readers.in(b) < readers.all();
    saving += store.cost * (before - after);
  }
  return saving;
}

bool Clustering::mayMerge(int a, int b) const {
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

void Clustering::merge(int a, int b) {
  for (int v : members_[b]) cluster_[v] = a;
  uniteWith(members_[a], members_[b]);
  launch_[a] = std::max(launch_[a], launch_[b]);
  for (int number : accesses_[b]) accessReaders_[number].move(b, a);
  for (int number : stores_[b]) storeReaders_[number].move(b, a);
  uniteWith(accesses_[a], accesses_[b]);
  uniteWith(stores_[a], stores_[b]);
  for (int c = 0; c < clusterCount(); ++c) {
    if (share_.get(b, c)) continue;
    share_.clear(a, c);
    share_.clear(c, a);
  }
}

/// Whether some path leads from cluster a through another cluster to cluster b.
bool Clustering::pathThroughOthers(int a, int b) const {
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

}  // namespace kelpie::fusion

#include "fusion/partition.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>

#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr int64_t kNanosecondsOfAPair = 50;

}  // namespace

void BitMatrix::uniteRow(int row, int other) {
  for (size_t w = 0; w < words_; ++w) bits_[row * words_ + w] |= bits_[other * words_ + w];
}

bool BitMatrix::intersects(int row, const BitMatrix& m, int other) const {
  for (size_t w = 0; w < words_; ++w) {
    if (bits_[row * words_ + w] & m.bits_[other * words_ + w]) return true;
  }
  return false;
}

int BitMatrix::firstCommon(int row, const BitMatrix& m, int other, const BitMatrix& either) const {
  for (size_t w = 0; w < words_; ++w) {
    const uint64_t common = bits_[row * words_ + w] & m.bits_[other * words_ + w] &
                            (either.bits_[row * words_ + w] | either.bits_[other * words_ + w]);
    if (common) return static_cast<int>(w * 64) + std::countr_zero(common);
  }
  return -1;
}

bool BitMatrix::rowContains(int outer, int inner) const {
  for (size_t w = 0; w < words_; ++w) {
    uint64_t missing = bits_[inner * words_ + w] & ~bits_[outer * words_ + w];
    if (static_cast<size_t>(outer >> 6) == w) missing &= ~(uint64_t{1} << (outer & 63));
    if (static_cast<size_t>(inner >> 6) == w) missing &= ~(uint64_t{1} << (inner & 63));
    if (missing) return false;
  }
  return true;
}

namespace {

uint64_t pairKey(int a, int b) {
  return (static_cast<uint64_t>(std::min(a, b)) << 32) | static_cast<uint32_t>(std::max(a, b));
}

}  // namespace

void PairTable::forbid(int a, int b, PairVerdict verdict) {
  if (a == b || !share_.get(a, b)) return;
  share_.clear(a, b);
  share_.clear(b, a);
  verdicts_.emplace_back(pairKey(a, b), verdict);
}

PairTable::PairTable(const PartitionProblem& problem)
    : nodes_(problem.nodes), rank_(problem.nodes), share_(problem.nodes), reach_(problem.nodes) {
  using Kind = PairVerdict::Kind;
  const int n = nodes_;
  WorkTime::spend(kNanosecondsOfAPair * n * n);
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) share_.set(a, b);
  }
  std::vector<std::vector<const PartitionEdge*>> out(n);
  for (const PartitionEdge& e : problem.edges) out[e.from].push_back(&e);
  const std::vector<int> order = clusterOrder(problem, separate(n)).value();
  for (int k = 0; k < n; ++k) rank_[order[k]] = k;
  for (int k = n - 1; k >= 0; --k) {
    const int v = order[k];
    for (const PartitionEdge* e : out[v]) {
      reach_.set(v, e->to);
      reach_.uniteRow(v, e->to);
    }
  }
  for (const PartitionEdge& e : problem.edges) {
    if (!e.fusible) forbid(e.from, e.to, {Kind::BlockingEdge, e.from, e.to});
  }
  for (auto [a, b] : problem.forbidden) forbid(a, b, {Kind::Forbidden, -1, -1});
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < a; ++b) {
      if (problem.weight[a] + problem.weight[b] > problem.budget) forbid(b, a, {Kind::Budget, -1, -1});
    }
  }
  forbidAlongBlockingPaths(out, order);
  forbidForLackOfOthers(problem);
  std::sort(verdicts_.begin(), verdicts_.end(),
            [](const auto& x, const auto& y) { return x.first < y.first; });
}

// For each node a, the first blocking edge on some path to each other node.
void PairTable::forbidAlongBlockingPaths(const std::vector<std::vector<const PartitionEdge*>>& out,
                                         const std::vector<int>& order) {
  std::vector<const PartitionEdge*> blocker(nodes_);
  for (int first = 0; first < nodes_; ++first) {
    const int a = order[first];
    std::fill(blocker.begin(), blocker.end(), nullptr);
    for (int k = first; k < nodes_; ++k) {
      const int v = order[k];
      if (v != a && !reach_.get(a, v)) continue;
      if (blocker[v]) forbid(a, v, {PairVerdict::Kind::BlockingPath, blocker[v]->from, blocker[v]->to});
      for (const PartitionEdge* e : out[v]) {
        if (blocker[e->to] == nullptr) blocker[e->to] = blocker[v] ? blocker[v] : e->fusible ? nullptr : e;
      }
    }
  }
}

// What a pair needs to have with it, by a requirement or because it lies on a path between, must itself be
// able to share with both. Repeated until nothing changes.
void PairTable::forbidForLackOfOthers(const PartitionProblem& problem) {
  using Kind = PairVerdict::Kind;
  BitMatrix reachedBy(nodes_), apart(nodes_);
  for (int a = 0; a < nodes_; ++a) {
    for (int b = 0; b < nodes_; ++b) {
      if (reach_.get(a, b)) reachedBy.set(b, a);
      if (!share_.get(a, b)) apart.set(a, b);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    const auto forbidHere = [&](int a, int b, PairVerdict verdict) {
      forbid(a, b, verdict);
      apart.set(a, b);
      apart.set(b, a);
      changed = true;
    };
    for (const Requirement& r : problem.requirements) {
      if (r.a == r.b || !share_.get(r.a, r.b)) continue;
      if (share_.get(r.a, r.third) && share_.get(r.b, r.third)) continue;
      forbidHere(r.a, r.b, {Kind::Requirement, r.third, -1});
    }
    for (int a = 0; a < nodes_; ++a) {
      for (int b = 0; b < nodes_; ++b) {
        if (a == b || !share_.get(a, b) || !reach_.get(a, b)) continue;
        const int outside = reach_.firstCommon(a, reachedBy, b, apart);
        if (outside >= 0) forbidHere(a, b, {Kind::PathOutside, outside, -1});
      }
    }
  }
}

PairVerdict PairTable::verdict(int a, int b) const {
  const uint64_t key = pairKey(a, b);
  const auto it = std::lower_bound(verdicts_.begin(), verdicts_.end(), key,
                                   [](const auto& entry, uint64_t k) { return entry.first < k; });
  return it != verdicts_.end() && it->first == key ? it->second : PairVerdict{};
}

Assignment normalised(const Assignment& cluster) {
  Assignment result(cluster.size());
  std::vector<std::pair<int, int>> seen;  // old number, new number; sorted by old number
  for (size_t v = 0; v < cluster.size(); ++v) {
    const auto it = std::lower_bound(seen.begin(), seen.end(), std::pair(cluster[v], -1));
    if (it != seen.end() && it->first == cluster[v]) {
      result[v] = it->second;
    } else {
      result[v] = static_cast<int>(seen.size());
      seen.insert(it, {cluster[v], result[v]});
    }
  }
  return result;
}

Assignment separate(int nodes) {
  Assignment result(nodes);
  for (int v = 0; v < nodes; ++v) result[v] = v;
  return result;
}

double costOf(const PartitionProblem& problem, const Assignment& cluster) {
  int clusters = 0;
  for (int c : cluster) clusters = std::max(clusters, c + 1);
  std::vector<double> launch(clusters, 0.0);
  for (int v = 0; v < problem.nodes; ++v) {
    launch[cluster[v]] = std::max(launch[cluster[v]], problem.launch[v]);
  }
  double total = 0;
  for (double l : launch) total += l;
  std::vector<int> paid;
  for (const Access& a : problem.accesses) {
    paid.clear();
    for (int r : a.readers) {
      if (a.producer < 0 || cluster[r] != cluster[a.producer]) paid.push_back(cluster[r]);
    }
    std::sort(paid.begin(), paid.end());
    total += a.cost * static_cast<double>(std::unique(paid.begin(), paid.end()) - paid.begin());
  }
  for (const Store& s : problem.stores) {
    bool stored = s.outlives;
    for (int r : s.readers) stored |= cluster[r] != cluster[s.producer];
    if (stored) total += s.cost;
  }
  return total;
}

std::optional<std::vector<int>> clusterOrder(const PartitionProblem& problem, const Assignment& cluster,
                                             const std::vector<bool>& late) {
  int clusters = 0;
  for (int c : cluster) clusters = std::max(clusters, c + 1);
  std::vector<std::vector<int>> out(clusters);
  std::vector<int> waiting(clusters, 0), first(clusters, problem.nodes);
  for (int v = problem.nodes - 1; v >= 0; --v) first[cluster[v]] = v;
  for (const PartitionEdge& e : problem.edges) {
    if (cluster[e.from] == cluster[e.to]) continue;
    out[cluster[e.from]].push_back(cluster[e.to]);
    ++waiting[cluster[e.to]];
  }
  using Entry = std::tuple<bool, int, int>;  // late, first node, cluster
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto add = [&](int c) { ready.emplace(!late.empty() && late[first[c]], first[c], c); };
  for (int c = 0; c < clusters; ++c) {
    if (waiting[c] == 0 && first[c] < problem.nodes) add(c);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int c = std::get<2>(ready.top());
    ready.pop();
    order.push_back(c);
    for (int d : out[c]) {
      if (--waiting[d] == 0) add(d);
    }
  }
  size_t used = 0;
  for (int c = 0; c < clusters; ++c) used += first[c] < problem.nodes;
  if (order.size() != used) return std::nullopt;
  return order;
}

std::optional<std::string> illegal(const PartitionProblem& problem, const Assignment& cluster) {
  const auto pair = [](int a, int b) { return std::to_string(a) + " and " + std::to_string(b); };
  for (const PartitionEdge& e : problem.edges) {
    if (!e.fusible && cluster[e.from] == cluster[e.to]) return "blocking edge between " + pair(e.from, e.to);
  }
  for (auto [a, b] : problem.forbidden) {
    if (cluster[a] == cluster[b]) return "forbidden pair " + pair(a, b);
  }
  for (const Requirement& r : problem.requirements) {
    if (cluster[r.a] == cluster[r.b] && cluster[r.third] != cluster[r.a]) {
      return pair(r.a, r.b) + " share a cluster without " + std::to_string(r.third);
    }
  }
  std::vector<double> weight(problem.nodes, 0.0);
  std::vector<int> members(problem.nodes, 0);
  for (int v = 0; v < problem.nodes; ++v) {
    weight[cluster[v]] += problem.weight[v];
    ++members[cluster[v]];
  }
  for (int c = 0; c < problem.nodes; ++c) {
    if (members[c] > 1 && weight[c] > problem.budget)
      return "cluster " + std::to_string(c) + " is over budget";
  }
  if (!clusterOrder(problem, cluster)) return "clusters depend on each other in a cycle";
  return std::nullopt;
}

}  // namespace kelpie::fusion

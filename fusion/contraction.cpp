#include "fusion/contraction.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace kelpie::fusion {
namespace {

// Three rules. Let P be an optimal partition with u and v apart, u -> v a fusible edge in the first two.
//
//  Into the reader: u's successors are {v}. Moving u into v's cluster closes no cycle, since every
//  predecessor of u already had to come before v. If whatever may share with v may share with u, no rule
//  about pairs breaks. Gained: the store of u's results and their load. Lost at most: loads of u's inputs
//  that v's cluster did not make before, and stores of inputs that were produced in u's old cluster only for
//  it.
//
//  Into the producer: v's predecessors are {u}; the same argument mirrored. Lost at most: loads of v's
//  other inputs, and a store and a load of each result of v that was read in its old cluster.
//
//  Beside another reader: what comes before u comes before v, what comes behind u behind v, and v reads all
//  that u does. Moving u into v's cluster closes no cycle, for what it now has before and behind it it had
//  already, and loads nothing more. Lost at most: a store and a load of each result of u that was read in its
//  old cluster; only nodes without such results move. So nodes of which many read the same few arrays, which
//  a search could put anywhere, become few.
//
// When the gain is at least the loss, P changed is optimal too. All moves found by one rule hold at once:
// made in descending (ascending) order of the node that moves, no move parts a pair that an earlier one
// joined; by the third rule no node moves to one that moves.
class Rules {
 public:
  Rules(const PartitionProblem& problem, const PairTable& pairs) : problem_(problem), pairs_(pairs) {
    const int n = problem.nodes;
    successors_.resize(n);
    predecessors_.resize(n);
    reads_.resize(n);
    readsOf_.resize(n);
    storesOf_.resize(n);
    storesRead_.resize(n);
    asPair_.resize(n);
    asThird_.resize(n);
    fusible_ = BitMatrix(n);
    for (const PartitionEdge& e : problem.edges) {
      successors_[e.from].insert(e.to);
      predecessors_[e.to].insert(e.from);
      if (pairs.canShare(e.from, e.to)) fusible_.set(e.from, e.to);
    }
    for (const Access& a : problem.accesses) {
      for (int r : a.readers) reads_[r].push_back(&a);
      if (a.producer >= 0) readsOf_[a.producer].push_back(&a);
    }
    for (const Store& s : problem.stores) {
      storesOf_[s.producer].push_back(&s);
      for (int r : s.readers) storesRead_[r].push_back(&s);
    }
    for (const Requirement& r : problem.requirements) {
      asPair_[r.a].push_back(&r);
      asPair_[r.b].push_back(&r);
      asThird_[r.third].push_back(&r);
    }
    double total = 0;
    for (double w : problem.weight) total += w;
    withinBudget_ = total <= problem.budget;
  }

  /// The reader u may follow, or -1.
  int reader(int u) const {
    if (successors_[u].size() != 1) return -1;
    const int v = *successors_[u].begin();
    if (!mayFollow(u, v)) return -1;
    double gain = 0, loss = 0;
    for (const Access* a : readsOf_[u]) gain += a->readers.empty() ? 0 : a->cost;
    for (const Store* s : storesOf_[u]) gain += s->outlives || s->readers.empty() ? 0 : s->cost;
    for (const Access* a : reads_[u]) {
      if (std::find(a->readers.begin(), a->readers.end(), v) == a->readers.end()) loss += a->cost;
    }
    for (const Store* s : storesRead_[u]) {
      const bool alsoRead = std::find(s->readers.begin(), s->readers.end(), v) != s->readers.end();
      if (fusible_.get(s->producer, u) && !alsoRead && !alwaysStored(*s)) loss += s->cost;
    }
    return gain >= loss ? v : -1;
  }

  /// The producer v may follow, or -1.
  int producer(int v) const {
    if (predecessors_[v].size() != 1) return -1;
    const int u = *predecessors_[v].begin();
    if (!mayFollow(v, u)) return -1;
    double gain = 0, loss = 0;
    for (const Access* a : reads_[v]) {
      if (a->producer == u) {
        gain += a->readers.size() == 1 ? a->cost : 0;
      } else if (std::find(a->readers.begin(), a->readers.end(), u) == a->readers.end()) {
        loss += a->cost;
      }
    }
    for (const Store* s : storesRead_[v]) gain += !s->outlives && s->readers.size() == 1 ? s->cost : 0;
    for (const Access* a : readsOf_[v]) loss += a->cost;
    for (const Store* s : storesOf_[v]) loss += alwaysStored(*s) ? 0 : s->cost;
    return gain >= loss ? u : -1;
  }

  /// Those that nodes may go beside, or -1. Such a node stays.
  std::vector<int> besides() const {
    std::vector<int> result(problem_.nodes, -1);
    std::vector<bool> stays(problem_.nodes, false);
    for (int u = 0; u < problem_.nodes; ++u) {
      if (stays[u] || !losesNothing(u)) continue;
      const auto suits = [&](int v) { return v != u && result[v] < 0 && mayGoBeside(u, v); };
      int found = -1;
      if (reads_[u].empty()) {
        for (int v = 0; v < problem_.nodes && found < 0; ++v)
          if (suits(v)) found = v;
      } else {
        const Access* least = *std::min_element(
            reads_[u].begin(), reads_[u].end(),
            [](const Access* a, const Access* b) { return a->readers.size() < b->readers.size(); });
        const auto v = std::find_if(least->readers.begin(), least->readers.end(), suits);
        if (v != least->readers.end()) found = *v;
      }
      if (found < 0) continue;
      result[u] = found;
      stays[found] = true;
    }
    return result;
  }

 private:
  /// Whether nobody who may share with u reads its results.
  bool losesNothing(int u) const {
    const auto mayShare = [&](int r) { return pairs_.canShare(u, r); };
    return std::none_of(readsOf_[u].begin(), readsOf_[u].end(),
                        [&](const Access* a) {
                          return std::any_of(a->readers.begin(), a->readers.end(), mayShare);
                        }) &&
           std::all_of(storesOf_[u].begin(), storesOf_[u].end(),
                       [&](const Store* s) { return alwaysStored(*s); });
  }

  bool mayGoBeside(int u, int v) const {
    const auto isRead = [&](const auto& array) {
      return std::find(array.readers.begin(), array.readers.end(), v) != array.readers.end();
    };
    return mayFollow(u, v) &&
           std::all_of(predecessors_[u].begin(), predecessors_[u].end(),
                       [&](int p) { return pairs_.reaches(p, v); }) &&
           std::all_of(successors_[u].begin(), successors_[u].end(),
                       [&](int s) { return pairs_.reaches(v, s); }) &&
           std::all_of(reads_[u].begin(), reads_[u].end(), [&](const Access* a) { return isRead(*a); }) &&
           std::all_of(storesRead_[u].begin(), storesRead_[u].end(),
                       [&](const Store* s) { return isRead(*s) || alwaysStored(*s); });
  }

  /// Whether `node` may be put into any cluster that has `other`, as far as pairs, requirements and budget
  /// go.
  bool mayFollow(int node, int other) const {
    if (!pairs_.canShare(node, other) || !pairs_.shareMatrix().rowContains(node, other)) return false;
    if (problem_.launch[node] > problem_.launch[other]) return false;
    if (!withinBudget_ && problem_.weight[node] > 0) return false;
    for (const Requirement* r : asPair_[node]) {
      if (r->third != other) return false;
    }
    for (const Requirement* r : asThird_[node]) {
      if (r->a != other && r->b != other) return false;
    }
    return true;
  }

  bool alwaysStored(const Store& s) const {
    return s.outlives || std::any_of(s.readers.begin(), s.readers.end(),
                                     [&](int r) { return !pairs_.canShare(s.producer, r); });
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  std::vector<std::set<int>> successors_, predecessors_;
  std::vector<std::vector<const Access*>> reads_, readsOf_;
  std::vector<std::vector<const Store*>> storesOf_, storesRead_;
  std::vector<std::vector<const Requirement*>> asPair_, asThird_;
  BitMatrix fusible_;
  bool withinBudget_ = false;  ///< even all nodes together: the budget forbids nothing
};

int find(Assignment& parent, int v) {
  while (parent[v] != v) v = parent[v] = parent[parent[v]];
  return v;
}

}  // namespace

Assignment contractionGroups(const PartitionProblem& problem, const PairTable& pairs) {
  Assignment group = separate(problem.nodes);
  PartitionProblem current = problem;
  PairTable table = pairs;
  enum class Rule { IntoReader, IntoProducer, Beside };
  constexpr int kRules = 3;
  int idle = 0;  // rules in a row that found nothing
  for (int turn = 0; idle < kRules; ++turn) {
    const Rule rule = static_cast<Rule>(turn % kRules);
    const Rules rules(current, table);
    const std::vector<int> besides = rule == Rule::Beside ? rules.besides() : std::vector<int>();
    Assignment parent = separate(current.nodes);
    bool found = false;
    for (int v = 0; v < current.nodes; ++v) {
      const int other = rule == Rule::IntoReader     ? rules.reader(v)
                        : rule == Rule::IntoProducer ? rules.producer(v)
                                                     : besides[v];
      if (other < 0) continue;
      parent[find(parent, v)] = find(parent, other);
      found = true;
    }
    idle = found ? 0 : idle + 1;
    if (!found) continue;
    for (int v = 0; v < current.nodes; ++v) parent[v] = find(parent, v);
    const Assignment merged = normalised(parent);
    for (int& g : group) g = merged[g];
    current = contracted(current, merged);
    table = PairTable(current);
  }
  return group;
}

PartitionProblem contracted(const PartitionProblem& problem, const Assignment& group) {
  PartitionProblem result;
  for (int g : group) result.nodes = std::max(result.nodes, g + 1);
  result.launch.assign(result.nodes, 0);
  result.weight.assign(result.nodes, 0);
  result.budget = problem.budget;
  std::vector<int> members(result.nodes, 0);
  for (int v = 0; v < problem.nodes; ++v) {
    result.launch[group[v]] = std::max(result.launch[group[v]], problem.launch[v]);
    result.weight[group[v]] += problem.weight[v];
    ++members[group[v]];
  }
  std::map<std::pair<int, int>, bool> edges;
  for (const PartitionEdge& e : problem.edges) {
    if (group[e.from] == group[e.to]) continue;
    const auto [it, fresh] = edges.try_emplace({group[e.from], group[e.to]}, e.fusible);
    if (!fresh) it->second &= e.fusible;
  }
  for (const auto& [ends, fusible] : edges) result.edges.push_back({ends.first, ends.second, fusible});
  for (auto [a, b] : problem.forbidden) result.forbidden.emplace_back(std::minmax(group[a], group[b]));
  std::sort(result.forbidden.begin(), result.forbidden.end());
  result.forbidden.erase(std::unique(result.forbidden.begin(), result.forbidden.end()),
                         result.forbidden.end());
  std::set<std::array<int, 3>> requirements;
  for (const Requirement& r : problem.requirements) {
    const int a = group[r.a], b = group[r.b], third = group[r.third];
    if (third == a || third == b) continue;
    const auto [low, high] = std::minmax(a, b);
    requirements.insert({low, high, third});
  }
  for (const auto& [a, b, third] : requirements) result.requirements.push_back({a, b, third});
  const auto readers = [&](const std::vector<int>& old, int producer) {
    std::vector<int> result;
    for (int r : old) {
      if (producer < 0 || group[r] != producer) result.push_back(group[r]);
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  };
  for (const Access& a : problem.accesses) {
    const int producer = a.producer < 0 ? -1 : group[a.producer];
    Access access{producer, readers(a.readers, producer), a.cost};
    if (!access.readers.empty()) result.accesses.push_back(std::move(access));
  }
  for (const Store& s : problem.stores) {
    Store store{group[s.producer], readers(s.readers, group[s.producer]), s.outlives, s.cost};
    if (store.outlives || !store.readers.empty()) result.stores.push_back(std::move(store));
  }
  return result;
}

PartitionProblem withoutFixedCosts(PartitionProblem problem, const PairTable& pairs) {
  std::erase_if(problem.accesses, [&](const Access& a) {
    const auto canShare = [&](int r, int s) { return r != s && pairs.canShare(r, s); };
    return std::none_of(a.readers.begin(), a.readers.end(), [&](int r) {
      return (a.producer >= 0 && canShare(r, a.producer)) ||
             std::any_of(a.readers.begin(), a.readers.end(), [&](int s) { return canShare(r, s); });
    });
  });
  std::erase_if(problem.stores, [&](const Store& s) {
    return s.outlives || std::any_of(s.readers.begin(), s.readers.end(),
                                     [&](int r) { return !pairs.canShare(r, s.producer); });
  });
  return problem;
}

PartitionProblem withoutLeastCosts(PartitionProblem problem, double most) {
  std::map<double, double> atMost;  // by cost of one load or store: what a partition can pay for all of these
  for (const Access& a : problem.accesses) atMost[a.cost] += a.cost * static_cast<double>(a.readers.size());
  for (const Store& s : problem.stores) atMost[s.cost] += s.cost;
  double together = 0, little = -1;
  for (const auto& [cost, paid] : atMost) {
    together += paid;
    if (together > most) break;
    little = cost;
  }
  std::erase_if(problem.accesses, [&](const Access& a) { return a.cost <= little; });
  std::erase_if(problem.stores, [&](const Store& s) { return s.cost <= little; });
  return problem;
}

}  // namespace kelpie::fusion

#include "fusion/twins.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace kelpie::fusion {
namespace {

/// Something that a problem says about a node: what it is, which numbers belong to it, what it costs.
struct Fact {
  enum class Kind : uint8_t { Enters, Leaves, Forbidden, Pair, Third, Reads, Loaded, Kept, Stored };
  Kind kind;
  bool flag = false;
  double cost = 0;
  std::vector<int> numbers = {};
  bool operator==(const Fact&) const = default;
  bool operator<(const Fact& other) const {
    return std::tie(kind, flag, cost, numbers) < std::tie(other.kind, other.flag, other.cost, other.numbers);
  }
};

class Facts {
 public:
  explicit Facts(const PartitionProblem& problem) : of_(problem.nodes) {
    using Kind = Fact::Kind;
    for (const PartitionEdge& e : problem.edges) {
      addOnce(e.from, {Kind::Leaves, e.fusible, 0, {e.to}});
      addOnce(e.to, {Kind::Enters, e.fusible, 0, {e.from}});
    }
    for (const auto& [a, b] : problem.forbidden) {
      addOnce(a, {Kind::Forbidden, false, 0, {b}});
      addOnce(b, {Kind::Forbidden, false, 0, {a}});
    }
    for (const Requirement& r : problem.requirements) {
      of_[r.a].insert({Kind::Pair, false, 0, {r.b, r.third}});
      of_[r.b].insert({Kind::Pair, false, 0, {r.a, r.third}});
      of_[r.third].insert({Kind::Third, false, 0, {std::min(r.a, r.b), std::max(r.a, r.b)}});
    }
    // Arrays by their numbers for readers; for producers by all about them.
    for (size_t k = 0; k < problem.accesses.size(); ++k) {
      const Access& a = problem.accesses[k];
      for (int r : a.readers) of_[r].insert({Kind::Reads, false, 0, {static_cast<int>(k)}});
      if (a.producer >= 0) of_[a.producer].insert({Kind::Loaded, false, a.cost, a.readers});
    }
    for (size_t k = 0; k < problem.stores.size(); ++k) {
      const Store& s = problem.stores[k];
      for (int r : s.readers) of_[r].insert({Kind::Kept, false, 0, {static_cast<int>(k)}});
      of_[s.producer].insert({Kind::Stored, s.outlives, s.cost, s.readers});
    }
  }

  /// Whether they stay the same when two nodes are exchanged that know nothing of each other. Twins that do
  /// are left out.
  bool same(int a, int b) const {
    const auto mentions = [](const Fact& fact, int node) {
      return fact.kind != Fact::Kind::Reads && fact.kind != Fact::Kind::Kept &&
             std::find(fact.numbers.begin(), fact.numbers.end(), node) != fact.numbers.end();
    };
    return of_[a] == of_[b] && std::none_of(of_[a].begin(), of_[a].end(),
                                            [&](const Fact& f) { return mentions(f, a) || mentions(f, b); });
  }

 private:
  void addOnce(int node, Fact fact) {
    if (!of_[node].contains(fact)) of_[node].insert(std::move(fact));
  }
  std::vector<std::multiset<Fact>> of_;
};

}  // namespace

std::vector<std::vector<int>> twinClasses(const PartitionProblem& problem, const PairTable& pairs) {
  const Facts facts(problem);
  std::vector<std::vector<int>> classes;
  std::vector<bool> taken(problem.nodes, false);
  for (int a = 0; a < problem.nodes; ++a) {
    if (taken[a]) continue;
    std::vector<int> twins{a};
    for (int b = a + 1; b < problem.nodes; ++b)
      if (!taken[b] && pairs.canShare(a, b) && problem.launch[a] == problem.launch[b] &&
          problem.weight[a] == problem.weight[b] && facts.same(a, b))
        twins.push_back(b);
    for (int v : twins) taken[v] = true;
    if (twins.size() > 1) classes.push_back(std::move(twins));
  }
  return classes;
}

}  // namespace kelpie::fusion

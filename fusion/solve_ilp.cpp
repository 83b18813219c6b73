#include "fusion/solve_ilp.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "fusion/anneal.h"
#include "fusion/contraction.h"
#include "fusion/deadline.h"
#include "fusion/lower_bound.h"
#include "fusion/restricted_problem.h"
#include "fusion/search_orders.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_in_turn.h"
#include "fusion/solve_part.h"
#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr double kShareOfLeastCosts = 0.5;  ///< of what is negligible: so much is left out of the search
constexpr double kRounding = 1e-9;          ///< of costs

/// Components of the graph whose edges are the pairs that can share a cluster.
std::vector<std::vector<int>> sharingComponents(const PairTable& pairs, int nodes) {
  std::vector<std::vector<int>> components;
  std::vector<bool> seen(nodes, false);
  for (int v = 0; v < nodes; ++v) {
    if (seen[v]) continue;
    seen[v] = true;
    std::vector<int> component{v};
    for (size_t k = 0; k < component.size(); ++k) {
      for (int b = 0; b < nodes; ++b) {
        if (seen[b] || !pairs.canShare(component[k], b)) continue;
        seen[b] = true;
        component.push_back(b);
      }
    }
    std::sort(component.begin(), component.end());
    components.push_back(std::move(component));
  }
  return components;
}

/// The clusters that lie on some cycle or between cycles.
std::vector<bool> onCycles(const PartitionProblem& problem, const Assignment& cluster) {
  const int n = problem.nodes;
  std::vector<bool> left(n, true);
  for (bool changed = true; changed;) {  // peel clusters without predecessors, or without successors
    changed = false;
    std::vector<bool> entered(n, false), leaving(n, false);
    for (const PartitionEdge& e : problem.edges) {
      const int a = cluster[e.from], b = cluster[e.to];
      if (a == b || !left[a] || !left[b]) continue;
      leaving[a] = true;
      entered[b] = true;
    }
    for (int c = 0; c < n; ++c) {
      if (!left[c] || (entered[c] && leaving[c])) continue;
      left[c] = false;
      changed = true;
    }
  }
  return left;
}

constexpr double kShareOfAnnealing = 0.25;  ///< of the time
/// What components have of the time at first: only what is found tells whether they get into each other's way
/// and are to be joined. Then, as long as that may happen, of what is left: more if only one is not proven.
constexpr double kShareAtFirst = 0.25, kShareLater = 0.6, kShareOfTheLast = 0.9;
/// Of the time that is left, for components that are joined: amid each other, and for the order.
constexpr double kShareOfTurns = 0.2, kShareOfOrders = 0.5;
/// Of what joining costs, as far as it is known: where more than that is open about the components themselves
/// their order tells little.
constexpr double kLittle = 0.2;
constexpr double kIdle = 0.01;     ///< less of the time given is no work
constexpr double kShortest = 0.1;  ///< less of the time is not shared out any more
/// Regions of so many nodes are proven in seconds, and parts find their own beginning; beyond, what is found
/// for the whole first makes a schedule of 900 nodes 1 % cheaper.
constexpr int kNodesProven = 300;

class ComponentSolver {
 public:
  ComponentSolver(const PartitionProblem& problem, const PairTable& pairs, const Assignment& start,
                  bool shortcut)
      : problem_(problem), pairs_(pairs), start_(start), shortcut_(shortcut) {
    for (const std::vector<int>& nodes : sharingComponents(pairs, problem.nodes))
      add(nodes, {startOf(nodes), 0});
  }

  void run(const Deadline& deadline) {
    const double shortest = kShortest * deadline.secondsLeft();
    for (double share = kShareAtFirst;; share = open().size() > 1 ? kShareLater : kShareOfTheLast) {
      const double left = std::max(0.0, deadline.secondsLeft());
      const double given = alone() || left < shortest ? left : share * left;
      const int64_t before = WorkTime::spent();
      solveOpen(given);
      // Who takes nothing of the time given has nothing left to try.
      const bool idle = 1e-9 * static_cast<double>(WorkTime::spent() - before) < kIdle * given;
      if (!clusterOrder(problem_, cluster())) {
        joinOnCycles(deadline);
      } else if (open().empty() || deadline.passed() || idle) {
        return;
      }
    }
  }

  Assignment cluster() const {
    Assignment result(problem_.nodes);
    int used = 0;
    for (const Component& c : components_) {
      int most = 0;
      for (size_t k = 0; k < c.nodes.size(); ++k) {
        const int own = c.solver ? c.solver->cluster()[k] : 0;
        result[c.nodes[k]] = used + own;
        most = std::max(most, own);
      }
      used += most + 1;
    }
    return normalised(result);
  }
  /// What all that is not proven may cost less.
  double slack() const {
    double slack = 0;
    for (const Component& c : components_)
      if (c.solver) slack += std::max(0.0, c.solver->cost() - c.solver->bound());
    return slack;
  }
  void describe(Partition& result) const {
    result.components = static_cast<int>(components_.size());
    for (const Component& c : components_) {
      if (!c.solver) continue;
      result.columns += c.solver->columns();
      result.rows += c.solver->rows();
      result.cuts += c.solver->cuts();
    }
  }

 private:
  struct Component {
    std::vector<int> nodes;
    std::unique_ptr<PartSolver> solver;  ///< none for one node
    double effort() const { return std::pow(static_cast<double>(nodes.size()), 2); }
  };

  Assignment startOf(const std::vector<int>& nodes) const {
    Assignment start;
    for (int v : nodes) start.push_back(start_[v]);
    return normalised(start);
  }

  void add(std::vector<int> nodes, const SearchedOrders& known) {
    Component c{std::move(nodes), nullptr};
    if (c.nodes.size() > 1) {
      c.solver = std::make_unique<PartSolver>(restricted(problem_, pairs_, c.nodes), known.cluster,
                                              known.bound, shortcut_);
    }
    components_.push_back(std::move(c));
  }

  /// Nothing can get in the way of one component.
  bool alone() const {
    return std::count_if(components_.begin(), components_.end(),
                         [](const Component& c) { return c.solver != nullptr; }) <= 1;
  }

  /// The small ones first: what they leave of their time goes to the larger ones.
  std::vector<Component*> open() {
    std::vector<Component*> result;
    for (Component& c : components_)
      if (c.solver && !c.solver->done()) result.push_back(&c);
    std::stable_sort(result.begin(), result.end(), [](const Component* a, const Component* b) {
      return a->nodes.size() < b->nodes.size();
    });
    return result;
  }

  void solveOpen(double seconds) {
    const Deadline deadline(seconds);
    const std::vector<Component*> all = open();
    double efforts = 0;
    for (const Component* c : all) efforts += c->effort();
    for (Component* c : all) {
      c->solver->run(c->effort() / efforts * std::max(0.0, deadline.secondsLeft()));
      efforts -= c->effort();
    }
  }

  /// Takes out the components that meet in a cycle.
  std::vector<Component> takeCyclic() {
    const Assignment clusters = cluster();
    const std::vector<bool> cyclic = onCycles(problem_, clusters);
    std::vector<Component> meeting, rest;
    for (Component& c : components_) {
      const bool meets =
          c.solver && std::any_of(c.nodes.begin(), c.nodes.end(), [&](int v) { return cyclic[clusters[v]]; });
      (meets ? meeting : rest).push_back(std::move(c));
    }
    components_ = std::move(rest);
    return meeting;
  }

  /// They must be solved as one, which costs no less than all of them.
  void joinOnCycles(const Deadline& deadline) {
    const std::vector<Component> meeting = takeCyclic();
    std::vector<int> nodes;
    SearchedOrders known;
    for (const Component& c : meeting) {
      nodes.insert(nodes.end(), c.nodes.begin(), c.nodes.end());
      known.bound += c.solver->bound();
    }
    std::sort(nodes.begin(), nodes.end());
    known.cluster = startOf(nodes);
    if (shortcut_) known = ordered(nodes, meeting, known, deadline);
    add(std::move(nodes), known);
  }

  /// More about components that meet in a cycle, whose nodes these are.
  SearchedOrders ordered(const std::vector<int>& nodes, const std::vector<Component>& meeting,
                         const SearchedOrders& known, const Deadline& deadline) const {
    const PartitionProblem problem = restricted(problem_, pairs_, nodes);
    const PairTable pairs(problem);
    std::vector<SolvedComponent> solved;
    double open = 0;
    for (const Component& c : meeting) {
      solved.push_back({{}, c.solver->cluster(), c.solver->bound()});
      for (int v : c.nodes) {
        const auto found = std::lower_bound(nodes.begin(), nodes.end(), v);
        solved.back().nodes.push_back(static_cast<int>(found - nodes.begin()));
      }
      open += c.solver->cost() - c.solver->bound();
    }
    const Deadline turns(kShareOfTurns * deadline.secondsLeft());
    const Assignment start = solveInTurn(problem, pairs, solved, known.cluster, turns);
    if (open > kLittle * (costOf(problem, start) - known.bound)) return {start, known.bound};
    return searchOrders(problem, solved, start, Deadline(kShareOfOrders * deadline.secondsLeft()));
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  const Assignment& start_;  ///< a legal one of the whole
  const bool shortcut_;
  std::vector<Component> components_;
};

}  // namespace

Partition solveIlp(const PartitionProblem& problem, const PairTable& pairs, const IlpOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Deadline deadline(options.seconds);
  Partition result;
  const Assignment group = options.contract ? contractionGroups(problem, pairs) : separate(problem.nodes);
  const PartitionProblem merged = contracted(problem, group);
  const PairTable table(merged);
  const PartitionProblem small = withoutFixedCosts(merged, table);
  result.contracted = problem.nodes - small.nodes;

  // A good clustering of the whole, from which every part starts.
  Assignment whole = improve(small, table, solveGreedy(small, table));
  const double little = negligible(costOf(small, whole), small.nodes);
  const PartitionProblem searched =
      small.nodes > kFewNodes ? withoutLeastCosts(small, kShareOfLeastCosts * little) : small;
  if (small.nodes > kNodesProven && costOf(searched, whole) - lowerBound(searched, table) > little)
    whole = anneal(searched, table, whole, kShareOfAnnealing * options.seconds);

  ComponentSolver components(searched, table, whole, options.shortcut);
  components.run(deadline);
  components.describe(result);
  Assignment cluster = components.cluster();
  const double bound = costOf(searched, cluster) - components.slack();
  cluster = improve(small, table, cluster);
  result.cluster.resize(problem.nodes);
  for (int v = 0; v < problem.nodes; ++v) result.cluster[v] = cluster[group[v]];
  result.cluster = normalised(result.cluster);
  result.cost = costOf(problem, result.cluster);
  const double slack = std::max(0.0, costOf(small, cluster) - bound);
  result.bound = slack <= negligible(result.cost, problem.nodes) ? result.cost : result.cost - slack;
  if (slack > kRounding * (1 + result.cost)) {  // then greedy may have found a better one on the whole
    const Assignment greedy = solveGreedy(problem, pairs);
    if (costOf(problem, greedy) < result.cost) {
      result.cluster = greedy;
      result.cost = costOf(problem, greedy);
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.counted = deadline.secondsSpent();
  return result;
}

}  // namespace kelpie::fusion

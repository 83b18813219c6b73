#include "fusion/solve_ilp.h"

#include <algorithm>
#include <cmath>

#include "fusion/anneal.h"
#include "fusion/cluster_search.h"
#include "fusion/contraction.h"
#include "fusion/deadline.h"
#include "fusion/lower_bound.h"
#include "fusion/restricted_problem.h"
#include "fusion/solve_again.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_stages.h"

namespace kelpie::fusion {
namespace {

/// Components of the graph whose edges are the pairs that can share a cluster; component[v], normalised.
Assignment sharingComponents(const PairTable& pairs, int nodes) {
  Assignment component(nodes, -1);
  int count = 0;
  std::vector<int> work;
  for (int v = 0; v < nodes; ++v) {
    if (component[v] >= 0) continue;
    component[v] = count;
    work.push_back(v);
    while (!work.empty()) {
      const int a = work.back();
      work.pop_back();
      for (int b = 0; b < nodes; ++b) {
        if (component[b] >= 0 || !pairs.canShare(a, b)) continue;
        component[b] = count;
        work.push_back(b);
      }
    }
    ++count;
  }
  return component;
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

struct Solved {
  Assignment cluster;
  double cost = 0, bound = 0;
};

constexpr double kShareOfAnnealing = 0.25;    ///< of the time, at most
constexpr double kShareOfSolvingAgain = 0.2;  ///< the same
/// The same. What is left is for whole clusters, which are found slowly where they are large and many.
constexpr double kShareOfStages = 0.75;
/// Of so many nodes on average, clusters are worth solving again by stages; of fewer, all are found sooner.
constexpr int kLargeClusters = 8;
/// Regions of so many nodes are proven in seconds, and parts find their own beginning; beyond, what is found
/// for the whole first makes a schedule of 900 nodes 1 % cheaper.
constexpr int kNodesProven = 300;

/// `lower` is known to bound the part; `totals` adds up the sizes of the integer programs.
Solved solvePart(const PartitionProblem& part, Assignment start, double lower, double seconds, bool shortcut,
                 Partition& totals) {
  const PairTable pairs(part);
  double cost = costOf(part, start);
  lower = std::min(cost, std::max(lower, lowerBound(part, pairs)));
  const auto proven = [&] { return shortcut && cost - lower <= 1e-9 * (1 + cost); };
  if (proven()) return {start, cost, cost};
  const Deadline deadline(seconds);
  int fewest = 0;
  if (shortcut) {
    StagedPartition staged =
        solveStages(part, pairs, improve(part, pairs, start), Deadline(kShareOfStages * seconds));
    start = std::move(staged.cluster);
    cost = costOf(part, start);
    lower = std::max(lower, std::min(cost, staged.bound));
    fewest = staged.fewest;
    if (proven()) return {start, cost, cost};
  }
  start = improve(part, pairs, anneal(part, pairs, start, kShareOfAnnealing * seconds));
  const int clusters = 1 + *std::max_element(start.begin(), start.end());
  if (shortcut && part.nodes >= kLargeClusters * clusters)
    start = solveAgain(part, pairs, start, Deadline(kShareOfSolvingAgain * seconds));
  cost = costOf(part, start);
  if (proven()) return {start, cost, cost};
  const ClusterSearchResult search = searchClusters(part, start, lower, deadline.secondsLeft(), fewest);
  totals.columns += search.columns;
  totals.rows += search.rows;
  totals.cuts += search.cuts;
  return {search.cluster, costOf(part, search.cluster), search.bound};
}

}  // namespace

Partition solveIlp(const PartitionProblem& problem, const PairTable& pairs, const IlpOptions& options) {
  const Deadline deadline(options.seconds);
  Partition result;
  const Assignment group = options.contract ? contractionGroups(problem, pairs) : separate(problem.nodes);
  const PartitionProblem small = contracted(problem, group);
  const PairTable table(small);
  result.contracted = problem.nodes - small.nodes;

  // A good clustering of the whole, from which every part starts.
  Assignment whole = improve(small, table, solveGreedy(small, table));
  if (small.nodes > kNodesProven) {
    const double wholeCost = costOf(small, whole);
    if (wholeCost - lowerBound(small, table) > 1e-9 * (1 + wholeCost))
      whole = anneal(small, table, whole, kShareOfAnnealing * options.seconds);
  }

  Assignment component = sharingComponents(table, small.nodes);
  std::vector<Solved> solved(small.nodes);  // by component
  std::vector<bool> done(small.nodes, false);
  std::vector<double> lower(small.nodes, 0.0);  // of joined components: the bounds of their parts
  Assignment cluster(small.nodes);
  for (;;) {
    std::vector<std::vector<int>> members(small.nodes);
    for (int v = 0; v < small.nodes; ++v) members[component[v]].push_back(v);
    std::vector<int> open;
    result.components = 0;
    for (int c = 0; c < small.nodes; ++c) {
      if (members[c].empty()) continue;
      ++result.components;
      if (members[c].size() == 1) {
        solved[c] = {{0}, 0.0, 0.0};
      } else if (!done[c]) {
        open.push_back(c);
      }
    }
    // The small ones first: what they leave of their time goes to the larger ones.
    std::stable_sort(open.begin(), open.end(),
                     [&](int a, int b) { return members[a].size() < members[b].size(); });
    const auto effort = [&](int c) { return std::pow(static_cast<double>(members[c].size()), 2); };
    double efforts = 0;
    for (int c : open) efforts += effort(c);
    for (int c : open) {
      Assignment start;
      for (int v : members[c]) start.push_back(whole[v]);
      const double share = effort(c) / efforts;
      efforts -= effort(c);
      solved[c] = solvePart(restricted(small, table, members[c]), normalised(start), lower[c],
                            share * std::max(0.0, deadline.secondsLeft()), options.shortcut, result);
      done[c] = true;
    }
    int numbered = 0;
    for (int c = 0; c < small.nodes; ++c) {
      int used = 0;
      for (size_t k = 0; k < members[c].size(); ++k) {
        cluster[members[c][k]] = numbered + solved[c].cluster[k];
        used = std::max(used, solved[c].cluster[k] + 1);
      }
      numbered += used;
    }
    cluster = normalised(cluster);
    if (clusterOrder(small, cluster)) break;
    // The components that meet in a cycle must be solved as one.
    const std::vector<bool> cyclic = onCycles(small, cluster);
    int joined = small.nodes;
    std::vector<bool> joins(small.nodes, false);
    for (int v = 0; v < small.nodes; ++v) {
      if (!cyclic[cluster[v]] || members[component[v]].size() == 1) continue;
      joins[component[v]] = true;
      joined = std::min(joined, component[v]);
    }
    double sum = 0;
    for (int c = 0; c < small.nodes; ++c) sum += joins[c] ? solved[c].bound : 0;
    for (int& c : component) {
      if (joins[c]) c = joined;
    }
    lower[joined] = sum;
    done[joined] = false;
  }

  result.cluster.resize(problem.nodes);
  for (int v = 0; v < problem.nodes; ++v) result.cluster[v] = cluster[group[v]];
  result.cluster = normalised(result.cluster);
  result.cost = costOf(problem, result.cluster);
  double slack = 0;
  std::vector<bool> counted(small.nodes, false);
  for (int c : component) {
    if (!counted[c]) slack += std::max(0.0, solved[c].cost - solved[c].bound);
    counted[c] = true;
  }
  result.bound = slack <= 1e-9 * (1 + result.cost) ? result.cost : result.cost - slack;
  if (!result.proven()) {  // a search cut short may have missed what greedy finds on the whole
    const Assignment greedy = solveGreedy(problem, pairs);
    if (costOf(problem, greedy) < result.cost) {
      result.cluster = greedy;
      result.cost = costOf(problem, greedy);
    }
  }
  result.seconds = deadline.secondsSpent();
  return result;
}

}  // namespace kelpie::fusion

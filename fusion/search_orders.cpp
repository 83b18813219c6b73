#include "fusion/search_orders.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "fusion/restricted_problem.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_part.h"

namespace kelpie::fusion {
namespace {

constexpr double kShareOfAPart = 0.25;  ///< of the time that is left, at most

struct Place {
  std::vector<PartitionEdge> edges;  ///< beside those of the problem
  std::vector<Assignment> clusters;  ///< by component
  std::vector<double> bounds;        ///< by component
  double bound = 0;
};

/// What solving a component depends on: who may share in it, and what paths there are.
using Key = std::pair<size_t, std::vector<bool>>;

class OrderSearch {
 public:
  OrderSearch(const PartitionProblem& problem, const std::vector<SolvedComponent>& components,
              const Assignment& incumbent, const Deadline& deadline)
      : problem_(problem),
        components_(components),
        deadline_(deadline),
        best_(incumbent),
        cost_(costOf(problem, incumbent)) {}

  SearchedOrders run() {
    Place root;
    for (const SolvedComponent& c : components_) {
      root.clusters.push_back(c.cluster);
      root.bounds.push_back(c.bound);
      root.bound += c.bound;
    }
    add(std::move(root));
    while (!open_.empty() && open_.begin()->first < enough() && !deadline_.passed()) {
      const Place place = std::move(open_.begin()->second);
      open_.erase(open_.begin());
      if (!branch(place)) {
        open_.emplace(place.bound, place);
        break;
      }
    }
    const double open = open_.empty() ? cost_ : open_.begin()->first;
    return {best_, std::min(cost_, open)};
  }

 private:
  /// What is as good as the best known is not looked at.
  double enough() const { return cost_ - negligible(cost_, problem_.nodes); }

  Assignment whole(const Place& place) const {
    Assignment cluster(problem_.nodes);
    for (size_t c = 0; c < components_.size(); ++c) {
      const std::vector<int>& nodes = components_[c].nodes;
      for (size_t k = 0; k < nodes.size(); ++k) {
        // Numbers that no other component has: that of the cluster's first node.
        const auto first =
            std::find(place.clusters[c].begin(), place.clusters[c].end(), place.clusters[c][k]);
        cluster[nodes[k]] = nodes[first - place.clusters[c].begin()];
      }
    }
    return cluster;
  }

  void add(Place place) {
    const Assignment cluster = normalised(whole(place));
    const double cost = costOf(problem_, cluster);
    if (cost < enough() && !illegal(problem_, cluster)) {
      cost_ = cost;
      best_ = cluster;
    }
    if (place.bound < enough()) open_.emplace(place.bound, std::move(place));
  }

  /// False if that is not done: no cycle tells how, as a component is not solved, or time is up.
  bool branch(const Place& place) {
    PartitionProblem problem = problem_;
    problem.edges.insert(problem.edges.end(), place.edges.begin(), place.edges.end());
    const PairTable pairs(problem);
    const std::vector<PartitionEdge> cycle = cycleOf(problem, pairs, whole(place));
    if (cycle.empty()) return false;
    for (size_t k = 0; k < cycle.size(); ++k) {
      const int entered = cycle[k].to, left = cycle[(k + 1) % cycle.size()].from;
      if (entered == left || pairs.reaches(entered, left)) continue;
      Place next = place;
      next.edges.push_back({left, entered, false});
      problem.edges.push_back(next.edges.back());
      if (solve(problem, next)) add(std::move(next));
      problem.edges.pop_back();
      if (deadline_.passed()) return false;
    }
    return true;
  }

  /// The components of a place whose problem this is. False if that costs too much.
  bool solve(const PartitionProblem& problem, Place& place) {
    const PairTable pairs(problem);
    place.bound = 0;
    for (size_t c = 0; c < components_.size(); ++c) {
      solve(problem, pairs, c, place);
      place.bound += place.bounds[c];
    }
    return place.bound < enough();
  }

  void solve(const PartitionProblem& problem, const PairTable& pairs, size_t c, Place& place) {
    const std::vector<int>& nodes = components_[c].nodes;
    Key key{c, {}};
    for (int a : nodes) {
      for (int b : nodes) {
        key.second.push_back(pairs.canShare(a, b));
        key.second.push_back(pairs.reaches(a, b));
      }
    }
    const auto found = solved_.find(key);
    if (found != solved_.end()) {
      place.clusters[c] = found->second.first;
      place.bounds[c] = std::max(place.bounds[c], found->second.second);
      return;
    }
    PartitionProblem part = restricted(problem, pairs, nodes);
    if (illegal(part, place.clusters[c])) {
      const PairTable own(part);
      const Assignment start = improve(part, own, solveGreedy(part, own));
      PartSolver solver(std::move(part), start, place.bounds[c], true);
      solver.run(kShareOfAPart * deadline_.secondsLeft());
      place.clusters[c] = solver.cluster();
      place.bounds[c] = solver.bound();
    }
    solved_[key] = {place.clusters[c], place.bounds[c]};
  }

  /// Edges between clusters: of those between the same two the one that would part most.
  static std::map<std::pair<int, int>, PartitionEdge> links(const PartitionProblem& problem,
                                                            const PairTable& pairs,
                                                            const Assignment& cluster) {
    std::vector<double> before(problem.nodes, 1), behind(problem.nodes, 1);  // in the cluster, with the node
    for (int a = 0; a < problem.nodes; ++a) {
      for (int b = 0; b < problem.nodes; ++b) {
        if (cluster[a] != cluster[b] || !pairs.reaches(a, b)) continue;
        ++behind[a];
        ++before[b];
      }
    }
    std::map<std::pair<int, int>, PartitionEdge> result;
    std::map<std::pair<int, int>, double> parted;
    for (const PartitionEdge& e : problem.edges) {
      const std::pair<int, int> ends{cluster[e.from], cluster[e.to]};
      // What is before where a cluster is left would be parted from what is behind where it is entered.
      const double parts = before[e.from] * behind[e.to];
      if (ends.first == ends.second || parts <= parted[ends]) continue;
      parted[ends] = parts;
      result[ends] = e;
    }
    return result;
  }

  /// A shortest cycle of clusters; empty if there is none.
  static std::vector<PartitionEdge> cycleOf(const PartitionProblem& problem, const PairTable& pairs,
                                            const Assignment& cluster) {
    const std::map<std::pair<int, int>, PartitionEdge> edges = links(problem, pairs, cluster);
    std::map<int, std::vector<int>> out;
    for (const auto& [ends, edge] : edges) out[ends.first].push_back(ends.second);
    std::vector<PartitionEdge> best;
    for (const auto& [start, first] : out) {
      std::map<int, int> from;  // by cluster: where it was reached from
      std::vector<int> reached{start};
      for (size_t k = 0; k < reached.size() && from.count(start) == 0; ++k) {
        for (int next : out[reached[k]])
          if (from.emplace(next, reached[k]).second) reached.push_back(next);
      }
      if (from.count(start) == 0) continue;
      std::vector<PartitionEdge> cycle;
      for (int c = start; cycle.empty() || c != start; c = from[c]) cycle.push_back(edges.at({from[c], c}));
      std::reverse(cycle.begin(), cycle.end());
      if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
    }
    return best;
  }

  const PartitionProblem& problem_;
  const std::vector<SolvedComponent>& components_;
  const Deadline& deadline_;
  std::vector<size_t> component_;      ///< by node
  std::multimap<double, Place> open_;  ///< by bound
  std::map<Key, std::pair<Assignment, double>> solved_;
  Assignment best_;
  double cost_;
};

}  // namespace

SearchedOrders searchOrders(const PartitionProblem& problem, const std::vector<SolvedComponent>& components,
                            const Assignment& incumbent, const Deadline& deadline) {
  return OrderSearch(problem, components, incumbent, deadline).run();
}

}  // namespace kelpie::fusion

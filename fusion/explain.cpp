#include "fusion/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "fusion/contraction.h"
#include "fusion/rules.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_ilp.h"
#include "ir/lcu_names.h"

namespace kelpie::fusion {
namespace {

using lcu::SoacKind;

struct Traffic {
  double read = 0, written = 0;  ///< bytes
  MemoryTime time;
};

/// Whether an array is needed outside the cluster that makes it.
bool leaves(const Store& store, const Assignment& cluster) {
  return store.outlives || std::any_of(store.readers.begin(), store.readers.end(),
                                       [&](int r) { return cluster[r] != cluster[store.producer]; });
}

/// Whether survivors of a filter are stored, themselves or what is computed from them; if they only go into
/// reductions or are counted, the filter is a condition in these.
bool survivorsAreStored(int node, const Assignment& cluster, const RegionProblem& region,
                        std::set<int>& seen) {
  if (!seen.insert(node).second) return false;
  const PartitionProblem& p = region.problem;
  for (size_t k = 0; k < p.stores.size(); ++k) {
    const Store& store = p.stores[k];
    if (store.producer != node || region.countsSurvivors[k]) continue;
    if (leaves(store, cluster)) return true;
    for (int r : store.readers) {
      if (region.rest[r].kind != SoacKind::Reduce && survivorsAreStored(r, cluster, region, seen))
        return true;
    }
  }
  return false;
}

/// What one cluster loads and stores.
Traffic trafficOf(int number, const Assignment& cluster, const RegionProblem& region) {
  Traffic traffic;
  const PartitionProblem& p = region.problem;
  for (size_t k = 0; k < p.accesses.size(); ++k) {
    const Access& a = p.accesses[k];
    if (a.producer >= 0 && cluster[a.producer] == number) continue;
    if (std::none_of(a.readers.begin(), a.readers.end(), [&](int r) { return cluster[r] == number; }))
      continue;
    traffic.read += region.accessBytes[k];
    traffic.time.loads += a.cost;
  }
  for (size_t k = 0; k < p.stores.size(); ++k) {
    const Store& s = p.stores[k];
    if (cluster[s.producer] != number) continue;
    if (!leaves(s, cluster)) continue;
    traffic.written += region.storeBytes[k];
    traffic.time.stores += s.cost;
  }
  return traffic;
}

std::string oneLine(const std::string& text) {
  std::string result;
  for (char c : text) {
    const bool space = c == '\n' || c == ' ';
    if (!space) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  return result;
}

}  // namespace

const char* toString(PairCause cause) {
  constexpr const char* kNames[] = {"together", "edge",   "path",  "outsider", "requirement",
                                    "spaces",   "budget", "cycle", "cost"};
  return kNames[static_cast<size_t>(cause)];
}

namespace {

class PairExplainer {
 public:
  PairExplainer(const DependenceGraph& graph, const RegionProblem& region, const PairTable& pairs,
                const Assignment& cluster, Strategy strategy)
      : graph_(graph),
        region_(region),
        pairs_(pairs),
        cluster_(cluster),
        strategy_(strategy),
        cost_(costOf(region.problem, cluster)) {
    for (const SpaceConflict& c : graph.conflicts) conflicts_[{c.a, c.b}] = c.reason;
    for (const GraphEdge& e : graph.edges) edges_[{e.from, e.to}] = &e;
  }

  PairReport explain(int a, int b) const {
    PairReport report;
    report.a = a;
    report.b = b;
    report.together = cluster_[a] == cluster_[b];
    const auto edge = edges_.find({a, b});
    const bool fusibleEdge = edge != edges_.end() && edge->second->fusible;
    if (pairs_.canShare(a, b))
      report.rule = ruleName(*graph_.nodes[a].soac, *graph_.nodes[b].soac, fusibleEdge);
    if (report.together) {
      report.reason = together(a, b, edge == edges_.end() ? nullptr : edge->second);
    } else {
      std::tie(report.cause, report.reason) = apart(a, b);
    }
    return report;
  }

 private:
  const std::string& label(int v) const { return graph_.nodes[v].label; }

  std::string together(int a, int b, const GraphEdge* edge) const {
    if (edge) return fmt::format("{} {}", label(b), edge->reason);
    const std::string shared = sharedInput(a, b);
    return shared.empty() ? "the same elements" : shared;
  }

  std::string sharedInput(int a, int b) const {
    for (const Access& access : region_.problem.accesses) {
      const auto reads = [&](int v) {
        return std::find(access.readers.begin(), access.readers.end(), v) != access.readers.end();
      };
      if (reads(a) && reads(b)) return "the same elements, and a common input";
    }
    return "";
  }

  using Reason = std::pair<PairCause, std::string>;

  Reason apart(int a, int b) const {
    const PairVerdict verdict = pairs_.verdict(a, b);
    switch (verdict.kind) {
      case PairVerdict::Kind::BlockingEdge:
        return {PairCause::Edge, edgeReason(verdict.from, verdict.to)};
      case PairVerdict::Kind::BlockingPath:
        return {PairCause::Path,
                fmt::format("on the path between them, {}", edgeReason(verdict.from, verdict.to))};
      case PairVerdict::Kind::PathOutside:
        return {PairCause::Outsider,
                fmt::format("{} lies between them and cannot share a kernel with both", label(verdict.from))};
      case PairVerdict::Kind::Requirement:
        return {
            PairCause::Requirement,
            fmt::format("only together with {}, which cannot share a kernel with both", label(verdict.from))};
      case PairVerdict::Kind::Forbidden: {
        std::string reason = conflicts_.at(std::minmax(a, b));
        for (int v : {a, b}) {
          if (!graph_.liftObstacle[v].empty())
            reason += fmt::format("; {} {}", label(v), graph_.liftObstacle[v]);
        }
        return {PairCause::Spaces, reason};
      }
      case PairVerdict::Kind::Budget:
        return overBudget(region_.problem.weight[a] + region_.problem.weight[b]);
      case PairVerdict::Kind::Possible:
        break;
    }
    return byCost(a, b);
  }

  std::string edgeReason(int from, int to) const {
    return fmt::format("{} {}", label(to), edges_.at({from, to})->reason);
  }

  Reason overBudget(double weight) const {
    return {
        PairCause::Budget,
        fmt::format(
            "scans, filters and partitions of their kernel would take {:g} bytes an element, more than {:g}",
            weight, region_.problem.budget)};
  }

  /// Nothing forbids the pair: what does the best schedule cost that has them together?
  Reason byCost(int a, int b) const {
    const PartitionProblem& p = region_.problem;
    const Assignment group = closure(a, b);
    double weight = 0;
    for (int u = 0; u < p.nodes; ++u) {
      if (group[u] != group[a]) continue;
      weight += p.weight[u];
      for (int v = 0; v < u; ++v) {
        if (group[v] != group[a] || pairs_.canShare(u, v)) continue;
        return {PairCause::Requirement,
                fmt::format("only together with {} and {}, which cannot share a kernel", label(v), label(u))};
      }
    }
    if (weight > p.budget) return overBudget(weight);
    if (!clusterOrder(p, group)) return {PairCause::Cycle, "together they would depend on themselves"};
    const bool small = *std::max_element(group.begin(), group.end()) < kNodesSolvedForOnePair;
    bool proven = false;
    double other = small ? 0 : costNearby(group, a);
    if (small || !std::isfinite(other)) {
      const PartitionProblem forced = contracted(p, group);
      const PairTable pairs(forced);
      Partition best;
      if (small) {
        best = solveIlp(forced, pairs, {kSecondsForOnePair, true, true});
      } else {
        best.cluster = solveGreedy(forced, pairs);
      }
      proven = small && best.proven();
      other = costOf(p, expanded(best.cluster, group));
    }
    const double more = other - cost_;
    const char* qualifier = proven ? "the best" : "a good";
    if (std::abs(more) <= 1e-9 * (1 + cost_))
      return {PairCause::Cost, fmt::format("{} schedule with both together takes as long", qualifier)};
    return {PairCause::Cost,
            fmt::format("{}: {} schedule with both together takes {:.2f} us instead of {:.2f}",
                        more > 0 ? "by cost" : whoMissed(), qualifier, cost_ + more, cost_)};
  }

  /// The least cost of the schedules that differ little from this one and have the group of `a` together: in
  /// one of the kernels that its members are in, in one of their own, or with all of these kernels merged.
  /// Infinite: none is legal.
  double costNearby(const Assignment& group, int a) const {
    const PartitionProblem& p = region_.problem;
    std::set<int> homes;
    for (int v = 0; v < p.nodes; ++v)
      if (group[v] == group[a]) homes.insert(cluster_[v]);
    const auto moved = [&](int to, bool whole) {
      Assignment result = cluster_;
      for (int v = 0; v < p.nodes; ++v)
        if (group[v] == group[a] || (whole && homes.contains(cluster_[v]))) result[v] = to;
      return normalised(result);
    };
    std::vector<Assignment> candidates = {moved(p.nodes, false), moved(p.nodes, true)};
    for (int home : homes) candidates.push_back(moved(home, false));
    double least = std::numeric_limits<double>::infinity();
    for (const Assignment& candidate : candidates)
      if (!illegal(p, candidate)) least = std::min(least, costOf(p, candidate));
    return least;
  }

  std::string whoMissed() const {
    if (strategy_ == Strategy::None) return "nothing is fused";
    if (strategy_ == Strategy::Ilp) return "not found in time";
    return fmt::format("missed by {}", toString(strategy_));
  }

  /// The pair as one group with all that must then be with it.
  Assignment closure(int a, int b) const {
    const PartitionProblem& p = region_.problem;
    std::vector<bool> in(p.nodes, false);
    in[a] = in[b] = true;
    for (bool changed = true; changed;) {
      changed = false;
      const auto add = [&](int v) {
        changed |= !in[v];
        in[v] = true;
      };
      for (const Requirement& r : p.requirements) {
        if (in[r.a] && in[r.b]) add(r.third);
      }
      for (int w = 0; w < p.nodes; ++w) {
        bool after = false, before = false;
        for (int v = 0; v < p.nodes; ++v) {
          after |= in[v] && pairs_.reaches(v, w);
          before |= in[v] && pairs_.reaches(w, v);
        }
        if (after && before) add(w);
      }
    }
    Assignment group = separate(p.nodes);
    for (int u = 0; u < p.nodes; ++u) {
      if (in[u]) group[u] = p.nodes;
    }
    return normalised(group);
  }

  static Assignment expanded(const Assignment& cluster, const Assignment& group) {
    Assignment result;
    for (int g : group) result.push_back(cluster[g]);
    return normalised(result);
  }

  static constexpr int kNodesSolvedForOnePair =
      50;  ///< beyond, schedules near this one say what a pair costs
  static constexpr double kSecondsForOnePair = 0.1;

  const DependenceGraph& graph_;
  const RegionProblem& region_;
  const PairTable& pairs_;
  const Assignment& cluster_;
  const Strategy strategy_;
  const double cost_;
  std::map<std::pair<int, int>, std::string> conflicts_;
  std::map<std::pair<int, int>, const GraphEdge*> edges_;
};

}  // namespace

RegionReport describeRegion(const std::string& name, const DependenceGraph& graph,
                            const lcu::Program& program, bool texts) {
  RegionReport report;
  report.function = name;
  for (const GraphNode& node : graph.nodes) {
    NodeReport n;
    n.name = node.label;
    n.kernel = node.soac != nullptr;
    n.kind = node.soac ? (node.soac->space.segmented() ? "SEG_" : "") + std::string(toString(node.soac->kind))
                       : node.label;
    n.span = node.soac && node.soac->span.known() ? node.soac->span : node.stmt->span;
    if (node.soac && texts)
      n.text = oneLine(lcu::toString(std::get<lcu::Launch>(node.stmt->node).kernel, program));
    report.nodes.push_back(std::move(n));
  }
  for (const GraphEdge& e : graph.edges) {
    report.edges.push_back({e.from, e.to, toString(e.edgeClass), e.fusible, e.reason});
  }
  return report;
}

/// Modelled microseconds of one launch of a cluster, from its members as they are before fusion.
static double predictedTime(int number, const Assignment& cluster, const RegionProblem& region,
                            const CostModel& model) {
  bool kernel = false;
  std::vector<SoacTime> members;
  for (size_t v = 0; v < cluster.size(); ++v) {
    if (cluster[v] != number) continue;
    kernel |= region.problem.launch[v] > 0;
    members.push_back(region.rest[v]);
    std::set<int> seen;
    if (members.back().kind == SoacKind::Filter &&
        !survivorsAreStored(static_cast<int>(v), cluster, region, seen))
      members.back().collective = members.back().exposed = 0;
  }
  return kernel ? model.predicted(trafficOf(number, cluster, region).time, members) : 0;
}

StrategyReport describeStrategy(Strategy strategy, const Partition& partition, const RegionProblem& problem,
                                const CostModel& model) {
  StrategyReport report;
  report.strategy = strategy;
  report.objective = partition.cost;
  report.bound = partition.bound;
  report.gap = partition.gap();
  report.seconds = partition.seconds;
  report.contracted = partition.contracted;
  report.columns = partition.columns;
  report.rows = partition.rows;
  report.cuts = partition.cuts;
  report.cluster = partition.cluster;
  int clusters = 0;
  for (int c : partition.cluster) clusters = std::max(clusters, c + 1);
  std::vector<bool> launches(clusters, false);
  for (int v = 0; v < problem.problem.nodes; ++v) {
    if (problem.problem.launch[v] > 0) launches[partition.cluster[v]] = true;
  }
  report.launches = static_cast<int>(std::count(launches.begin(), launches.end(), true));
  for (int c = 0; c < clusters; ++c) {
    const Traffic traffic = trafficOf(c, partition.cluster, problem);
    report.bytesRead += traffic.read;
    report.bytesWritten += traffic.written;
    report.microseconds += predictedTime(c, partition.cluster, problem, model);
  }
  return report;
}

/// The kernels of a cluster that run over the cluster's own elements.
static std::vector<std::string> anchoredMembers(const std::vector<int>& members,
                                                const DependenceGraph& graph) {
  const lcu::Soac* anchor = nullptr;
  const auto inside = [&](int v) { return std::find(members.begin(), members.end(), v) != members.end(); };
  const auto runsOverOwn = [&](int v) {
    const int filter = graph.liftedOver[v];
    return graph.nodes[v].soac && graph.nodes[v].soac->kind != SoacKind::Once &&
           (filter < 0 || !inside(filter));
  };
  for (int v : members) {
    const lcu::Soac* soac = graph.nodes[v].soac;
    if (runsOverOwn(v) && (!anchor || (soac->space.segmented() && !anchor->space.segmented()))) anchor = soac;
  }
  std::vector<std::string> result;
  for (int v : members) {
    if (runsOverOwn(v) && graph.nodes[v].soac->space == anchor->space) result.push_back(graph.nodes[v].label);
  }
  return result;
}

ClusterReport describeCluster(int number, const Assignment& cluster, const DependenceGraph& graph,
                              const lcu::Program& program, bool texts) {
  ClusterReport report;
  for (size_t v = 0; v < cluster.size(); ++v) {
    if (cluster[v] == number) report.nodes.push_back(static_cast<int>(v));
  }
  for (int v : report.nodes) {
    const lcu::Soac* soac = graph.nodes[v].soac;
    if (!texts || !soac || soac->kind == SoacKind::Once || graph.liftedOver[v] >= 0 || !report.space.empty())
      continue;
    report.space = fmt::format("{}{}", soac->space.segmented() ? "segments of " : "",
                               oneLine(lcu::toString(soac->space.extent, program)));
  }
  report.anchored = anchoredMembers(report.nodes, graph);
  return report;
}

std::vector<PairReport> explainPairs(const DependenceGraph& graph, const RegionProblem& problem,
                                     const PairTable& pairs, const Assignment& cluster, Strategy strategy) {
  const PairExplainer explainer(graph, problem, pairs, cluster, strategy);
  std::set<std::pair<int, int>> interesting;
  for (const GraphEdge& e : graph.edges) interesting.insert({e.from, e.to});
  for (const Access& a : problem.problem.accesses) {
    for (int u : a.readers) {
      for (int v : a.readers) {
        if (u < v) interesting.insert({u, v});
      }
    }
  }
  // Beyond these, what could share is a long list; beyond those, only pairs that have something to do with
  // each other.
  constexpr int kNodesForThoseAble = 60, kNodesForAllPairs = 200;
  const int nodes = problem.problem.nodes, n = nodes <= kNodesForAllPairs ? nodes : 0;
  std::set<std::pair<int, int>> all = interesting;
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      all.insert({a, b});
      if (nodes <= kNodesForThoseAble && pairs.canShare(a, b)) interesting.insert({a, b});
    }
  }
  std::vector<PairReport> result;
  for (auto [a, b] : all) {
    if (!graph.nodes[a].soac || !graph.nodes[b].soac) continue;
    result.push_back(explainer.explain(a, b));
    result.back().ofInterest = interesting.contains({a, b});
  }
  return result;
}

}  // namespace kelpie::fusion

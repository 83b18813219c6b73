#include "fusion/explain_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "fusion/cheapest_together.h"
#include "fusion/parallel.h"
#include "fusion/rules.h"

namespace kelpie::fusion {

const char* toString(PairCause cause) {
  constexpr const char* kNames[] = {"together", "edge",   "path",  "outsider", "requirement",
                                    "spaces",   "budget", "cycle", "cost"};
  return kNames[static_cast<size_t>(cause)];
}

namespace {

constexpr double kShown = 0.01;  ///< microseconds; smaller differences are not told as numbers

class PairExplainer {
 public:
  PairExplainer(const DependenceGraph& graph, const RegionProblem& region, const PairTable& pairs,
                const Assignment& cluster, Strategy strategy, const std::vector<Partition>& solved,
                FoundCosts& found)
      : graph_(graph),
        region_(region),
        pairs_(pairs),
        cluster_(cluster),
        strategy_(strategy),
        cost_(costOf(region.problem, cluster)),
        cheapest_(region.problem, pairs, cluster, solved, &found) {
    for (const SpaceConflict& c : graph.conflicts) conflicts_[{c.a, c.b}] = c.reason;
    for (const GraphEdge& e : graph.edges) edges_[{e.from, e.to}] = &e;
  }

  /// Whether it takes a search to tell what keeps them apart.
  bool byCost(int a, int b) const { return cluster_[a] != cluster_[b] && pairs_.canShare(a, b); }

  PairReport explain(int a, int b, CountedWork& work) const {
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
      std::tie(report.cause, report.reason) =
          pairs_.canShare(a, b) ? costReason(a, b, work) : forbidden(a, b, pairs_.verdict(a, b));
    }
    return report;
  }

 private:
  using Reason = std::pair<PairCause, std::string>;

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

  Reason forbidden(int a, int b, const PairVerdict& verdict) const {
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
      case PairVerdict::Kind::Budget:
        return {PairCause::Budget, overBudget("in their kernel", weightOf({a, b}))};
      default:
        break;
    }
    std::string reason = conflicts_.at(std::minmax(a, b));
    for (const auto& [v, other] : {std::pair(a, b), std::pair(b, a)})
      if (runsOverElementsOf(other, graph_.obstructedFilter[v]))
        reason += fmt::format("; {} {}", label(v), graph_.liftObstacle[v]);
    return {PairCause::Spaces, reason};
  }

  /// Whether a kernel runs, or may run, over the elements of a filter (none: -1).
  bool runsOverElementsOf(int v, int filter) const {
    if (filter < 0) return false;
    for (; v >= 0; v = graph_.liftedOver[v])
      if (graph_.nodes[v].soac->space.extent == graph_.nodes[filter].soac->space.extent) return true;
    return false;
  }

  std::string edgeReason(int from, int to) const {
    return fmt::format("{} {}", label(to), edges_.at({from, to})->reason);
  }

  double weightOf(const std::vector<int>& nodes) const {
    double weight = 0;
    for (int v : nodes) weight += region_.problem.weight[v];
    return weight;
  }

  /// All that is in the kernel of one of them.
  std::vector<int> clustersOf(int a, int b) const {
    std::vector<int> members;
    for (int v = 0; v < region_.problem.nodes; ++v)
      if (cluster_[v] == cluster_[a] || cluster_[v] == cluster_[b]) members.push_back(v);
    return members;
  }

  std::string overBudget(const char* where, double weight) const {
    return fmt::format("{} scans, filters and partitions would take {:g} bytes an element, more than {:g}",
                       where, weight, region_.problem.budget);
  }

  /// No rule is between the two: what goes with them may be apart, and otherwise it is a matter of cost.
  Reason costReason(int a, int b, CountedWork& work) const {
    const PartitionProblem& p = region_.problem;
    const std::vector<int> needed = closure(a, b, work);
    for (int u : needed) {
      for (int v : needed) {
        if (v >= u || pairs_.canShare(u, v)) continue;
        return {PairCause::Requirement,
                fmt::format("only together with {} and {}, which cannot share a kernel", label(v), label(u))};
      }
    }
    if (const double weight = weightOf(needed); weight > p.budget)
      return {PairCause::Budget, overBudget("in their kernel", weight)};
    Assignment group = separate(p.nodes);
    for (int v : needed) group[v] = p.nodes;
    group = normalised(group);
    work.spend(p.nodes + static_cast<int64_t>(p.edges.size()));
    if (!clusterOrder(p, group)) return {PairCause::Cycle, "together they would depend on themselves"};
    const TogetherCost other = work.spent() ? TogetherCost() : cheapest_.of(group, a, work);
    if (!other.found())
      return {PairCause::Cost, "no schedule with both was priced; in this one, " + obstacle(a, b)};
    const char* qualifier = other.proven ? "the best schedule" : "the best schedule found";
    if (std::abs(other.cost - cost_) <= 1e-9 * (1 + cost_)) {
      const double weight = weightOf(clustersOf(a, b));
      return {
          PairCause::Cost,
          fmt::format(
              "{} with both together takes as long{}", qualifier,
              weight > p.budget ? "; " + overBudget("in a kernel of all that is with them,", weight) : "")};
    }
    if (std::abs(other.cost - cost_) < kShown)
      return {PairCause::Cost, fmt::format("{}: {} with both together takes {:.2f} us, {} by less than {} us",
                                           other.cost > cost_ ? "by cost" : whoMissed(), qualifier,
                                           other.cost, other.cost > cost_ ? "longer" : "shorter", kShown)};
    return {PairCause::Cost,
            fmt::format("{}: {} with both together takes {:.2f} us instead of {:.2f}",
                        other.cost > cost_ ? "by cost" : whoMissed(), qualifier, other.cost, cost_)};
  }

  std::string whoMissed() const {
    if (strategy_ == Strategy::None) return "nothing is fused";
    if (strategy_ == Strategy::Ilp) return "not found in time";
    return fmt::format("missed by {}", toString(strategy_));
  }

  /// The pair with all that must then be with it, in order.
  std::vector<int> closure(int a, int b, CountedWork& work) const {
    const PartitionProblem& p = region_.problem;
    std::vector<bool> in(p.nodes, false);
    std::vector<int> members;
    const auto add = [&](int v) {
      if (in[v]) return;
      in[v] = true;
      members.push_back(v);
    };
    add(a);
    add(b);
    for (size_t before = 0; before != members.size();) {
      before = members.size();
      work.spend(static_cast<int64_t>(p.requirements.size() + p.nodes * before));
      for (const Requirement& r : p.requirements)
        if (in[r.a] && in[r.b]) add(r.third);
      for (int w = 0; w < p.nodes; ++w) {
        const auto some = [&](const auto& holds) {
          return std::any_of(members.begin(), members.end(), holds);
        };
        if (!in[w] && some([&](int v) { return pairs_.reaches(v, w); }) &&
            some([&](int v) { return pairs_.reaches(w, v); }))
          add(w);
      }
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  /// What keeps the clusters that the two are in from being one; if nothing does, what that would take.
  std::string obstacle(int a, int b) const {
    const PartitionProblem& p = region_.problem;
    const std::vector<int> members = clustersOf(a, b);
    for (int u : members) {
      for (int v : members) {
        if (cluster_[u] != cluster_[a] || cluster_[v] != cluster_[b] || pairs_.canShare(u, v)) continue;
        const auto with = [&](int x, int home) {
          return x == home ? label(x) : fmt::format("{}, in a kernel with {},", label(x), label(home));
        };
        return fmt::format("{} cannot share a kernel with {}", with(u, a),
                           v == b ? label(v) : fmt::format("{}, which is with {}", label(v), label(b)));
      }
    }
    if (const double weight = weightOf(members); weight > p.budget)
      return overBudget("in a kernel of all that is with them,", weight);
    for (const Requirement& r : p.requirements) {
      const auto inside = [&](int v) { return cluster_[v] == cluster_[a] || cluster_[v] == cluster_[b]; };
      if (inside(r.a) && inside(r.b) && !inside(r.third))
        return fmt::format("{} would have to be in their kernel, too", label(r.third));
    }
    Assignment merged = cluster_;
    for (int v : members) merged[v] = cluster_[a];
    merged = normalised(merged);
    if (!clusterOrder(p, merged)) return "the kernels that they are in would depend on themselves as one";
    return fmt::format("the kernels that they are in as one would make it {:.2f} us instead of {:.2f}",
                       costOf(p, merged), cost_);
  }

  const DependenceGraph& graph_;
  const RegionProblem& region_;
  const PairTable& pairs_;
  const Assignment& cluster_;
  const Strategy strategy_;
  const double cost_;
  const CheapestTogether cheapest_;
  std::map<std::pair<int, int>, std::string> conflicts_;
  std::map<std::pair<int, int>, const GraphEdge*> edges_;
};

/// Some searches side by side, then the next ones: each gets an equal share of the work that is left for it
/// and those behind it. Who gets what depends on counted work alone.
void searchInTurns(int searches, const std::function<void(int search, CountedWork& work)>& search) {
  constexpr int64_t kStepsOfRegion = 600'000'000, kStepsOfPair = 20'000'000;
  constexpr int kTogether = 16, kWorthAThread = 2, kMostThreads = 8;
  int64_t left = kStepsOfRegion;
  for (int first = 0; first < searches; first += kTogether) {
    const int64_t share = std::min(kStepsOfPair, left / (searches - first));
    std::vector<int64_t> unspent(static_cast<size_t>(std::min(kTogether, searches - first)));
    const auto one = [&](int k) {
      CountedWork work(share);
      search(first + k, work);
      unspent[static_cast<size_t>(k)] = work.left();
    };
    forEachNumber(static_cast<int>(unspent.size()), one, kWorthAThread, kMostThreads);
    for (int64_t steps : unspent) left = std::max<int64_t>(0, left - (share - steps));
  }
}

}  // namespace

std::vector<PairReport> explainPairs(const DependenceGraph& graph, const RegionProblem& problem,
                                     const PairTable& pairs, const Assignment& cluster, Strategy strategy,
                                     const std::vector<Partition>& solved, FoundCosts& found) {
  const PairExplainer explainer(graph, problem, pairs, cluster, strategy, solved, found);
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
  // Pairs of interest first.
  std::vector<std::pair<int, int>> order;
  for (const bool first : {true, false}) {
    for (auto [a, b] : all)
      if (graph.nodes[a].soac && graph.nodes[b].soac && interesting.contains({a, b}) == first)
        order.emplace_back(a, b);
  }
  std::vector<PairReport> result(order.size());
  const auto explain = [&](size_t k, CountedWork& work) {
    const auto [a, b] = order[k];
    result[k] = explainer.explain(a, b, work);
    result[k].ofInterest = interesting.contains({a, b});
  };
  std::vector<size_t> searched;
  for (size_t k = 0; k < order.size(); ++k) {
    CountedWork none(0);
    if (explainer.byCost(order[k].first, order[k].second)) {
      searched.push_back(k);
    } else {
      explain(k, none);
    }
  }
  searchInTurns(static_cast<int>(searched.size()),
                [&](int k, CountedWork& work) { explain(searched[static_cast<size_t>(k)], work); });
  std::sort(result.begin(), result.end(), [](const PairReport& x, const PairReport& y) {
    return std::pair(x.a, x.b) < std::pair(y.a, y.b);
  });
  return result;
}

}  // namespace kelpie::fusion

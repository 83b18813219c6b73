#include "fusion/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

/// What stands nowhere in the program was made for what reads it, or else for the form.
static void findPlaces(RegionReport& report, const DependenceGraph& graph, const lcu::Program& program) {
  for (size_t v = report.nodes.size(); v-- > 0;) {
    Span& span = report.nodes[v].span;
    if (span.known() || !report.nodes[v].kernel) continue;
    for (const GraphEdge& e : graph.edges)
      if (!span.known() && e.from == static_cast<int>(v)) span = report.nodes[e.to].span;
    if (!span.known()) span = program.span;
  }
}

RegionReport describeRegion(const std::string& name, const DependenceGraph& graph,
                            const lcu::Program& program, const lcu::Names* names) {
  RegionReport report;
  report.function = name;
  for (const GraphNode& node : graph.nodes) {
    NodeReport n;
    n.name = node.label;
    n.kernel = node.soac != nullptr;
    if (node.soac) n.function = node.soac->origin;
    n.kind = node.soac ? (node.soac->space.segmented() ? "SEG_" : "") + std::string(toString(node.soac->kind))
                       : node.label;
    n.span = node.soac && node.soac->span.known() ? node.soac->span : node.stmt->span;
    if (node.soac && names)
      n.text = oneLine(lcu::toString(std::get<lcu::Launch>(node.stmt->node).kernel, program, *names));
    report.nodes.push_back(std::move(n));
  }
  findPlaces(report, graph, program);
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
                                const CostModel* model) {
  StrategyReport report;
  report.strategy = strategy;
  report.objective = partition.cost;
  if (strategy == Strategy::Ilp) {
    report.bound = partition.bound;
    report.gap = partition.gap();
  }
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
    if (model) report.microseconds += predictedTime(c, partition.cluster, problem, *model);
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
                              const lcu::Names* names) {
  ClusterReport report;
  for (size_t v = 0; v < cluster.size(); ++v) {
    if (cluster[v] == number) report.nodes.push_back(static_cast<int>(v));
  }
  for (int v : report.nodes) {
    const lcu::Soac* soac = graph.nodes[v].soac;
    if (!names || !soac || soac->kind == SoacKind::Once || !report.space.empty()) continue;
    if (graph.liftedOver[v] >= 0 && cluster[graph.liftedOver[v]] == number) continue;  // over the filter's
    report.space = fmt::format("{}{}", soac->space.segmented() ? "segments of " : "",
                               oneLine(lcu::toString(soac->space.extent, *names)));
  }
  report.anchored = anchoredMembers(report.nodes, graph);
  return report;
}

}  // namespace kelpie::fusion

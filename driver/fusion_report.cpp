#include "driver/fusion_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace kelpie::driver {

using fusion::ClusterReport;
using fusion::EdgeReport;
using fusion::NodeReport;
using fusion::PairReport;
using fusion::RegionReport;
using fusion::StrategyReport;

namespace {

const StrategyReport* chosenStrategy(const RegionReport& region) {
  for (const StrategyReport& strategy : region.strategies)
    if (strategy.strategy == region.chosen) return &strategy;
  return nullptr;
}

std::string bytes(double count) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; count >= 1000 && unit < 4; ++unit) count /= 1000;
  return fmt::format("{:.{}f} {}", count, unit == 0 || count >= 100 ? 0 : 1, units[unit]);
}

std::string listed(const std::vector<int>& nodes, const RegionReport& region) {
  std::string out;
  for (const int node : nodes) out += (out.empty() ? "" : ", ") + region.nodes[node].name;
  return out;
}

void writeRegion(std::string& out, const RegionReport& region, const SourceManager& sources) {
  out += fmt::format("\n  region of {}\n", region.function);
  for (const NodeReport& node : region.nodes)
    if (node.kernel)
      out += fmt::format("    {:<14} {:<12} {}\n", node.name, node.kind,
                         node.span.known() ? sources.describe(node.span) : "");

  if (!region.clusters.empty()) out += "\n    kernels\n";
  for (const ClusterReport& cluster : region.clusters) {
    if (cluster.kernel.empty()) continue;
    out +=
        fmt::format("      {} over {}: {}\n", cluster.kernel, cluster.space, listed(cluster.nodes, region));
    out +=
        fmt::format("        reads {}, writes {}, modelled {:.2f} us{}\n", bytes(cluster.bytesRead),
                    bytes(cluster.bytesWritten), cluster.microseconds,
                    cluster.rules.empty() ? "" : fmt::format("; rules {}", fmt::join(cluster.rules, ", ")));
  }

  if (!region.strategies.empty()) {
    out += fmt::format("\n    {:<9} {:>8} {:>10} {:>10} {:>12} {:>12} {:>7} {:>9}\n", "strategy", "launches",
                       "reads", "writes", "modelled us", "bound us", "gap", "solved ms");
    for (const StrategyReport& s : region.strategies)
      out += fmt::format("    {:<9} {:>8} {:>10} {:>10} {:>12.2f} {:>12.2f} {:>6.2f}% {:>9.2f}{}\n",
                         fusion::toString(s.strategy), s.launches, bytes(s.bytesRead), bytes(s.bytesWritten),
                         s.objective, s.bound, 100 * s.gap, 1000 * s.seconds,
                         s.strategy == region.chosen ? "  <- used" : "");
  }

  bool heading = false;
  for (const PairReport& pair : region.pairs) {
    if (!heading) out += "\n    pairs\n";
    heading = true;
    out += fmt::format("      {} and {}: {}\n", region.nodes[pair.a].name, region.nodes[pair.b].name,
                       pair.together ? fmt::format("together{}", pair.rule.empty() ? "" : " by " + pair.rule)
                                     : fmt::format("apart: {}", pair.reason));
  }
}

nlohmann::ordered_json toJson(const RegionReport& region, const SourceManager& sources) {
  using Json = nlohmann::ordered_json;
  Json nodes = Json::array(), edges = Json::array(), clusters = Json::array(), pairs = Json::array(),
       strategies = Json::array();
  for (const NodeReport& n : region.nodes)
    nodes.push_back({{"name", n.name},
                     {"kind", n.kind},
                     {"text", n.text},
                     {"place", n.span.known() ? sources.describe(n.span) : ""},
                     {"kernel", n.kernel}});
  for (const EdgeReport& e : region.edges)
    edges.push_back({{"from", e.from},
                     {"to", e.to},
                     {"class", e.edgeClass},
                     {"fusible", e.fusible},
                     {"reason", e.reason}});
  for (const ClusterReport& c : region.clusters)
    clusters.push_back({{"kernel", c.kernel},
                        {"space", c.space},
                        {"nodes", c.nodes},
                        {"rules", c.rules},
                        {"bytesRead", c.bytesRead},
                        {"bytesWritten", c.bytesWritten},
                        {"microseconds", c.microseconds}});
  for (const PairReport& p : region.pairs)
    pairs.push_back(
        {{"a", p.a}, {"b", p.b}, {"together", p.together}, {"rule", p.rule}, {"reason", p.reason}});
  for (const StrategyReport& s : region.strategies)
    strategies.push_back({{"strategy", fusion::toString(s.strategy)},
                          {"objective", s.objective},
                          {"bound", s.bound},
                          {"gap", s.gap},
                          {"seconds", s.seconds},
                          {"launches", s.launches},
                          {"bytesRead", s.bytesRead},
                          {"bytesWritten", s.bytesWritten},
                          {"contracted", s.contracted},
                          {"columns", s.columns},
                          {"rows", s.rows},
                          {"cuts", s.cuts},
                          {"cluster", s.cluster}});
  return {{"function", region.function},        {"chosen", fusion::toString(region.chosen)},
          {"nodes", std::move(nodes)},          {"edges", std::move(edges)},
          {"clusters", std::move(clusters)},    {"pairs", std::move(pairs)},
          {"strategies", std::move(strategies)}};
}

}  // namespace

std::string fusionReportAsText(const std::vector<FormReport>& forms, const SourceManager& sources) {
  std::string out;
  for (const FormReport& form : forms) {
    int before = 0, after = 0;
    for (const RegionReport& region : form.report.regions) {
      for (const NodeReport& node : region.nodes) before += node.kernel;
      if (const StrategyReport* strategy = chosenStrategy(region)) after += strategy->launches;
    }
    if (!out.empty()) out += '\n';
    out += fmt::format("{}: {}: kernels {} before fusion, {} after; decided in {:.1f} ms\n", form.place,
                       form.name, before, after, 1000 * form.report.seconds);
    for (const fusion::InlinedMap& map : form.report.inlined)
      out += fmt::format("  {} is computed by its readers: {}\n", map.map, map.reason);
    for (const RegionReport& region : form.report.regions)
      if (!region.nodes.empty()) writeRegion(out, region, sources);
  }
  return out;
}

std::string fusionReportAsJson(const std::vector<FormReport>& forms, const SourceManager& sources) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const FormReport& form : forms) {
    Json regions = Json::array(), inlined = Json::array();
    for (const RegionReport& region : form.report.regions) regions.push_back(toJson(region, sources));
    for (const fusion::InlinedMap& map : form.report.inlined)
      inlined.push_back({{"map", map.map}, {"reason", map.reason}});
    list.push_back({{"place", form.place},
                    {"name", form.name},
                    {"seconds", form.report.seconds},
                    {"inlined", std::move(inlined)},
                    {"regions", std::move(regions)}});
  }
  // Names come from the program's text, which is bytes: anything that is no UTF-8 is replaced.
  return Json{{"forms", std::move(list)}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kelpie::driver

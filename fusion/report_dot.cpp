#include "fusion/report_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fusion/node_set.h"
#include "fusion/source_excerpt.h"

namespace kelpie::fusion {
namespace {

/// `text` with U+FFFD for bytes that are no UTF-8, as in reports of other formats.
std::string validUtf8(const std::string& text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : validUtf8(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

constexpr size_t kColumnsOfTooltip = 120;

const char* styleOf(const EdgeReport& edge) {
  if (edge.edgeClass == toString(EdgeClass::Order)) return "style=dotted, color=gray50";
  if (edge.fusible) return "color=\"#1b7f4d\"";
  return "style=dashed, color=\"#b3261e\"";
}

/// All but those that only say what comes before what and follow from others: a check on the host comes
/// before everything behind it.
std::vector<EdgeReport> drawnEdges(const RegionReport& region) {
  const size_t n = region.nodes.size();
  std::vector<std::vector<const EdgeReport*>> from(n);
  for (const EdgeReport& e : region.edges) from[static_cast<size_t>(e.from)].push_back(&e);
  std::vector<NodeSet> behind(n, NodeSet(n));
  std::vector<EdgeReport> drawn;
  for (size_t v = n; v-- > 0;) {  // edges lead from lower numbers to higher ones
    std::sort(from[v].begin(), from[v].end(),
              [](const EdgeReport* a, const EdgeReport* b) { return a->to < b->to; });
    for (const EdgeReport* e : from[v]) {
      const bool follows = behind[v].has(e->to);
      behind[v].add(e->to);
      behind[v] |= behind[static_cast<size_t>(e->to)];
      if (!follows || e->edgeClass != toString(EdgeClass::Order)) drawn.push_back(*e);
    }
  }
  std::sort(drawn.begin(), drawn.end(), [](const EdgeReport& a, const EdgeReport& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  return drawn;
}

}  // namespace

std::vector<int> kernelNumbers(const RegionReport& region, const StrategyReport& strategy) {
  std::vector<int> order;  // clusters: those of the schedule in its order, of others by their first nodes
  if (strategy.strategy == region.chosen)
    for (const ClusterReport& c : region.clusters)
      if (!c.kernel.empty()) order.push_back(strategy.cluster[c.nodes[0]]);
  std::vector<int> numbers(region.nodes.size(), 0);
  for (size_t v = 0; v < numbers.size(); ++v) {
    if (!region.nodes[v].kernel) continue;
    auto it = std::find(order.begin(), order.end(), strategy.cluster[v]);
    if (it == order.end()) it = order.insert(order.end(), strategy.cluster[v]);
    numbers[v] = static_cast<int>(it - order.begin()) + 1;
  }
  return numbers;
}

std::string regionDot(const RegionReport& region, const StrategyReport& strategy, const std::string& prefix,
                      const LineLookup& lookup) {
  std::string out = fmt::format("digraph {} {{\n", quoted(region.function));
  out += "  graph [fontname=\"sans-serif\", fontsize=11, nodesep=0.25, ranksep=0.4];\n";
  out +=
      "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", "
      "fontsize=11];\n";
  out += "  edge [fontname=\"sans-serif\", fontsize=9];\n";
  int clusters = 0;
  for (int c : strategy.cluster) clusters = std::max(clusters, c + 1);
  const std::vector<int> numbers = kernelNumbers(region, strategy);
  for (int c = 0; c < clusters; ++c) {
    std::string members;
    bool kernel = false;
    int number = 0;
    for (size_t v = 0; v < region.nodes.size(); ++v) {
      if (strategy.cluster[v] != c) continue;
      const NodeReport& node = region.nodes[v];
      kernel |= node.kernel;
      number = numbers[v];
      // Two lines: Graphviz spells the break \\n.
      const std::string text =
          node.kernel ? fmt::format("\"{}\\n{}", node.kind, quoted(node.name).substr(1)) : quoted(node.name);
      std::string tooltip;
      if (lookup && node.span.known()) {
        const SourceLine source = lookup(node.span);
        tooltip = ", tooltip=" + quoted(fmt::format("{}: {}", source.place,
                                                    excerpt(source.text, source.at, kColumnsOfTooltip)));
      }
      members += fmt::format("    n{} [id={}, label={}{}{}];\n", v, quoted(fmt::format("{}{}", prefix, v)),
                             text, tooltip, node.kernel ? "" : ", shape=plaintext, fillcolor=\"#eeeeee\"");
    }
    if (!kernel) {
      out += members;
      continue;
    }
    out += fmt::format(
        "  subgraph cluster_{} {{\n    label=\"kernel {}\"; style=\"rounded,filled\"; "
        "color=\"#8aa4c8\"; fillcolor=\"#eaf1fb\";\n{}  }}\n",
        c, number, members);
  }
  for (const EdgeReport& e : drawnEdges(region)) {
    out += fmt::format("  n{} -> n{} [{}, tooltip={}];\n", e.from, e.to, styleOf(e),
                       quoted(fmt::format("{}: {}", e.edgeClass, e.reason)));
  }
  return out + "}\n";
}

std::string reportDot(const FusionReport& report, const LineLookup& lookup) {
  std::string out;
  for (const RegionReport& region : report.regions) {
    for (const StrategyReport& s : region.strategies) {
      if (s.strategy == region.chosen) out += regionDot(region, s, "n", lookup);
    }
  }
  return out;
}

}  // namespace kelpie::fusion

#include "fusion/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fusion/source_excerpt.h"

namespace kelpie::fusion {

std::string proofText(const StrategyReport& chosen) {
  if (chosen.strategy != Strategy::Ilp) return "";
  if (chosen.gap <= 0) return "proven optimal";
  return chosen.gap < 5e-5 ? "less than 0.01% from optimal"
                           : fmt::format("at most {:.2f}% from optimal", 100 * chosen.gap);
}

std::string bytesText(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 5; ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, units[unit]);
}

std::string timeText(double microseconds) {
  constexpr double kLong = 1e9;
  return microseconds < kLong ? fmt::format("{:.2f}", microseconds) : fmt::format("{:.2e}", microseconds);
}

namespace {

constexpr size_t kWidth = 100;

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

/// `text` broken at spaces, and where a word is too long for a line, each line after the first behind
/// `indent` blanks.
std::string wrapped(const std::string& text, size_t indent) {
  std::string result, line;
  size_t begin = 0;
  const size_t room = kWidth - indent;
  while (begin < text.size()) {
    size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(begin, std::min(end - begin, room));
    if (!line.empty() && line.size() + 1 + word.size() > room) {
      result += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin += word.size();
    if (begin == end) ++begin;
  }
  return result + line;
}

constexpr size_t kMaxName = 24;  ///< columns of a name

/// A name in kMaxName columns: its end tells it from others of its function.
std::string shortened(const std::string& name) {
  constexpr size_t kEnd = 10;
  if (name.size() <= kMaxName) return name;
  return name.substr(0, kMaxName - kEnd - 3) + "..." + name.substr(name.size() - kEnd);
}

std::string withoutTrailingBlanks(const std::string& text) {
  std::string result;
  for (const char c : text) {
    while (c == '\n' && result.ends_with(' ')) result.pop_back();
    result += c;
  }
  return result;
}

class Text {
 public:
  Text(const LineLookup& lookup) : lookup_(lookup) {}

  void region(const RegionReport& region) {
    const StrategyReport* chosen = nullptr;
    int kernels = 0;
    for (const StrategyReport& s : region.strategies) {
      if (s.strategy == region.chosen) chosen = &s;
    }
    for (const NodeReport& n : region.nodes) kernels += n.kernel;
    if (!chosen || kernels == 0) return;
    const std::string proof = proofText(*chosen);
    const std::string title =
        fmt::format("region of {}: {} {} before, {} after fusion ({}{}{}, {:.1f} ms)", region.function,
                    kernels, kernels == 1 ? "kernel" : "kernels", chosen->launches, toString(region.chosen),
                    proof.empty() ? "" : ", ", proof, 1000 * chosen->seconds);
    out += "\n" + wrapped(title, 0) + "\n";
    nameWidth_ = 0;
    for (const NodeReport& n : region.nodes) {
      if (n.kernel) nameWidth_ = std::max(nameWidth_, std::min(n.name.size(), kMaxName));
    }
    int number = 0;
    for (const ClusterReport& c : region.clusters) cluster(region, c, number);
    strategies(region);
    whyNot(region);
  }

  std::string out;

 private:
  void cluster(const RegionReport& region, const ClusterReport& c, int& number) {
    if (c.kernel.empty()) {
      for (int v : c.nodes) out += "\n    " + memberLine("host", region.nodes[v]) + "\n";
      return;
    }
    out += fmt::format("\n  ┌ kernel {}  {}\n", ++number,
                       excerpt(c.space.empty() ? "" : "over " + c.space, 0, kWidth - 16));
    for (int v : c.nodes) member(region.nodes[v]);
    if (!c.rules.empty()) {
      out += fmt::format("  │ fused by {}\n", wrappedBeside(fmt::format("{}", fmt::join(c.rules, ", ")), 13));
    }
    out += fmt::format("  └ reads {}, writes {}, predicted {} us\n", bytesText(c.bytesRead),
                       bytesText(c.bytesWritten), timeText(c.microseconds));
    if (c.measured.ran && c.measured.launches == 0) out += "    measured: not launched\n";
    if (c.measured.launches == 0) return;
    out += fmt::format("    measured: read {}, wrote {}, {:.2f} us, {} {}\n", bytesText(c.measured.bytesRead),
                       bytesText(c.measured.bytesWritten), c.measured.microseconds, c.measured.launches,
                       c.measured.launches == 1 ? "launch" : "launches, each on average");
  }

  static std::string wrappedBeside(const std::string& text, size_t indent) {
    std::string result = wrapped(text, indent);
    for (size_t at = result.find('\n'); at != std::string::npos; at = result.find('\n', at + 1)) {
      result.replace(at + 1, 3, "  │");
    }
    return result;
  }

  void member(const NodeReport& node) { out += "  │ " + memberLine(node.kind, node) + "\n"; }

  /// What the node is and where it comes from, behind four columns.
  std::string memberLine(const std::string& kind, const NodeReport& node) const {
    std::string line = fmt::format("{:<13} {:<{}}", kind, shortened(node.name), nameWidth_);
    if (!lookup_ || !node.span.known()) return line;
    const SourceLine source = lookup_(node.span);
    line += fmt::format("  {:>4} | ", source.line);
    constexpr size_t kMargin = 4;  // names are of ASCII characters
    return line + excerpt(source.text, source.at, kWidth - kMargin - line.size());
  }

  void strategies(const RegionReport& region) {
    if (region.strategies.size() < 2) return;
    out += fmt::format("\n  {:<10}{:>9} {:>11} {:>11} {:>13} {:>13} {:>8} {:>11}\n", "strategy", "launches",
                       "reads", "writes", "objective us", "bound us", "gap", "solved ms");
    for (const StrategyReport& s : region.strategies) {
      const bool bounded = s.strategy == Strategy::Ilp;
      out +=
          fmt::format("  {:<10}{:>9} {:>11} {:>11} {:>13} {:>13} {:>8} {:>11.2f}{}\n", toString(s.strategy),
                      s.launches, bytesText(s.bytesRead), bytesText(s.bytesWritten), timeText(s.objective),
                      bounded ? timeText(s.bound) : "", bounded ? fmt::format("{:.2f}%", 100 * s.gap) : "",
                      1000 * s.seconds, s.strategy == region.chosen ? "  *" : "");
    }
  }

  void whyNot(const RegionReport& region) {
    bool heading = false;
    for (const PairReport& pair : region.pairs) {
      if (pair.together || !pair.ofInterest) continue;
      if (!heading) out += "\n  apart, and why\n";
      heading = true;
      const std::string names =
          fmt::format("{} × {}", shortened(region.nodes[pair.a].name), shortened(region.nodes[pair.b].name));
      const size_t indent = 2 * nameWidth_ + 9;
      // The multiplication sign is two bytes of one column.
      out += fmt::format("    {:<{}}{}\n", names, indent - 4, wrapped(pair.reason, indent));
    }
  }

  const LineLookup& lookup_;
  size_t nameWidth_ = 0;
};

using Json = nlohmann::ordered_json;

template <typename Items, typename ToJson>
Json list(const Items& items, const ToJson& toJson) {
  Json result = Json::array();
  for (const auto& item : items) result.push_back(toJson(item));
  return result;
}

/// Bytes are sums of averages: beyond thousandths they tell only in which order these were added.
double rounded(double bytes) { return std::round(1000 * bytes) / 1000; }

Json regionJson(const RegionReport& region, const LineLookup& lookup) {
  return {{"function", region.function},
          {"chosen", toString(region.chosen)},
          {"nodes", list(region.nodes,
                         [&](const NodeReport& n) {
                           const SourceLine source = lookup && n.span.known() ? lookup(n.span) : SourceLine();
                           return Json{{"name", n.name},
                                       {"kind", n.kind},
                                       {"text", n.text},
                                       {"place", source.place},
                                       {"source", trimmed(source.text)},
                                       {"kernel", n.kernel}};
                         })},
          {"edges", list(region.edges,
                         [](const EdgeReport& e) {
                           return Json{{"from", e.from},
                                       {"to", e.to},
                                       {"class", e.edgeClass},
                                       {"fusible", e.fusible},
                                       {"reason", e.reason}};
                         })},
          {"pairs", list(region.pairs,
                         [](const PairReport& p) {
                           return Json{{"a", p.a},
                                       {"b", p.b},
                                       {"together", p.together},
                                       {"ofInterest", p.ofInterest},
                                       {"cause", toString(p.cause)},
                                       {"rule", p.rule},
                                       {"reason", p.reason}};
                         })},
          {"clusters", list(region.clusters,
                            [](const ClusterReport& c) {
                              Json json{{"kernel", c.kernel},
                                        {"space", c.space},
                                        {"nodes", c.nodes},
                                        {"rules", c.rules},
                                        {"launches", c.kernel.empty() ? 0 : 1},
                                        {"bytesRead", rounded(c.bytesRead)},
                                        {"bytesWritten", rounded(c.bytesWritten)},
                                        {"bytesExact", c.bytesExact},
                                        {"microseconds", c.microseconds},
                                        {"shares",
                                         list(c.shares,
                                              [](const CostShare& s) {
                                                return Json{{"constant", s.cost->name}, {"share", s.share}};
                                              })},
                                        {"text", c.text},
                                        {"code", c.code}};
                              if (c.measured.ran && c.measured.launches == 0) json["neverLaunched"] = true;
                              if (c.measured.launches == 0) return json;
                              json["measured"] = {{"launches", c.measured.launches},
                                                  {"evaluated", c.measured.evaluated},
                                                  {"elements", c.measured.elements},
                                                  {"microseconds", c.measured.microseconds},
                                                  {"bytesRead", rounded(c.measured.bytesRead)},
                                                  {"bytesWritten", rounded(c.measured.bytesWritten)}};
                              return json;
                            })},
          {"strategies", list(region.strategies, [](const StrategyReport& s) {
             Json json{{"strategy", toString(s.strategy)},
                       {"objective", s.objective},
                       {"seconds", s.seconds},
                       {"launches", s.launches},
                       {"bytesRead", rounded(s.bytesRead)},
                       {"bytesWritten", rounded(s.bytesWritten)},
                       {"microseconds", s.microseconds},
                       {"contracted", s.contracted},
                       {"columns", s.columns},
                       {"rows", s.rows},
                       {"cuts", s.cuts},
                       {"cluster", s.cluster}};
             if (s.strategy == Strategy::Ilp) {
               json["bound"] = s.bound;
               json["gap"] = s.gap;
             }
             return json;
           })}};
}

}  // namespace

std::vector<std::string> notStored(const FusionReport& report) {
  std::vector<std::string> lines;
  size_t generators = 0;
  for (const InlinedMap& map : report.inlined) {
    const std::string line =
        fmt::format("{} is not stored but computed by its readers: {}", map.map, map.reason);
    if (map.reason == "generator") {
      ++generators;
    } else if (std::find(lines.begin(), lines.end(), line) == lines.end()) {
      lines.push_back(line);
    }
  }
  if (generators > 0)
    lines.push_back(fmt::format(
        "{} that depend{} on positions alone {} not stored but computed by {} readers",
        generators == 1 ? "an array" : fmt::format("{} arrays", generators), generators == 1 ? "s" : "",
        generators == 1 ? "is" : "are", generators == 1 ? "its" : "their"));
  return lines;
}

std::string reportText(const FusionReport& report, const LineLookup& lookup) {
  Text text(lookup);
  for (const std::string& line : notStored(report)) text.out += wrapped(line, 2) + "\n";
  for (const RegionReport& region : report.regions) text.region(region);
  return withoutTrailingBlanks(text.out);
}

nlohmann::ordered_json reportAsJson(const FusionReport& report, const LineLookup& lookup) {
  return Json{
      {"seconds", report.seconds},
      {"inlined", list(report.inlined,
                       [](const InlinedMap& m) {
                         return Json{{"map", m.map}, {"reason", m.reason}};
                       })},
      {"regions", list(report.regions, [&](const RegionReport& r) { return regionJson(r, lookup); })}};
}

std::string reportJson(const FusionReport& report, const LineLookup& lookup) {
  // Names come from the program's text, which is bytes: anything that is no UTF-8 is replaced.
  return reportAsJson(report, lookup).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kelpie::fusion

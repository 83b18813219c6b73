#include "fusion/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "fusion/report_dot.h"

namespace kelpie::fusion {

extern const char* const kReportStyle;   // html/report.css
extern const char* const kReportScript;  // html/report.js

namespace {

std::string replaced(const std::string& text, const std::string& what, const std::string& by) {
  std::string result;
  size_t from = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, from)) {
    result.append(text, from, at - from).append(by);
    from = at + what.size();
  }
  return result.append(text, from);
}

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// What Graphviz wrote, from its <svg> on: the prologue does not belong into a page.
std::string inlineSvg(const std::string& svg) {
  const size_t begin = svg.find("<svg");
  return begin == std::string::npos ? "" : svg.substr(begin);
}

/// Megabytes, but nothing that is there is shown as none.
std::string megabytes(double bytes) {
  if (bytes == 0) return "0";
  return bytes < 500 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.3f}", bytes / 1e6);
}

/// Graphviz numbers what has no id of its own anew in each drawing ("graph0", "clust1", "edge1").
std::string withOwnIds(std::string svg, const std::string& prefix) {
  for (const char* numbered : {"id=\"graph", "id=\"clust", "id=\"edge", "id=\"a_"}) {
    const std::string mark = numbered;
    for (size_t at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + mark.size()))
      svg.insert(at + 4, prefix);
  }
  return svg;
}

class Page {
 public:
  Page(const Drawer& draw) : draw_(draw) {}

  static const StrategyReport& chosenOf(const RegionReport& region) {
    return *std::find_if(region.strategies.begin(), region.strategies.end(),
                         [&](const StrategyReport& s) { return s.strategy == region.chosen; });
  }

  /// Whether it is shown in full: others have no kernels, or are the same as one above.
  bool region(const FormReport& of, size_t form, size_t number) {
    const RegionReport& region = of.report.regions[number];
    const auto kernels =
        std::count_if(region.nodes.begin(), region.nodes.end(), [](const NodeReport& n) { return n.kernel; });
    const auto chosen = std::find_if(region.strategies.begin(), region.strategies.end(),
                                     [&](const StrategyReport& s) { return s.strategy == region.chosen; });
    if (kernels == 0 || chosen == region.strategies.end()) return false;
    const std::string id = fmt::format("r{}-{}", form, number);
    const std::string heading = fmt::format("<h2>region of {}</h2>\n", escaped(region.function));
    const std::string proof = proofText(*chosen);
    const std::string summary = fmt::format("<p>{} {} before fusion, {} after ({}{}{}).</p>\n", kernels,
                                            kernels == 1 ? "kernel" : "kernels", chosen->launches,
                                            toString(region.chosen), proof.empty() ? "" : ", ", proof);
    std::vector<const RegionReport*> views;  // by strategy: the region with its kernels
    for (const StrategyReport& s : region.strategies) {
      const RegionReport* view = s.strategy == region.chosen ? &region : nullptr;
      for (const FusionReport& other : of.others)
        if (other.regions[number].chosen == s.strategy) view = &other.regions[number];
      views.push_back(view);
    }
    // Every form is compiled with the functions that it calls, so their regions come again and again.
    solverTimes_ = false;  // which differ, as what is known needs no solver
    const auto [same, isNew] = shown_.emplace(details(region, views), id);
    if (!isNew) {
      out += fmt::format(
          "<section class=\"same\">\n{}{}<p>The same as <a href=\"#{}\">above</a>.</p>\n</section>\n",
          heading, summary, same->second);
      return false;
    }
    solverTimes_ = true;
    out += fmt::format("<section class=\"region\" id=\"{}\" data-region=\"{},{}\">\n{}{}{}</section>\n", id,
                       form, number, heading, summary, replaced(details(region, views), kPlace, id));
    return true;
  }

  std::string out;

 private:
  static constexpr const char* kPlace = "@region@";  ///< stands for the id of a region

  /// All below the heading of a region, with `kPlace` for its id.
  std::string details(const RegionReport& region, const std::vector<const RegionReport*>& views) {
    const std::string before = std::exchange(out, "");
    drawings(region, views, kPlace);
    strategies(region);
    for (size_t s = 0; s < views.size(); ++s) {
      const StrategyReport& strategy = region.strategies[s];
      const char* name = toString(strategy.strategy);
      out += fmt::format("<div class=\"ofstrategy\" data-strategy=\"{}\"{}>\n", name,
                         strategy.strategy == region.chosen ? "" : " hidden");
      if (views[s]) {
        bars(*views[s], name);
      } else {
        out += fmt::format("<p>The kernels of {} were not made.</p>\n", name);
      }
      whyNot(region, strategy);
      out += "</div>\n";
    }
    return std::exchange(out, before);
  }

  /// Each graph once.
  const Drawing& drawn(const std::string& dot) {
    const auto [known, isNew] = drawings_.try_emplace(dot);
    if (isNew) known->second = draw_(dot);
    return known->second;
  }

  void drawings(const RegionReport& region, const std::vector<const RegionReport*>& views,
                const std::string& id) {
    out += "<fieldset><legend>clusters of</legend>";
    for (const StrategyReport& s : region.strategies) {
      const char* name = toString(s.strategy);
      out += fmt::format("<label><input type=\"radio\" name=\"{}\" value=\"{}\"{}> {}</label>", id, name,
                         s.strategy == region.chosen ? " checked" : "", name);
    }
    out +=
        "<label class=\"zoom\"><input type=\"checkbox\"> whole drawing</label></fieldset>\n<div "
        "class=\"columns\"><div>\n";
    for (size_t k = 0; k < views.size(); ++k) {
      const StrategyReport& s = region.strategies[k];
      const char* name = toString(s.strategy);
      const std::string prefix = fmt::format("{}-{}-", id, name);
      const RegionReport& view = views[k] ? *views[k] : region;
      const Drawing& drawing = drawn(regionDot(view, s, prefix));
      const std::string svg = withOwnIds(inlineSvg(drawing.svg), prefix);
      out += fmt::format("<div class=\"drawing\" data-strategy=\"{}\"{}>{}</div>\n", name,
                         s.strategy == region.chosen ? "" : " hidden",
                         svg.empty() ? fmt::format("<p>Not drawn: {}</p>", drawing.obstacle) : svg);
    }
    out += "</div><div class=\"details\" aria-live=\"polite\"></div></div>\n";
  }

  void strategies(const RegionReport& region) {
    out +=
        "<h3>strategies</h3>\n<table><tr><th>strategy<th class=\"number\">launches<th class=\"number\">MB "
        "read"
        "<th class=\"number\">MB written<th class=\"number\">objective µs<th class=\"number\">bound µs"
        "<th class=\"number\">gap<th class=\"number\">solved ms</tr>\n";
    for (const StrategyReport& s : region.strategies) {
      const bool bounded = s.strategy == Strategy::Ilp;
      out += fmt::format("<tr><td>{}", toString(s.strategy));
      for (const std::string& cell :
           {fmt::format("{}", s.launches), megabytes(s.bytesRead), megabytes(s.bytesWritten),
            fmt::format("{:.2f}", s.objective), bounded ? fmt::format("{:.2f}", s.bound) : "",
            bounded ? fmt::format("{:.2f}%", 100 * s.gap) : "",
            solverTimes_ ? fmt::format("{:.2f}", 1000 * s.seconds) : ""}) {
        out += fmt::format("<td class=\"number\">{}", cell);
      }
      out += "</tr>\n";
    }
    out += "</table>\n";
  }

  void bars(const RegionReport& region, const char* strategy) {
    double most = 0;
    bool measured = false;
    for (const ClusterReport& c : region.clusters) {
      most = std::max({most, c.microseconds, c.measured.launches ? c.measured.microseconds : 0});
      measured |= c.measured.launches > 0;
    }
    const auto bar = [&](const char* kind, double microseconds) {
      return fmt::format("<span class=\"bar {}\" style=\"width:{:.1f}%\"></span>{:.2f} µs", kind,
                         most > 0 ? 60 * microseconds / most : 0, microseconds);
    };
    out += fmt::format("<h3>kernels of {}</h3>\n", strategy) +
           "<p class=\"legend\"><span><span class=\"bar predicted\" "
           "style=\"width:1rem\"></span>"
           "predicted</span>";
    out += measured
               ? "<span><span class=\"bar counted\" style=\"width:1rem\"></span>measured, each launch</span>"
               : fmt::format("<span>not run: use --run{} to measure</span>",
                             region.chosen == Strategy::Ilp ? "" : fmt::format(" --strategy={}", strategy));
    out +=
        "</p>\n<table><tr><th>kernel<th>time<th class=\"number\">MB read<th class=\"number\">MB "
        "written</tr>\n";
    const std::vector<int> numbers = kernelNumbers(region, chosenOf(region));
    for (const ClusterReport& c : region.clusters) {
      if (c.kernel.empty()) continue;
      const auto pair = [&](double predicted, double counted) {
        std::string text = megabytes(predicted);
        if (c.measured.launches > 0) text += " / " + megabytes(counted);
        return text;
      };
      out +=
          fmt::format("<tr><td>{}: {}<td>{}{}<td class=\"number\">{}<td class=\"number\">{}</tr>\n",
                      numbers[c.nodes[0]], escaped(c.kernel), bar("predicted", c.microseconds),
                      c.measured.launches ? "<br>" + bar("counted", c.measured.microseconds)
                      : c.measured.ran    ? "<br>not launched"
                                          : "",
                      pair(c.bytesRead, c.measured.bytesRead), pair(c.bytesWritten, c.measured.bytesWritten));
    }
    out += "</table>\n";
  }

  /// Reasons are those of the chosen strategy: what forbids a pair does so in all.
  void whyNot(const RegionReport& region, const StrategyReport& strategy) {
    std::string rows;
    for (const PairReport& p : region.pairs) {
      if (strategy.cluster[p.a] == strategy.cluster[p.b] || !p.ofInterest) continue;
      const std::string reason = p.together ? fmt::format("nothing forbids it: {} has them together ({})",
                                                          toString(region.chosen), p.rule)
                                            : p.reason;
      rows += fmt::format(
          "<tr class=\"pair\" tabindex=\"0\" role=\"button\" data-a=\"{}\" data-b=\"{}\"><td>{} × "
          "{}<td>{}</tr>\n",
          p.a, p.b, escaped(region.nodes[p.a].name), escaped(region.nodes[p.b].name), escaped(reason));
    }
    if (rows.empty()) return;
    out += fmt::format("<h3>apart, and why, with {}</h3>\n", toString(strategy.strategy)) +
           "<table><tr><th>kernels<th>reason</tr>\n" + rows + "</table>\n";
  }

  const Drawer& draw_;
  std::map<std::string, Drawing> drawings_;   ///< by graph
  std::map<std::string, std::string> shown_;  ///< by details: the id of the region that has them
  bool solverTimes_ = true;                   ///< are shown
};

}  // namespace

std::string reportHtml(const std::string& title, const std::vector<FormReport>& forms,
                       const LineLookup& lookup, const Drawer& draw, const std::string& totals) {
  Page page(draw);
  page.out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>Fusion of {}</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<style>\n{}</style></head><body>\n"
      "<h1>Fusion of {}</h1>\n",
      escaped(title), kReportStyle, escaped(title));
  nlohmann::ordered_json data;
  data["forms"] = nlohmann::ordered_json::array();
  for (size_t f = 0; f < forms.size(); ++f) {
    data["forms"].push_back({{"place", forms[f].place},
                             {"report", reportAsJson(forms[f].report, lookup)},
                             {"others", nlohmann::ordered_json::object()}});
    for (const FusionReport& other : forms[f].others) {
      nlohmann::ordered_json regions = reportAsJson(other, lookup)["regions"];
      nlohmann::ordered_json clusters = nlohmann::ordered_json::array();
      for (auto& region : regions) clusters.push_back(std::move(region["clusters"]));
      if (!other.regions.empty())
        data["forms"].back()["others"][toString(other.regions[0].chosen)] = clusters;
    }
    page.out += fmt::format("<p>{}: <code>{}</code></p>\n", escaped(forms[f].place), escaped(forms[f].name));
    if (!forms[f].failure.empty())
      page.out += fmt::format("<p>failed when it ran: {}</p>\n", escaped(forms[f].failure));
    for (const std::string& line : notStored(forms[f].report)) page.out += "<p>" + escaped(line) + "</p>\n";
    for (size_t r = 0; r < forms[f].report.regions.size(); ++r) {
      if (page.region(forms[f], f, r)) continue;
      data["forms"][f]["report"]["regions"][r] = nullptr;  // nobody asks for it
      for (auto& clusters : data["forms"][f]["others"]) clusters[r] = nullptr;
    }
  }
  if (!totals.empty()) page.out += "<pre>" + escaped(totals) + "</pre>\n";
  // No "</script>" ends the element early, no "<!--" makes a browser look for another end.
  const std::string text =
      replaced(data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), "<", "\\u003c");
  page.out += "<script type=\"application/json\" id=\"data\">" + text + "</script>\n<script>\n" +
              kReportScript + "</script>\n</body></html>\n";
  return page.out;
}

}  // namespace kelpie::fusion

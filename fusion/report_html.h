// The fusion report as one page: no network, no other files; works from the keyboard and on paper.
//
// In: the reports of all forms of a program, as JSON (fusion/report.h), the drawings of their regions, and a
// title; `totals`, if any, stand at the end. Out: HTML. Drawings are SVG as Graphviz writes it; a region
// without one is shown as tables only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fusion/fuse.h"
#include "fusion/report.h"

namespace kelpie::fusion {

struct Drawing {
  std::string svg;
  std::string obstacle;  ///< why there is no svg, as a sentence
};
/// Draws a graph in the language of Graphviz.
using Drawer = std::function<Drawing(const std::string& dot)>;

struct FormReport {
  std::string place, name;
  FusionReport report;
  /// The same regions with the kernels of the strategies that were not chosen; without any, the page shows
  /// kernels of the chosen one alone.
  std::vector<FusionReport> others;
  std::string failure;  ///< why it failed when it ran; empty: it did not
};

std::string reportHtml(const std::string& title, const std::vector<FormReport>& forms,
                       const LineLookup& lookup, const Drawer& draw, const std::string& totals = "");

}  // namespace kelpie::fusion

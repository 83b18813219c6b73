// One region as a graph in the language of Graphviz: nodes in boxes of their clusters, edges by class.
//
// In: a region's report and which strategy's clusters to draw. Out: a `digraph`. Nodes have the id PREFIX
// followed by their number, so that a page can find them in the drawing; with `lookup`, their source lines
// are tooltips.
#pragma once

#include <string>

#include "fusion/report.h"

namespace kelpie::fusion {

/// Of each node the number of its kernel, as texts and drawings have it; 0: a statement of the host.
std::vector<int> kernelNumbers(const RegionReport& region, const StrategyReport& strategy);

std::string regionDot(const RegionReport& region, const StrategyReport& strategy,
                      const std::string& prefix = "n", const LineLookup& lookup = nullptr);
/// All regions, each with the clusters chosen: one digraph after the other.
std::string reportDot(const FusionReport& report, const LineLookup& lookup = nullptr);

}  // namespace kelpie::fusion

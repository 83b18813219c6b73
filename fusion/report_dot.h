// One region as a graph in the language of Graphviz: nodes in boxes of their clusters, edges by class.
//
// In: a region's report and which strategy's clusters to draw. Out: a `digraph`. Nodes have the id PREFIX
// followed by their number, so that a page can find them in the drawing.
#pragma once

#include <string>

#include "fusion/fuse.h"

namespace kelpie::fusion {

std::string regionDot(const RegionReport& region, const StrategyReport& strategy,
                      const std::string& prefix = "n");
/// All regions, each with the clusters chosen: one digraph after the other.
std::string reportDot(const FusionReport& report);

}  // namespace kelpie::fusion

// The program-dependence graph of one region, the block of a function, loop or branch.
//
// In: a block before fusion (every kernel one SOAC, sizes normalised: fusion/sizes.h). Out: one node for each
// statement, and an edge for each pair of statements of which the later reads what the earlier makes (or must
// stay after it), classified by *how* it reads. Nested control statements are single nodes.
//
// Besides: which pairs of kernels have compatible index spaces, and on what condition (a survivor's reader
// runs over the filter's elements only in a kernel that has the filter). Every verdict carries a reason a
// person can read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fusion/effects.h"
#include "fusion/partition.h"
#include "ir/lcu.h"

namespace kelpie::fusion {

enum class EdgeClass : uint8_t {
  Pointwise,      ///< reads element %i of what runs over the same elements
  Survivors,      ///< reads the survivors of a filter, element for element
  SegmentResult,  ///< a map over the segments reads the segment's reduction: epilogue
  Finish,         ///< a Once reads a reduction's result, or that of another Once
  Whole,          ///< needs the whole result first
  HostFetch,      ///< the host must read the result to know a size or to go on
  Order,          ///< services, errors relative to services, and checks on the host keep their order
};
const char* toString(EdgeClass edgeClass);

struct GraphEdge {
  int from = 0, to = 0;
  EdgeClass edgeClass = EdgeClass::Whole;
  bool fusible = false;
  lcu::VarId variable = 0;  ///< what is read; 0 for Order
  std::string reason;  ///< what `to` does: "reads f_map_3, element for element", "overwrites what ... reads"
};

struct GraphNode {
  const lcu::Stmt* stmt = nullptr;
  const lcu::Soac* soac = nullptr;  ///< null unless a launch
  std::string label;                ///< kernel name, or what the statement is
  bool effectful = false;           ///< has or may have a Service inside: keeps its order
};

/// Why two kernels have no common index space.
struct SpaceConflict {
  int a = 0, b = 0;
  const char* reason = "";
};

struct DependenceGraph {
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;          ///< at most one for each pair; by `from`, then `to`
  std::vector<SpaceConflict> conflicts;  ///< pairs of kernels; pairs with another statement are left out
  std::vector<Requirement> requirements;
  /// For each node the filter of the region whose survivors it runs over and with which it could run over
  /// the filter's own elements instead; -1 if there is none.
  std::vector<int> liftedOver;
  /// Runs over survivors, but cannot be moved to the filter's elements: why. "uses the positions of ..."
  std::vector<std::string> liftObstacle;
  std::vector<int> obstructedFilter;  ///< ... and the filter; -1 where there is no obstacle
};

/// `mayFinishSegments`: whether a map over segments may be the epilogue of a kernel that reduces them.
DependenceGraph buildDependenceGraph(
    const lcu::Block& block, const lcu::Program& program, const Effects& effects,
    const std::function<bool(const lcu::Soac&)>& mayFinishSegments = [](const lcu::Soac&) { return true; });

/// The number of survivors of a Filter, as extents spell it.
lcu::ExprRef survivorExtent(const lcu::Soac& filter, const lcu::Program& program);

/// How the thunks of a SOAC read a variable, all ways together.
struct ReadWays {
  bool pointwise = false;  ///< a[%i]
  bool segment = false;    ///< a[%s]
  bool elsewhere = false;  ///< at any other position, or in the operator
  bool scalar = false;     ///< the value of a cell or host scalar
  bool extent = false;     ///< in the number of elements or segments: read by the host
  bool offsets = false;    ///< it is the segment descriptor
};
std::map<lcu::VarId, ReadWays> readsOf(const lcu::Soac& soac);

}  // namespace kelpie::fusion

// Recomputation instead of storage: a map that is read at other positions than its own element may be
// computed by its readers (MAP-GATHER: Load(a, e) becomes the pull at e).
//
// Generators (iota, constants, distribute: no loads, a few operations) are always inlined, everywhere. Other
// maps are inlined where they are read as a[%s] or a[e], if every use is inside kernels and the modelled time
// of recomputing is below that of a launch, storing and loading (recomputation.h), and if the pull, with what
// is inlined into it, is small: a chain of maps must not grow into one exponential thunk. Pulls with loops
// stay. Pointwise reads of these are left to clustering, which has them for free.
//
// Pulls with checks are computed again by elements of short segments only, each for its own segment (a[%s]):
//
//   { if x > 3 then [10 / x] else [] : x in xs }
//
// has an element or none for each x, whose quotients would be stored for all x. The copies do without checks,
// and take what follows a failed one; the map stays where it was for its checks (dead_code.h).
//
// The same holds for a Once that only loads and computes: its readers can do that. (One that finishes a
// reduction is left: it costs nothing in the reduction's kernel.)
//
// Who writes onto an array whose memory it takes over (lcu.h: Permute) does not compute what loads from that,
// nor does who comes later: in `rep(v, v[j] + 1, i)` the load and the write would share a kernel, and need
// two arrays.
//
// In: λcu before fusion, sizes normalised. After it the maps concerned may have no uses left (dead_code.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fusion/cost_model.h"
#include "ir/lcu.h"

namespace kelpie::fusion {

/// A decision, for the report.
struct InlinedMap {
  std::string map;     ///< name of the array
  std::string reason;  ///< "generator", or the times compared
};

/// `stored`: arrays that many maps are computed from, and that are stored for these (common_values.h).
std::vector<InlinedMap> inlineMaps(lcu::Program& program, const CostModel& model,
                                   const std::set<lcu::VarId>& stored = {});

}  // namespace kelpie::fusion

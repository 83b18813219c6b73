#include "codegen/cuda/segment_values.h"

#include <algorithm>
#include <unordered_set>

#include "codegen/values_of_segments.h"

namespace kelpie::codegen::cuda {

using lcu::ExprRef;
using lcu::Soac;
using lcu::VarId;

std::vector<VarId> sharedSegmentValues(const lcu::Kernel& kernel, const KernelInfo& info,
                                       const lcu::Program& program) {
  constexpr int kMostBytes = 8;  // of a segment
  std::vector<ExprRef> thunks;
  for (const Soac& soac : kernel.bindings) {
    const auto own = eagerThunks(soac);
    thunks.insert(thunks.end(), own.begin(), own.end());
  }
  const std::unordered_set<ExprRef> always = evaluatedForAll(thunks);
  std::vector<VarId> arrays;
  int bytes = 0;
  bool loops = false;
  for (const Soac& soac : kernel.bindings) {
    lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
      loops |= lcu::isUnbounded(e);
      if (!loadsAtSegment(e, info)) return;
      if (!always.contains(e) && !loadsValueOfSegment(e, info, program)) return;
      if (std::find(arrays.begin(), arrays.end(), e->index) != arrays.end()) return;
      if (bytes + sizeOf(e->type) > kMostBytes) return;
      bytes += sizeOf(e->type);
      arrays.push_back(e->index);
    });
  }
  return loops ? std::vector<VarId>() : arrays;
}

}  // namespace kelpie::codegen::cuda

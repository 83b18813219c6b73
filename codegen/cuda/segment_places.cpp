#include "codegen/cuda/segment_places.h"

#include <algorithm>

#include "codegen/kernel_analysis.h"

namespace kelpie::codegen::cuda {

std::optional<KernelPart> withPlacesOfSpace(const KernelPart& part, const lcu::Program& program) {
  constexpr uint32_t kElement = 0;
  KernelPart changed = part;
  for (lcu::Soac& soac : changed.kernel.bindings) {
    if (soac.kind != lcu::SoacKind::Reduce || !soac.space.segmented()) continue;
    const lcu::Soac before = soac;
    for (size_t k = 0; k < before.pull.size(); ++k) {
      if (!extremeOfFirst(before, k)) continue;
      soac.pull[k] = program.arena->param(kElement);
      changed.placesOfSpace.insert(soac.results[k]);
    }
  }
  if (changed.placesOfSpace.empty()) return std::nullopt;
  const KernelInfo info = analyseKernel(changed.kernel, program);
  const bool numbered = std::any_of(info.bindings.begin(), info.bindings.end(), [](const BindingInfo& b) {
    return b.role != BindingRole::Epilogue && (b.usesSegment || b.usesPosition);
  });
  if (numbered) return std::nullopt;
  return changed;
}

}  // namespace kelpie::codegen::cuda

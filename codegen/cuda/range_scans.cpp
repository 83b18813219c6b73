#include "codegen/cuda/range_scans.h"

#include <algorithm>

#include "codegen/regular_reads.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;
using lcu::SoacKind;

namespace {

/// Nodes of what is evaluated for the scans.
size_t nodesAhead(const lcu::Kernel& kernel, const KernelInfo& info) {
  const std::vector<bool> read = readByScans(kernel, info);
  std::vector<lcu::ExprRef> thunks;
  for (size_t b = 0; b < kernel.bindings.size(); ++b) {
    if (!read[b]) continue;
    const auto own = thunksOf(kernel.bindings[b]);
    thunks.insert(thunks.end(), own.begin(), own.end());
  }
  size_t nodes = 0;
  lcu::forEachNode(thunks, [&](lcu::ExprRef) { ++nodes; });
  return nodes;
}

/// Whether a scan has what a reduction makes.
bool isScanned(const lcu::Kernel& kernel, const Soac& reduction) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(),
                     [&](const Soac& scan) { return foldsTheSame(scan, reduction); });
}

bool loops(const Soac& soac) {
  return lcu::anyNode(thunksOf(soac), lcu::isUnbounded) ||
         lcu::anyNode(soac.combine.result, lcu::isUnbounded);
}

}  // namespace

int carriedBytes(const Soac& soac) {
  int bytes = 0;
  for (lcu::ExprRef e : soac.pull) bytes += sizeOf(e->type);
  return bytes;
}

bool foldsTheSame(const lcu::Soac& scan, const lcu::Soac& reduction) {
  return scan.kind == SoacKind::Scan && reduction.kind == SoacKind::Reduce && scan.space.segmented() &&
         !scan.backward && scan.pull == reduction.pull && scan.combine == reduction.combine;
}

bool scansByRanges(const lcu::Kernel& kernel, const KernelInfo& info) {
  constexpr int kMostBytes = 32;     // that each level carries
  constexpr size_t kMostNodes = 40;  // of code that is evaluated again
  if (!info.space.segmented()) return false;
  int scanned = 0, folded = 0, more = 0;  // bytes; `more`: that scans do not carry anyway
  bool foldsScans = false, numbers = false, gathers = false;
  for (uint32_t b = 0; b < kernel.bindings.size(); ++b) {
    const Soac& soac = kernel.bindings[b];
    const BindingInfo& binding = info.bindings[b];
    if (binding.role != BindingRole::Element) continue;
    if (loops(soac) || binding.level > 1) return false;
    numbers |= binding.usesSegment || binding.usesPosition;
    switch (soac.kind) {
      case SoacKind::Map:
        if (readsTransposed(soac)) return false;
        break;
      case SoacKind::Scan:
        if (!soac.space.segmented() || soac.backward || soac.withTotal || binding.level > 0) return false;
        scanned += carriedBytes(soac);
        break;
      case SoacKind::Reduce:
        if (!soac.space.segmented() && !commutes(soac.combine)) return false;
        if (!soac.space.segmented()) break;
        folded += carriedBytes(soac);
        foldsScans |= binding.level > 0;
        if (!isScanned(kernel, soac)) more += carriedBytes(soac);
        gathers |= lcu::anyNode(thunksOf(soac), [](lcu::ExprRef e) {
          return e->kind == lcu::ExprKind::Load && e->operands[0]->kind != lcu::ExprKind::Param;
        });
        break;
      default:
        return false;
    }
  }
  const bool carriesMuch = more > 0 && (numbers || scanned + more > kMostBesideScans);
  // Rows may have a better way to be folded alone.
  const bool foldsApart = carriesMuch && !(gathers && info.space.kind == lcu::SpaceKind::Regular);
  return scanned > 0 && (foldsScans || foldsApart) && scanned <= kMostBytes && folded <= kMostBytes &&
         nodesAhead(kernel, info) <= kMostNodes;
}

std::vector<bool> readByScans(const lcu::Kernel& kernel, const KernelInfo& info) {
  std::vector<bool> read(kernel.bindings.size(), false);
  for (size_t b = kernel.bindings.size(); b-- > 0;) {
    const Soac& soac = kernel.bindings[b];
    if (soac.kind == SoacKind::Scan) read[b] = true;
    if (!read[b]) continue;
    for (lcu::VarId v : info.bindings[b].localReads)
      for (size_t k = 0; k < b; ++k) {
        const auto& results = kernel.bindings[k].results;
        if (std::find(results.begin(), results.end(), v) != results.end()) read[k] = true;
      }
  }
  return read;
}

}  // namespace kelpie::codegen::cuda

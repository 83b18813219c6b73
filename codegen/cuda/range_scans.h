// Kernels that scan segments and fold them, so that one pass by ranges does both (range_scan.cuh): what lies
// below is looked for once before the tiles, for the scans, and once behind them, for the folds. As tiles
// that wait for lower ones it would be twice for each, which took longer than to store in between what the
// scans make (pass_split.h).
#pragma once

#include "codegen/kernel_analysis.h"

namespace kelpie::codegen::cuda {

/// Bytes that tiles carry of scans and folds of the same segments (segment_ends.cuh); of more, or with
/// numbers of segments, these wait too long.
constexpr int kMostBesideScans = 8;

/// Bytes that a scan or reduction carries.
int carriedBytes(const lcu::Soac& soac);

/// Whether a scan has what a reduction of segments wants behind their last elements.
bool foldsTheSame(const lcu::Soac& scan, const lcu::Soac& reduction);

/// Whether a kernel has scans of segments that go forward and read no other scan, reductions of what these
/// make, or that carry much beside them, and nothing else but maps and other reductions; and all of it takes
/// equally long for every element and carries little, so that elements may be read twice.
bool scansByRanges(const lcu::Kernel& kernel, const KernelInfo& info);

/// The bindings that are evaluated for the scans of such a kernel: these, and maps that they read.
std::vector<bool> readByScans(const lcu::Kernel& kernel, const KernelInfo& info);

}  // namespace kelpie::codegen::cuda

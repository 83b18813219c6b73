// Which values of segments a pass keeps in shared memory while it works on a tile (segment_numbers.cuh).
//
// In:  a kernel whose pass numbers the segments of its items. Out: the arrays whose loads by segment go
// there.
#pragma once

#include <vector>

#include "codegen/kernel_analysis.h"
#include "ir/lcu.h"

namespace kelpie::codegen::cuda {

/// There is room for the values of one segment for each of so many items of a tile. (Where segments are
/// folded beside a scan, tiles keep what was scanned, too: with room for twice as many segments, sums and
/// scans of segments of 1024 took 1.11 instead of 1.02 times as long as without.)
constexpr int itemsOfSegment(bool folds) { return folds ? 4 : 2; }

/// The arrays that thunks load at the number of their segment, if they have an element for each
/// (codegen/values_of_segments.h), or are loaded for every element, in the order of their loads, as far as
/// they are small; none where thunks loop. (A load for every element at its segment's number is not checked,
/// so every segment has that value, though it may be known by another length: lengths are compared before a
/// launch.)
std::vector<lcu::VarId> sharedSegmentValues(const lcu::Kernel& kernel, const KernelInfo& info,
                                            const lcu::Program& program);

}  // namespace kelpie::codegen::cuda

// Where the first extreme of a segment is, without knowing of any element where its segment begins.
//
// Which position of its segment an element has costs a search for the segment among those of its tile, which
// sums do not need. Of elements of one segment, positions in the whole space are in the same order as those
// in the segment: the first extreme can be found by these, and where the segment begins taken off once for
// each segment.
//
//     REDUCE seg { i, s, p => xs[i], p } (-inf, max_int) { first of the greatest }    becomes
//     REDUCE seg { i, s, p => xs[i], i } ...   and the result, where the segment begins taken off
//
// Who combines two parts in order need only compare once: the place of the left one stays, unless it has none
// or the right one is better (level_text.h).
//
// In:  a kernel. Out: the kernel with such thunks, and its results that have to be corrected.
#pragma once

#include <optional>

#include "codegen/cuda/pass_split.h"

namespace kelpie::codegen::cuda {

/// Nothing if there are no such reductions, or if other thunks need the segments of elements in any case.
/// The kernel lives as long as the program.
std::optional<KernelPart> withPlacesOfSpace(const KernelPart& part, const lcu::Program& program);

}  // namespace kelpie::codegen::cuda

// A pass over ranges for small inputs, whose blocks take whole segments where these are about equally long
// (segment_groups.cuh), or few, long ones (segment_warps.cuh).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// Behind the declaration of `result`: declares `whole`, and does all the work of a block whose segments
/// suit.
void writeWholeSegments(PassText& t);

}  // namespace kelpie::codegen::cuda

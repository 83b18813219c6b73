// Part of a pass (pass_text.h): reductions of segments by keys (segment_keys.cuh).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// The whole body of a kernel with Grid::Keys, after its signature.
void writeKeys(PassText& t);

}  // namespace kelpie::codegen::cuda

// Part of a pass (pass_text.h): maps whose neighbouring segments read side by side (transposed_tile.cuh).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// The whole body of a kernel with Grid::Transposed, after its signature.
void writeTransposed(PassText& t);

}  // namespace kelpie::codegen::cuda

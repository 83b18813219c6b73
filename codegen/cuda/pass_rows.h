// Part of a pass (pass_text.h): reductions of segments by rows (segment_rows.cuh).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// The whole body of a kernel with Grid::Rows, after its signature.
void writeRows(PassText& t);

}  // namespace kelpie::codegen::cuda

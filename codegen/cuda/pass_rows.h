// Part of a pass (pass_text.h): reductions of segments by rows (segment_rows.cuh), by columns
// (segment_columns.cuh) or by several short ones (segment_shorts.cuh).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// The whole body of a kernel with Grid::Rows, Grid::Columns or Grid::Shorts, after its signature.
void writeRows(PassText& t);

}  // namespace kelpie::codegen::cuda

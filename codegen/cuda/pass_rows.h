// Part of a pass (pass_text.h): reductions of segments by rows (segment_rows.cuh) or by columns
// (segment_columns.cuh).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// The whole body of a kernel with Grid::Rows or Grid::Columns, after its signature.
void writeRows(PassText& t);

}  // namespace kelpie::codegen::cuda

// Part of a pass (pass_text.h): products of rows and columns, by tiles (segment_products.cuh).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// The values of a tile, in the shared memory of a block.
void declareProductValues(PassText& t);

/// The whole body of a kernel with Grid::Products, after its signature.
void writeProducts(PassText& t);

}  // namespace kelpie::codegen::cuda

// How code for GPUs divides floats (k_quotient in codegen/cuda/base.cuh): what the emitter and the cost model
// have to agree upon.
//
//   x / y          by k_quotient, as x may well be zero
//   exp(x) / y     as compilers divide
//   x / 8.0        a product
#pragma once

#include "ir/expr.h"

namespace kelpie::codegen {

/// A guess, for which code is chosen that is right for all floats.
bool seldomZero(lcu::ExprRef e);
/// A float by which compilers divide as a product with its reciprocal, which is exact.
bool isPowerOfTwo(lcu::ExprRef divisor);

}  // namespace kelpie::codegen

// How code for GPUs divides 64-bit integers (codegen/cuda/integer_division.cuh): what the emitter, the cost
// model and its samples have to agree upon.
//
//   x / y         as words where both are words when it runs, else with floats
//   (x * z) / y   with floats: hardly ever words
//   x / 10        as words where x is one, else as compilers divide by constants
//   (x * z) / 10  as compilers divide by constants
//   x / 8         a shift
#pragma once

#include "ir/expr.h"

namespace kelpie::codegen {

/// A quotient or remainder of integers of any size.
bool dividesIntegers(lcu::ExprRef e);
/// One of 64 bits by what is no constant.
bool dividesLongIntegers(lcu::ExprRef e);
/// Whether products are in it that are no words, as far as its operands tell.
bool isProduct(lcu::ExprRef e);
/// Division of 64 bits for which it is tested whether words suffice, which takes less time then (isLong).
bool dividesByWords(lcu::ExprRef e);
/// Operands that are negative or have more than 32 bits.
bool isLong(int64_t dividend, int64_t divisor);

}  // namespace kelpie::codegen

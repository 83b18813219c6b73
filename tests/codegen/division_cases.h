// Divisions of int64, float32 and float64 on a target that runs generated CUDA, beside what the language says of them.
#pragma once

#include <cstdint>
#include <random>

#include "tests/codegen/known_kernels.h"

namespace kelpie::tests {

/// Checks the kernels of divisions (known_kernels.h), which `target` has prepared, on `n` random operands:
/// of all sizes, around powers of two, extreme, small, and products beside their factors.
void compareDivisions(runtime::Target& target, const KnownKernels& known,
                      const runtime::ProgramKernels& program, size_t n, std::mt19937_64& random);

/// The same of floats and float64: bits at random, and zeros, infinities, NaN, denormal and extreme numbers
/// beside each other and alone.
void compareFloatDivisions(runtime::Target& target, const KnownKernels& known,
                           const runtime::ProgramKernels& program, size_t n, std::mt19937_64& random);

}  // namespace kelpie::tests

// One pass of a kernel -> the text of its entry point (see cuda_module.h).
//
// In:  a kernel with one direction. Out: its text, tile shape and scratch needs; likewise of the pass that is
//      launched for small inputs, if there is one.
#pragma once

#include "codegen/cuda/cuda_module.h"
#include "codegen/cuda/pass_split.h"

namespace kelpie::codegen::cuda {

CudaPass generatePass(KernelPart part, const lcu::Program& program, const std::string& entry,
                      const CudaOptions& options);

}  // namespace kelpie::codegen::cuda

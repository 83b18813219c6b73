// How large the tiles of a pass are: threads of a block, items of a thread, and what of registers and shared
// memory they get.
//
// In:  a plan with its levels, stages and grid (pass_plan.h), and the kernel. Out: the plan with its shape,
//      and everything else that depends on what an item costs: rows that are unrolled together, weights of
//      elements and segment ends, buffers in shared memory, blocks of a multiprocessor, whether segments may
//      be folded by groups. Figures that decide were measured on an H200.
#pragma once

#include "codegen/cuda/pass_plan.h"

namespace kelpie::codegen::cuda {

/// Long code with registers of its own: a root is long, too, but has few.
bool isLongFunction(lcu::ExprRef e);

void chooseShape(PassPlan& plan, const lcu::Kernel& kernel, const KernelInfo& info,
                 const lcu::Program& program, const CudaOptions& options);

}  // namespace kelpie::codegen::cuda

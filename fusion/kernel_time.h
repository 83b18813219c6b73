// The time that a launch of a kernel should take, from the kernel as it was rewritten.
//
// In:  a kernel, fused or not, a cost model that knows sizes, what a profile tells of this very kernel, and a
//      sample of its thunks, if there is one.
// Out: microseconds: launch, loads and stores, arithmetic, and what collectives and segments take
//      (CostModel::predicted).
//
// A thunk that several SOACs of the kernel share is evaluated once. What stands in a branch or a loop counts
// as often as the sample says that it is entered. Loads at computed positions cost by the size of their
// array; where a sample tells positions, neighbours that share a piece of memory load it once, pieces side by
// side come as quickly as those in order, and an array of which only a part is visited counts as that part.
#pragma once

#include "codegen/thunk_sample.h"
#include "fusion/kernel_bytes.h"

namespace kelpie::fusion {

double kernelTime(const lcu::Kernel& kernel, const lcu::Program& program, const CostModel& model,
                  const LaunchSizes& sizes = {}, const codegen::ThunkSample& sample = {});

}  // namespace kelpie::fusion

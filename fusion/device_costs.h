// The constants of a GPU that was not measured, from those of one that was.
//
// In:  constants (cost_constants.h) of the GPU that `referenceFigures` describes, and the figures of another.
// Out: constants of that other one: times of memory go by how fast either copies, those of the cache that all
//      cores share by its size where both are of one generation (it has a slice for each part of the memory's
//      bus, and slices are equally fast: an H100 has five of six of an H200's), those of arithmetic and of a
//      core's own cache by the number of cores and their clock. What is not known stays as it is.
#pragma once

#include "codegen/compiled_kernel.h"
#include "fusion/cost_constants.h"

namespace kelpie::fusion {

/// Of the GPU that cudaCosts() was fitted on.
const codegen::DeviceFigures& referenceFigures();

TargetCosts costsOn(const codegen::DeviceFigures& device, const TargetCosts& costs);

}  // namespace kelpie::fusion

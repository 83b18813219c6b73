// What the scanner of a pass takes for its tiles (codegen/cuda/scanner.cuh): no pass takes less.
#pragma once

#include "codegen/cuda/pass_plan.h"
#include "fusion/cost_constants.h"

namespace kelpie::fusion {

/// Of so many elements; 0 if the pass has none.
double scannerTime(const codegen::cuda::PassPlan& plan, double elements, const TargetCosts& costs);

}  // namespace kelpie::fusion

// What one launch of a kernel loads and stores, from the kernel as it was rewritten.
//
// In:  a kernel, fused or not, a cost model that knows sizes, and what a profile tells of this very kernel:
// an
//      extent may be shared by kernels that run more often, as those before a loop ends.
// Out: the bytes that the evaluator counts (runtime/interp/kernel_evaluator.h), or, with
//      TargetCosts::shortOffsets, an account of a launch on a GPU (runtime/launch_account.h). Exact if the
//      sizes are and `exact` is set. It is not set where a load at a computed position stands under a
//      condition that depends on data or in a loop, and nobody knows how often that is entered: then each
//      such load counts once for each element.
//
// The objective of a schedule is made of what the kernels before fusion load (region_problem.h). Merging them
// can take loads away, as when a condition becomes constant, and repeats a load at a computed position in
// every SOAC that needs it; only the rewritten kernel tells.
#pragma once

#include <optional>
#include <unordered_map>

#include "fusion/cost_model.h"

namespace kelpie::fusion {

struct KernelBytes {
  double read = 0, written = 0;
  bool exact = true;  ///< `read`, for exact sizes
};

/// Averages over the launches of the kernel; the cost model estimates what is missing.
struct LaunchSizes {
  std::optional<double> elements, segments;
  std::unordered_map<lcu::VarId, double> survivors;  ///< by a result of the filter
  std::unordered_map<lcu::VarId, double> targets;    ///< elements of a permute's results, by them
  std::vector<double> entered;  ///< blocks of thunks, as in runtime/target.h; empty: not known
  std::vector<double> threads;  ///< of each pass, that a multiprocessor runs at a time; empty: not known
};

KernelBytes kernelBytes(const lcu::Kernel& kernel, const lcu::Program& program, const CostModel& model,
                        const LaunchSizes& sizes = {});

}  // namespace kelpie::fusion

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
#include "fusion/kernel_structure.h"

namespace kelpie::fusion {

/// For costs that vary. What its parameters refer to must outlive it.
class KernelTimer {
 public:
  KernelTimer(const lcu::Kernel& kernel, const lcu::Program& program, const CostModel& model,
              const LaunchSizes& sizes, const codegen::ThunkSample& sample);
  /// `model`: differs in its costs alone from that of the constructor, which must live, and is for the same
  /// kind of target.
  double time(const CostModel& model) const;

 private:
  const KernelStructure structure_;
  const LaunchSizes& sizes_;
  const codegen::ThunkSample& sample_;
  const double written_;  ///< bytes
};

double kernelTime(const lcu::Kernel& kernel, const lcu::Program& program, const CostModel& model,
                  const LaunchSizes& sizes = {}, const codegen::ThunkSample& sample = {});

}  // namespace kelpie::fusion

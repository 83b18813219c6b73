// Samples of the thunks of a run's launches (codegen/thunk_sample.h), with RunOptions::sampleThunks.
//
// In:  a launch that is about to begin. Out: KernelStatistics::sample. Kernels are sampled whose thunks have
// branches or loops with something in them, loads at computed positions, or a Permute; of their launches the
// first, second, fourth, ... What they read is fetched, page by page, where
// it is not in the memory of the host.
#pragma once

#include <memory>
#include <vector>

#include "runtime/interp/kernel_evaluator.h"
#include "runtime/plan.h"
#include "runtime/run_context.h"

namespace kelpie::runtime {

class ThunkSampler {
 public:
  ThunkSampler(RunContext& context, const Plan& plan) : context_(context), plan_(plan) {}
  /// `bytes` of the buffers behind the arguments of arrays.
  void sample(const LaunchRequest& request, const std::vector<size_t>& bytes);

 private:
  struct Known {
    bool looked = false, telling = false;
    uint64_t launches = 0;
    std::unique_ptr<KernelCode> code;
  };

  RunContext& context_;
  const Plan& plan_;
  std::vector<Known> known_;  ///< by kernel
};

}  // namespace kelpie::runtime

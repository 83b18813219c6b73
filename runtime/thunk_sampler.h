// Samples of the thunks of a run's launches (codegen/thunk_sample.h), with RunOptions::sampleThunks.
//
// In:  a launch that is about to begin. Out: KernelStatistics::sample. Kernels are sampled whose thunks have
// branches or loops, divisions, loads at computed positions, or a Permute; of their launches the first eight,
// the 12th, the 16th, the 24th, ..., each of which stands for those until the next. What they read is
// fetched, as far as it is read, where it is not in the memory of the host. Time goes to the kernels that
// take time, if a run before has told which these are; if not, to those that are launched first.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/interp/kernel_evaluator.h"
#include "runtime/plan.h"
#include "runtime/run_context.h"

namespace kelpie::runtime {

class ThunkSampler {
 public:
  ThunkSampler(RunContext& context, const Plan& plan) : context_(context), plan_(plan) {}
  /// `bytes` of the arrays, by argument.
  void sample(const LaunchRequest& request, const std::vector<size_t>& bytes);

 private:
  struct Known {
    bool looked = false, telling = false;
    uint64_t launches = 0;
    std::unique_ptr<KernelCode> code;
    codegen::ThunkSample latest;
    double elements = 1;                          ///< of the launch that `latest` is from
    uint64_t sampled = 0;                         ///< launches
    std::chrono::steady_clock::duration spent{};  ///< on these
  };
  std::chrono::milliseconds time(const Known& known, const std::string& kernel) const;
  std::chrono::milliseconds timeBySpent() const;
  /// Nothing where the target does not give what is read.
  codegen::ThunkSample look(const LaunchRequest& request, const std::vector<size_t>& bytes, Known& known);

  RunContext& context_;
  const Plan& plan_;
  std::vector<Known> known_;  ///< by kernel
  std::chrono::steady_clock::duration spent_{};
};

}  // namespace kelpie::runtime

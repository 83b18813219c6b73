// Launches, sorts and joins of a plan: finds arguments, allocates results, asks the target.
#pragma once

#include <vector>

#include "runtime/plan_stack.h"
#include "runtime/run_context.h"
#include "runtime/run_recorder.h"
#include "runtime/thunk_sampler.h"

namespace kelpie::runtime {

class Launcher {
 public:
  Launcher(RunContext& context, const Plan& plan, PlanStack& stack)
      : context_(context), plan_(plan), stack_(stack), recorder_(context, plan), sampler_(context, plan) {}

  /// `counter`: the cell with the number of elements, of which extents.elements is the most; or null.
  void launch(const PlanInstruction& i, const codegen::LaunchExtents& extents, const DeviceRef& counter);
  /// Whether launches over so many elements as the cell says need not wait for what it says.
  bool mayCount(const DeviceValue& counter) const;
  void grade(const PlanInstruction& i, const codegen::LaunchExtents& extents);
  /// lcu::Service random_draws: the next `count` draws of the stream.
  void draw(const PlanInstruction& i, const RandomStream& stream, int64_t count);
  void join(const PlanInstruction& i);
  RunRecorder& recorder() { return recorder_; }

 private:
  /// From here on the device makes random numbers, instead of the host for it.
  static constexpr int64_t kManyDraws = 4096;

  void upload(RandomStream stream, DeviceValue& draws);
  void sample(const PlanInstruction& i, LaunchRequest request);
  /// Of the array that is a parameter, as far as it is in use; of those whose elements are gathered.
  int64_t bytesOf(const PlanInstruction& i, size_t parameter);
  int64_t gatheredBytes(const PlanInstruction& i, const codegen::KernelInfo& info);
  void findArguments(const PlanInstruction& i, const codegen::KernelInfo& info);
  void allocateResults(const PlanInstruction& i, const codegen::KernelInfo& info,
                       const codegen::LaunchExtents& extents, const DeviceRef& counter);
  void placeOnto(const PlanInstruction::Onto& onto, const codegen::KernelOutput& output,
                 const codegen::LaunchExtents& extents);
  void allocateTogether(const std::vector<uint32_t>& group, const codegen::KernelInfo& info,
                        const codegen::LaunchExtents& extents);

  RunContext& context_;
  const Plan& plan_;
  PlanStack& stack_;
  RunRecorder recorder_;
  ThunkSampler sampler_;
  /// Whether the launch leaves an output as a short array: one that nothing else shares memory with, and
  /// whose elements will fit, as far as that is known.
  bool isShort(const PlanInstruction& i, uint32_t output, const codegen::LaunchExtents& extents) const;
  void findShortArrays(const PlanInstruction& i, const codegen::KernelInfo& info);

  // Of the launch under way; kept to be used again.
  std::vector<KernelArgument> arguments_;
  std::vector<int64_t> lengths_;
  std::vector<DeviceRef> results_;
  std::vector<DevicePointer> outputs_;
  std::vector<lcu::VarId> shortArrays_;
};

}  // namespace kelpie::runtime

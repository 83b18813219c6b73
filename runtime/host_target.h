// What the targets that work in the memory of the host share: memory, copies, sorting, the error word.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/interp/kernel_evaluator.h"
#include "runtime/target.h"
#include "runtime/thread_team.h"

namespace kelpie::runtime {

class HostTarget : public Target {
 public:
  /// 0 bytes: three quarters of the machine's memory.
  explicit HostTarget(size_t memoryLimit, int threads = 1);

  DevicePointer allocate(size_t bytes) override;
  void deallocate(DevicePointer pointer) override;
  size_t memoryLimit() const override { return memoryLimit_; }
  Failure upload(DevicePointer to, const void* from, size_t bytes) override;
  Failure download(void* to, DevicePointer from, size_t bytes) override;
  Failure copy(DevicePointer to, DevicePointer from, size_t bytes) override;
  bool hostAddressable() const override { return true; }
  Failure prepare(const ProgramKernels& program) override;
  void release(const ProgramKernels& program) override;
  Failure launch(const LaunchRequest& request) final;
  Failure grade(const GradeRequest& request) override;
  Failure draw(const RandomStream& stream, ScalarType type, DevicePointer to, int64_t count) override;
  Failure synchronise(std::optional<DeviceError>& error) override;
  void clearError() override { error_.reset(); }
  TargetStatistics statistics() const override { return statistics_; }
  const LaunchWork* lastWork() const override { return counted_ ? &work_ : nullptr; }
  void timeLaunches(bool on) override;
  std::vector<double> launchSeconds() override { return std::exchange(seconds_, {}); }
  double copyBandwidth() override;

 protected:
  /// Runs one launch; the error word is clear.
  virtual Failure execute(const LaunchRequest& request, std::optional<DeviceError>& error) = 0;
  ThreadTeam& team() { return team_; }
  /// Evaluates the launch by definition, and counts its work. May throw DeadlinePassed.
  void interpret(const LaunchRequest& request, std::optional<DeviceError>& error,
                 std::optional<Deadline> deadline = std::nullopt, Postpone postpone = nullptr);

 private:
  template <typename Work>
  void timed(const Work& work);

  size_t memoryLimit_;
  ThreadTeam team_;
  std::optional<DeviceError> error_;
  TargetStatistics statistics_;
  LaunchWork work_;
  bool counted_ = false, timing_ = false;
  std::vector<double> seconds_;
  /// Code for the evaluator by kernel, made on first use.
  std::unordered_map<const ProgramKernels*, std::vector<std::unique_ptr<KernelCode>>> code_;
};

/// The target `interp`: every kernel by definition.
class InterpTarget final : public HostTarget {
 public:
  explicit InterpTarget(size_t memoryLimit = 0) : HostTarget(memoryLimit) {}
  std::string name() const override { return "interp"; }

 protected:
  Failure execute(const LaunchRequest& request, std::optional<DeviceError>& error) override {
    interpret(request, error);
    return std::nullopt;
  }
};

}  // namespace kelpie::runtime

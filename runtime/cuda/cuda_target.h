// The target `cuda`: launches the passes of generated kernels on a device (runtime/cuda/device.h).
//
// All kernels of a program are one module, compiled when the program is prepared. Every launch has a
// number, which the error word carries, so that kernels after a failed one do nothing; every pass an epoch,
// which look-back states carry, so that they are never cleared between launches.
#pragma once

#include <unordered_map>

#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/device.h"
#include "runtime/target.h"

namespace kelpie::runtime::cuda {

class CudaTarget final : public Target {
 public:
  explicit CudaTarget(std::unique_ptr<Device> device, codegen::cuda::CudaOptions options = {});
  ~CudaTarget() override;

  std::string name() const override { return "cuda"; }
  DevicePointer allocate(size_t bytes) override { return device_->allocate(bytes); }
  void deallocate(DevicePointer pointer) override { device_->deallocate(pointer); }
  size_t memoryLimit() const override { return device_->memoryLimit(); }
  Failure upload(DevicePointer to, const void* from, size_t bytes) override;
  Failure download(void* to, DevicePointer from, size_t bytes) override;
  Failure copy(DevicePointer to, DevicePointer from, size_t bytes) override;
  bool hostAddressable() const override { return false; }
  Failure prepare(const ProgramKernels& program) override;
  void release(const ProgramKernels& program) override;
  Failure launch(const LaunchRequest& request) override;
  Failure grade(const GradeRequest& request) override;
  Failure synchronise(std::optional<DeviceError>& error) override;
  void clearError() override;
  TargetStatistics statistics() const override { return statistics_; }
  void timeLaunches(bool on) override;
  std::vector<double> launchSeconds() override;
  double copyBandwidth() override;

 private:
  struct CompiledProgram {
    codegen::cuda::CudaModule text;
    std::unique_ptr<Module> module;
    struct PassCode {
      Function function;
      int64_t resident;  ///< blocks that run at the same time
    };
    std::vector<std::vector<PassCode>> functions;  ///< by kernel and pass
    Function split = nullptr, fill1 = nullptr, fill4 = nullptr, fill8 = nullptr;
  };

  /// Runs `work` between two marks, when launches are timed.
  template <typename Work>
  Failure timed(const Work& work);
  Failure launchPasses(const LaunchRequest& request);
  Failure start();  ///< allocates the error word and the counters, once
  Failure reserveStates(int64_t words);
  Failure launchPass(const LaunchRequest& request, const CompiledProgram& program, size_t kernel, size_t pass,
                     std::unordered_map<lcu::VarId, DevicePointer>& between);
  Failure fillPermuted(const LaunchRequest& request, const CompiledProgram& program,
                       const codegen::cuda::CudaPass& pass, lcu::VarId var, DevicePointer pointer);

  std::unique_ptr<Device> device_;
  codegen::cuda::CudaOptions options_;
  std::unordered_map<const ProgramKernels*, CompiledProgram> programs_;
  uint64_t launches_ = 0, epochs_ = 0;
  DevicePointer error_ = nullptr, counters_ = nullptr, states_ = nullptr;
  int64_t stateWords_ = 0;
  bool timing_ = false;
  int marked_ = 0;               ///< launches whose times the device still holds
  std::vector<double> seconds_;  ///< of launches before those
  TargetStatistics statistics_;
};

}  // namespace kelpie::runtime::cuda

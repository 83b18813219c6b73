// The target `cuda`: launches the passes of generated kernels on a device (runtime/cuda/device.h).
//
// Every kernel is a module of its own: compiled in the background from the time its program is prepared,
// loaded at its first launch, and kept for later programs that have the same kernel. Every launch has a
// number, which the error word carries, so that kernels after a failed one do nothing; every pass an epoch,
// which look-back states carry, so that they are never cleared between launches.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/argument_block.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/device_draws.h"
#include "runtime/cuda/host_evaluation.h"
#include "runtime/cuda/host_reader.h"
#include "runtime/cuda/outcome_board.h"
#include "runtime/target.h"

namespace kelpie::runtime::cuda {

struct LaunchWord;

class CudaTarget final : public Target {
 public:
  explicit CudaTarget(std::unique_ptr<Device> device, codegen::cuda::CudaOptions options = {});
  ~CudaTarget() override;

  std::string name() const override { return "cuda"; }
  DevicePointer allocate(size_t bytes) override;
  void deallocate(DevicePointer pointer) override;
  size_t memoryLimit() const override { return device_->memoryLimit(); }
  void giveBackUnused() override { device_->giveBackUnused(); }
  Failure upload(DevicePointer to, const void* from, size_t bytes) override;
  Failure download(void* to, DevicePointer from, size_t bytes) override;
  Failure copy(DevicePointer to, DevicePointer from, size_t bytes) override;
  bool hostAddressable() const override { return false; }
  Failure prepare(const ProgramKernels& program) override { return prepare(program, true); }
  void release(const ProgramKernels& program) override;
  Failure launch(const LaunchRequest& request) override;
  codegen::Streams streams(const LaunchRequest& request) override;
  Failure grade(const GradeRequest& request) override;
  Failure draw(const RandomStream& stream, ScalarType type, DevicePointer to, int64_t count) override;
  Failure synchronise(std::optional<DeviceError>& error) override;
  Failure read(std::span<const HostRead> reads, std::optional<DeviceError>& error) override;
  void clearError() override;
  bool storesShort() override { return options_.storesShort; }
  Failure widen(DevicePointer to, DevicePointer from, int64_t count) override {
    return convert(widen_, to, from, count);
  }
  Failure shorten(DevicePointer to, DevicePointer from, int64_t count) override {
    return convert(shorten_, to, from, count);
  }
  bool canCount() override { return !timing_ && reader_.function("kelpie_host_words") != nullptr; }
  bool canForetell() override { return !timing_ && board_.usable(); }
  Failure foretell(DevicePointer condition, bool expected, uint64_t& number) override;
  Failure outcomeOf(uint64_t number, bool wait, Outcome& outcome) override;
  void takeBack(uint64_t number) override;
  void timeLaunches(bool on) override;
  std::vector<double> launchSeconds() override;
  double copyBandwidth() override;
  TargetStatistics statistics() const override;
  std::vector<codegen::CompiledPass> lastPasses() const override { return lastPasses_; }
  codegen::DeviceFigures figures() const override { return device_->figures(); }
  Failure prepareForLater(const ProgramKernels& program) override { return prepare(program, false); }
  bool canLaunch(const ProgramKernels& program) override;

 private:
  /// Machine code of a pass; programs share it.
  struct Loaded {
    std::unique_ptr<Module> module;
    Function function = nullptr;
    codegen::CompiledPass resources;
  };
  /// Where a parameter or an output of a pass is found.
  struct Origin {
    enum class Of : uint8_t { Argument, Output, Between } of;  ///< of the launch; an array between passes
    uint32_t index;
  };
  struct PreparedPass {
    std::vector<Origin> parameters, outputs;  ///< by the pass's info
    ArgumentBlock arguments;
    std::string source;
    std::shared_ptr<const Loaded> loaded;    ///< null before the first launch
    std::vector<PreparedPass> alternatives;  ///< of CudaPass::alternatives
  };
  struct PreparedKernel {
    std::vector<lcu::VarId> shortArrays;  ///< of a launch, which the text is for
    codegen::cuda::Places places = codegen::cuda::Places::Short;
    codegen::cuda::CudaKernel text;
    std::vector<PreparedPass> passes;
    std::vector<DevicePointer> between;
    Meanwhile meanwhile;
    /// For launches of which other arrays are short, or places long.
    std::vector<std::unique_ptr<PreparedKernel>> others = {};
    bool isShort(lcu::VarId array) const {
      return std::binary_search(shortArrays.begin(), shortArrays.end(), array);
    }
  };

  /// Runs `work` between two marks, when launches are timed.
  Failure timed(const std::function<Failure()>& work);
  Failure launchPasses(const LaunchRequest& request, PreparedKernel& kernel);
  Failure prepare(const ProgramKernels& program, bool soon);
  /// Waits for a kernel with recursions, and evaluates it on the host if a stack was too small.
  Failure finishRecursive(const LaunchRequest& request);
  /// Evaluates a launch of few elements on the host while there is no code for it, whose sources are
  /// `missing`. `done`: it has.
  Failure evaluateMeanwhile(const LaunchRequest& request, PreparedKernel& kernel,
                            const std::vector<const std::string*>& missing, bool& done);
  Failure record(const std::optional<DeviceError>& error);
  Failure start();  ///< allocates the error word and the counters, once
  /// Memory for state words, whose tags are of other launches or 0.
  Failure findStates(int64_t words, Scratch& scratch, DevicePointer& states);
  /// What is launched of a pass, which `pass` becomes.
  static PreparedPass& chosen(const LaunchRequest& request, PreparedKernel& kernel, size_t number,
                              const codegen::cuda::CudaPass*& pass);
  PreparedKernel generate(const KernelEntry& entry, const lcu::Program& program,
                          std::vector<lcu::VarId> shortArrays, codegen::cuda::Places places) const;
  /// The kernel for what is short of this launch.
  PreparedKernel& kernelOf(const LaunchRequest& request);
  Failure load(PreparedPass& prepared, const codegen::cuda::CudaPass& pass);
  Failure loadSupport();
  /// Of a launch, with the places of segments with two indices.
  static codegen::LaunchExtents extentsOf(const LaunchRequest& request, const PreparedPass& prepared,
                                          const codegen::cuda::CudaPass& pass);
  Failure takeBetween(const LaunchRequest& request, PreparedKernel& kernel);
  Failure launchPass(const LaunchRequest& request, PreparedKernel& kernel, size_t passNumber);
  /// Columns of parameters side by side, the pass's `number`th, if that may pay and there is memory; `word`
  /// tells the kernel.
  Failure interleave(const LaunchRequest& request, const PreparedKernel& kernel, const PreparedPass& prepared,
                     const codegen::cuda::CudaPass& pass, size_t number, LaunchWord& word);
  /// By a kernel of the support module.
  Failure convert(const Function& function, DevicePointer to, DevicePointer from, int64_t count);
  /// Permutes whose last writers the host finds after a launch, with memory for that.
  struct FoundTogether {
    std::array<DevicePointer, codegen::kMostFoundTogether> places{};  ///< as kernels number them
    std::vector<std::pair<LastWriters, DevicePointer>> all;
    bool finds(DevicePointer writers) const {
      return std::any_of(all.begin(), all.end(),
                         [&](const auto& one) { return one.first.writers == writers; });
    }
  };
  FoundTogether lastWriters(const LaunchRequest& request, const PreparedPass& prepared,
                            const codegen::cuda::CudaPass& pass);
  Failure fillPermuted(const LaunchRequest& request, const codegen::cuda::CudaPass& pass, lcu::VarId var,
                       DevicePointer pointer);

  std::unique_ptr<Device> device_;
  HostReader reader_;
  OutcomeBoard board_;
  DeviceDraws draws_;
  codegen::cuda::CudaOptions options_;
  std::unordered_map<const ProgramKernels*, std::vector<PreparedKernel>> programs_;
  std::unordered_map<std::string, std::shared_ptr<const Loaded>> loaded_;  ///< by source
  std::unique_ptr<Module> support_;                                        ///< null before its first use
  Function starts_ = nullptr, rank1_ = nullptr, rank2_ = nullptr, rank4_ = nullptr;
  Function fill1_ = nullptr, fill4_ = nullptr, fill8_ = nullptr, interleave_ = nullptr, interleaveScattered_ = nullptr;
  Function widen_ = nullptr, shorten_ = nullptr;
  uint64_t launches_ = 0, epochs_ = 0;
  uint64_t cleanAt_ = 0;  ///< launches up to which there was no error
  DevicePointer error_ = nullptr, counters_ = nullptr, states_ = nullptr;
  int64_t stateWords_ = 0;
  Allocations allocations_;
  bool stackReserved_ = false;
  bool timing_ = false;
  std::vector<codegen::CompiledPass> lastPasses_;  ///< when launches are timed
  int marked_ = 0;                                 ///< launches whose times the device still holds
  std::vector<double> seconds_;                    ///< of launches before those
  std::set<std::tuple<ScalarType, lcu::SpaceKind, bool, bool>> warmSorts_;  ///< whose code is loaded
  std::vector<HostRead> reads_;
  TargetStatistics statistics_;
};

}  // namespace kelpie::runtime::cuda

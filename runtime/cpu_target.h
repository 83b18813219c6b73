// The target `cpu`: kernels as generated C++ (codegen/cpu), compiled by the system's compiler, in parallel
// (runtime/thread_team.h).
//
// Tiers. A program starts in the evaluator of the target `interp`; once its kernels have done some work they
// are compiled, all together, and quickly if they are long; once such code has done more, it is compiled
// well. With Jit::Always they are compiled well at once. Shared objects are kept on disk
// (runtime/object_cache.h), so a program that was compiled once starts fast the next time. All ways give the
// same results to the bit, so when the change happens is not observable. Without a compiler everything stays
// in the evaluator (Jit::Auto), and the user is told.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/cpu/launch.h"
#include "runtime/host_target.h"
#include "runtime/object_cache.h"

namespace kelpie::runtime {

enum class Jit : uint8_t { Auto, Always, Never };

struct CpuOptions {
  Jit jit = Jit::Auto;
  size_t memoryLimit = 0;  ///< bytes; 0: three quarters of the machine's memory
  int threads = 0;         ///< 0: usualThreads()
  ObjectCacheOptions cache;
};

/// How kernels came to run; for reports and tests.
struct CpuStatistics {
  uint64_t interpretedLaunches = 0, compiledLaunches = 0;
  uint64_t compiledUnits = 0, cachedUnits = 0;  ///< shared objects made; found on disk
  uint64_t improvedUnits = 0;                   ///< of them, those that were made again, well
  double waitedSeconds = 0;                     ///< for compilers
  std::string compileFailure;                   ///< why kernels are not compiled, when they should be
};

class CpuTarget final : public HostTarget {
 public:
  explicit CpuTarget(CpuOptions options = {});
  ~CpuTarget() override;
  std::string name() const override { return "cpu"; }
  Failure prepare(const ProgramKernels& program) override;
  void release(const ProgramKernels& program) override;
  const CpuStatistics& cpuStatistics() const { return cpuStatistics_; }
  /// Why kernels are evaluated that should be compiled: there is no compiler, no place for what it writes, or
  /// it failed.
  std::string takeComplaint() override { return std::exchange(complaint_, ""); }

 protected:
  Failure execute(const LaunchRequest& request, std::optional<DeviceError>& error) override;

 private:
  struct Unit {
    std::string source;
    std::string goodKey, quickKey;  ///< in the caches
    std::vector<size_t> kernels;    ///< numbers in the program
    std::vector<std::string> entries;
    bool loaded = false, good = false;  ///< quickly compiled, or better; well compiled
  };
  struct Compiled {
    double work = 0;  ///< seconds in the evaluator so far, estimated or what they were, if that is more
    bool generated = false, lookedUp = false, started = false;
    size_t missing = 0;                        ///< units not loaded yet; counts once they are generated
    double compiledWork = 0;                   ///< seconds in compiled code so far
    bool improving = false, improved = false;  ///< compilers make it better; there is nothing to wait for
    std::chrono::steady_clock::time_point lastLook;
    std::vector<Unit> units;
    std::vector<double> costs;  ///< by kernel: estimated seconds for one element in the evaluator
    std::vector<bool> endless;  ///< by kernel: has loops or recursions
    std::vector<codegen::cpu::KernelFunction> functions;  ///< by kernel; null: not there yet
  };

  void generate(const ProgramKernels& program, Compiled& compiled);
  /// Takes what the caches have.
  void load(Compiled& compiled);
  /// From now on kernels of the unit are those of a loaded object.
  void take(Compiled& compiled, Unit& unit, void* handle);
  /// Where the first compiled code comes from: of short sources it is good at once.
  ObjectCache& firstOf(const Unit& unit);
  /// The unit of kernel number `first` before the others.
  void startCompiling(Compiled& compiled, size_t first = 0);
  /// Whether compilers are at work on first code.
  bool compilersWork();
  void waitForCompilers(Compiled& compiled);
  /// Kernels that are not compiled now never are, for the first reason that is given.
  void giveUp(const std::string& why);
  /// Until one kernel is compiled, or all that compilers are at work on.
  void waitForKernel(Compiled& compiled, size_t kernel);
  /// Jit::Auto, after a compiled launch: has programs that go on for long compiled well.
  void improve(Compiled& compiled);
  /// Estimated seconds of a launch in the evaluator.
  double costOf(const LaunchRequest& request, const Compiled& compiled) const;
  /// Jit::Auto, before a launch: whatever brings the program nearer to compiled kernels.
  void advance(const LaunchRequest& request, Compiled& compiled);
  /// Evaluates loops or recursions, of which nobody knows how long they take: after a while compilers begin
  /// to work, too. False if these were done first.
  bool interpretUntilCompiled(const LaunchRequest& request, std::optional<DeviceError>& error,
                              Compiled& compiled);
  Failure call(const LaunchRequest& request, codegen::cpu::KernelFunction function,
               std::optional<DeviceError>& error);

  CpuOptions options_;
  ObjectCache quick_, small_, good_;  ///< small: compiled as well as good ones, but waited for
  const int64_t ownStack_;            ///< bytes of a thread's stack that recursions in kernels may take
  CpuStatistics cpuStatistics_;
  std::string complaint_;
  std::unordered_map<const ProgramKernels*, Compiled> programs_;
};

}  // namespace kelpie::runtime

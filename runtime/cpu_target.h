// The target `cpu`: kernels as generated C++ (codegen/cpu), compiled by the system's compiler, in parallel
// with OpenMP.
//
// Tiers. A program starts in the evaluator of the target `interp`; once its kernels have done some work, or
// at once with Jit::Always, they are compiled, all together. Shared objects are kept on disk
// (runtime/object_cache.h), so a program that was compiled once starts fast the next time. Both ways give the
// same results to the bit, so when the change happens is not observable. Without a compiler everything stays
// in the evaluator (Jit::Auto).
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/cpu/launch.h"
#include "runtime/host_target.h"
#include "runtime/object_cache.h"

namespace kelpie::runtime {

enum class Jit : uint8_t { Auto, Always, Never };

struct CpuOptions {
  Jit jit = Jit::Auto;
  size_t memoryLimit = 0;  ///< bytes; 0: three quarters of the machine's memory
  int threads = 0;         ///< 0: as OpenMP decides
  ObjectCacheOptions cache;
};

/// How kernels came to run; for reports and tests.
struct CpuStatistics {
  uint64_t interpretedLaunches = 0, compiledLaunches = 0;
  uint64_t compiledUnits = 0, cachedUnits = 0;  ///< shared objects made; found on disk
  double compileSeconds = 0;
  std::string compileFailure;  ///< why kernels are not compiled, when they should be
};

class CpuTarget final : public HostTarget {
 public:
  explicit CpuTarget(CpuOptions options = {});
  ~CpuTarget() override;
  std::string name() const override { return "cpu"; }
  Failure prepare(const ProgramKernels& program) override;
  void release(const ProgramKernels& program) override;
  const CpuStatistics& cpuStatistics() const { return cpuStatistics_; }

 protected:
  Failure execute(const LaunchRequest& request, std::optional<DeviceError>& error) override;

 private:
  struct Unit {
    std::string source;
    std::vector<size_t> kernels;  ///< numbers in the program
    std::vector<std::string> entries;
  };
  struct Compiled {
    double work = 0;  ///< estimated seconds in the evaluator so far
    bool generated = false, lookedUp = false, loaded = false;
    std::vector<Unit> units;
    std::vector<double> costs;  ///< by kernel: estimated seconds for one element in the evaluator
    std::vector<codegen::cpu::KernelFunction> functions;
  };

  void generate(const ProgramKernels& program, Compiled& compiled);
  /// Loads the program's kernels, compiling what is not in the cache if `mayCompile`. True when all are
  /// there.
  bool load(const ProgramKernels& program, Compiled& compiled, bool mayCompile);
  bool shouldLoad(const LaunchRequest& request, Compiled& compiled);
  Failure call(const LaunchRequest& request, codegen::cpu::KernelFunction function,
               std::optional<DeviceError>& error);

  CpuOptions options_;
  ObjectCache cache_;
  CpuStatistics cpuStatistics_;
  std::unordered_map<const ProgramKernels*, Compiled> programs_;
};

}  // namespace kelpie::runtime

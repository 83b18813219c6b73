// What the CUDA target asks of a machine: memory and launches in stream order, and compiled modules.
//
// Implemented by a real device (driver_device.h) and, in tests, by an emulation on the host.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/target.h"

namespace kelpie::runtime::cuda {

/// An entry point of a module.
using Function = void*;

class Module {
 public:
  virtual ~Module() = default;
  virtual Function function(const std::string& entry) = 0;  ///< null: there is none
  /// What blocks of so many threads take and for how many of them a multiprocessor has room; 0: nobody knows.
  virtual codegen::CompiledPass resources(Function /*function*/, int threads) {
    return {0, 0, threads, 0, 0};
  }
};

/// Who writes last to each place of an array (last_writers.h). On the device: places[elements] of 32 bits,
/// writers[target] of Int64, and words of 64 bits: the number of elements, where `counted` is not null, and
/// whether there was an error.
struct LastWriters {
  DevicePointer places;
  int64_t elements;
  DevicePointer counted, writers;
  int64_t target;
  bool onto;  ///< writers hold what counts, too; else those without a writer become `fill`
  int64_t fill;
  DevicePointer error;
};

class Device {
 public:
  virtual ~Device() = default;

  /// Null when there is no memory. Rounded up to 256 bytes, which vector loads rely on.
  virtual DevicePointer allocate(size_t bytes) = 0;
  virtual void deallocate(DevicePointer pointer) = 0;
  virtual size_t memoryLimit() const = 0;
  virtual void giveBackUnused() {}  ///< memory that was deallocated, to whoever else wants some
  virtual codegen::DeviceFigures figures() const { return {}; }  ///< without copyBandwidth

  virtual Failure upload(DevicePointer to, const void* from, size_t bytes) = 0;
  virtual Failure download(void* to, DevicePointer from, size_t bytes) = 0;
  /// Several small downloads in one wait.
  virtual Failure read(std::span<const HostRead> reads) {
    for (const HostRead& r : reads)
      if (auto failure = download(r.to, r.from, r.bytes)) return failure;
    return std::nullopt;
  }
  virtual Failure copy(DevicePointer to, DevicePointer from, size_t bytes) = 0;
  virtual Failure clear(DevicePointer to, size_t bytes) = 0;  ///< to zero bytes
  virtual Failure wait() = 0;

  /// Memory of the host that kernels write to at the same address, for as long as the device lives; null:
  /// there is none.
  virtual void* sharedMemory(size_t bytes) = 0;
  /// Waits until a kernel has written a word there whose bits of `mask` are `value`, and what it wrote
  /// before. `busy`: the device has more to do after that kernel.
  virtual Failure await(const uint64_t* shared, uint64_t value, uint64_t mask = ~uint64_t{0},
                        bool busy = false) = 0;

  /// Tells sources that `compile` may be asked for: a device that compiles in the background begins.
  /// `soon`: those of a program that is about to run.
  virtual void announce(const std::vector<std::string>& /*sources*/, bool /*soon*/) {}
  /// Whether code for the source is there, so that `compile` waits for no compiler; it begins to work if not.
  virtual bool isReady(const std::string& /*source*/) { return true; }
  /// Somebody will soon wait for the code of a source that is not ready.
  virtual void hurry(const std::string& /*source*/) {}
  virtual bool canCompile(const std::string& /*source*/) { return true; }
  /// Compiles a generated source (codegen/cuda/cuda_module.h); `entries` are its entry points.
  virtual Failure compile(const std::string& source, const std::vector<std::string>& entries,
                          std::unique_ptr<Module>& module) = 0;
  virtual CompilerStatistics compilerStatistics() const { return {}; }
  /// From now on every thread may have that much stack.
  virtual Failure reserveStack(size_t bytes) = 0;
  /// `arguments` are addresses of the arguments, as for cuLaunchKernel.
  virtual Failure launch(Function function, int64_t blocks, int threads, void** arguments) = 0;
  virtual Failure grade(const GradeRequest& request) = 0;
  /// The memory that finding them takes; 0: the device cannot. May load code.
  virtual size_t lastWritersBytes(const LastWriters& /*request*/) { return 0; }
  virtual Failure findLastWriters(const LastWriters& /*request*/, DevicePointer /*scratch*/) {
    return "this device does not find last writers";
  }

  /// Notes a point of time in the order of the stream.
  virtual Failure mark() = 0;
  /// Notes when the next launch or sort begins: after what the host does for it, such as loading code. At the
  /// latest that is the next point noted.
  virtual Failure markLaunch() = 0;
  /// Waits. Appends the seconds from the first to the second point noted since last asked, from the third to
  /// the fourth, ..., and forgets them.
  virtual Failure takeMarks(std::vector<double>& seconds) = 0;
};

}  // namespace kelpie::runtime::cuda

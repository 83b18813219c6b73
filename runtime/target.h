// The interface that a target implements: memory, kernels, sorting, errors.
//
// A target runs what it is given in order (one stream). `launch`, `grade` and `copy` may return before the
// work is done; `upload` has read its source when it returns; `download` and `synchronise` wait. Addresses
// are the target's own: on `interp` and `cpu` plain pointers, on `cuda` device addresses.
//
// Error word. The first error a kernel records (by launch, then by the least site, as sites are numbered in
// the order of the program, then by the least element index, then by order of bindings) stays until
// `clearError`. Launches after the one that recorded it do nothing, but leave memory as it is: the host
// learns of the error at its next `synchronise` or `download`. Launches that do nothing leave their outputs
// unset, so whoever downloads asks for the error before it believes a value.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/compiled_kernel.h"
#include "codegen/kernel_analysis.h"
#include "codegen/streams.h"
#include "ir/lcu.h"
#include "runtime/random_stream.h"

namespace kelpie::runtime {

/// An address in the target's memory.
using DevicePointer = void*;

/// Why a target could not do what it was asked: no driver, compilation failed, a device fault. Empty: it did.
using Failure = std::optional<std::string>;

struct DeviceError {
  lcu::SiteId site = 0;  ///< index into Program::sites
  int64_t payload0 = 0, payload1 = 0;
};

/// A kernel of a program together with what was found out about it.
struct KernelEntry {
  const lcu::Kernel* kernel;
  codegen::KernelInfo info;
  /// Of its parameters and outputs, arrays that a target which storesShort() had better have in 32 bits
  /// (codegen/short_arrays.h), ascending.
  std::vector<lcu::VarId> shortArrays = {};
};

/// A program as a target sees it. Outlives every use by the target between `prepare` and `release`.
struct ProgramKernels {
  const lcu::Program* program;
  std::vector<KernelEntry> kernels;  ///< launches refer to them by number
  bool draws = false;                ///< it may ask for random numbers
};

/// One argument, in the order of KernelInfo::parameters.
union KernelArgument {
  DevicePointer pointer;  ///< Array, Cell
  int64_t integer;        ///< Size; Scalar of type Bool (0, 1), Char, Int32, Int64
  double real;            ///< Scalar of a float type
};

/// Temporary memory of one launch, given back (in stream order) when it is over.
class Scratch {
 public:
  virtual ~Scratch() = default;
  virtual DevicePointer take(size_t bytes) = 0;  ///< 256-byte aligned; null when there is no memory
};

struct LaunchRequest {
  const ProgramKernels* program;
  size_t kernel;  ///< index into program->kernels
  codegen::LaunchExtents extents;
  std::span<const KernelArgument> arguments;  ///< by KernelInfo::parameters
  std::span<const DevicePointer> outputs;     ///< by KernelInfo::outputs, `capacity` elements each
  Scratch* scratch;
  /// Targets that evaluate kernels themselves look at it in loops and throw Interrupted; it may be null.
  const std::atomic<bool>* interrupt = nullptr;
  /// Where the number of elements is, an Int64, while the host does not know it: extents.elements is the most
  /// it can be. Only where KernelInfo::counted, and Target::canCount.
  DevicePointer counted = nullptr;
  /// By KernelInfo::parameters: elements of an Array; 0 where they are not known, and for others.
  std::span<const int64_t> lengths = {};
  /// Arrays of Int64, parameters or outputs, that are stored in 32 bits, ascending. Only where
  /// Target::storesShort.
  std::span<const lcu::VarId> shortArrays = {};
};

/// lcu::Grade: keys[elements] of `type`, order[elements] of Int64, sorted[elements] of `type`,
/// ranks[elements] of Int64; of the last three those are null that are not wanted. `sorted`: of no floats.
struct GradeRequest {
  ScalarType type;
  DevicePointer keys, order, sorted, ranks;
  lcu::SpaceKind space;
  codegen::LaunchExtents extents;
  DevicePointer offsets;  ///< SpaceKind::Offsets: segments + 1 positions; null otherwise
  Scratch* scratch;
  bool* waited = nullptr;  ///< set if the host has waited for the device; may be null
  /// Null, or a word of 64 bits of the device: once it is not 0, an earlier launch has failed, offsets may
  /// not exist, and nothing is to be sorted.
  DevicePointer failure = nullptr;
};

/// How machine code for kernels came to be.
struct CompilerStatistics {
  uint64_t compiled = 0, cached = 0;  ///< sources: compiled; found on disk
  double waitedSeconds = 0;           ///< of the host, for both
  friend CompilerStatistics operator-(const CompilerStatistics& a, const CompilerStatistics& b) {
    return {a.compiled - b.compiled, a.cached - b.cached, a.waitedSeconds - b.waitedSeconds};
  }
};

/// A few bytes to read into the memory of the host.
struct HostRead {
  void* to;
  DevicePointer from;
  size_t bytes;
  /// Null, or where an Int64 is: `from` is so many times `bytes` further, but no more than `most`. Only where
  /// Target::canCount.
  DevicePointer position = nullptr;
  int64_t most = 0;
};

/// How a condition came out that was foretold (Target::foretell).
enum class Outcome : uint8_t {
  Open,        ///< the device is not there yet
  AsForetold,  //
  Otherwise,   ///< launches after it do nothing until Target::takeBack
  Unreached,   ///< an error came before
};

/// What a target did since it was made; for reports and tests.
struct TargetStatistics {
  uint64_t launches = 0;
  uint64_t evaluated = 0;  ///< launches and draws that the host did while their code was being compiled
  CompilerStatistics compiler;
  double deviceSeconds = 0;  ///< time in kernels where the target measures it
  uint64_t unexpected = 0;   ///< kernels made anew at their launch: other arrays are short, or there are more
                             ///< elements than places of 32 bits tell apart
};

/// What one launch did: counted exactly by the evaluator (runtime/interp/kernel_evaluator.h), otherwise found
/// from its thunks and extents (runtime/launch_account.h).
struct LaunchWork {
  uint64_t elements = 0;  ///< evaluations of a binding's thunks, over all bindings
  uint64_t bytesRead = 0, bytesWritten = 0;
  std::vector<uint64_t> survivors;  ///< by Filter, in order of bindings
  /// Of the evaluator: how often each block of the thunks was entered (codegen/expression_schedule.h),
  /// binding by binding, first those of its eagerThunks, then of its lateThunks; 0 for outermost and empty
  /// blocks.
  std::vector<uint64_t> entered;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;  ///< "interp", "cpu", "cuda"

  /// At least 16 bytes, 256-byte aligned; null when there is no memory.
  virtual DevicePointer allocate(size_t bytes) = 0;
  virtual void deallocate(DevicePointer pointer) = 0;
  virtual size_t memoryLimit() const = 0;  ///< bytes that a program may use at most

  virtual Failure upload(DevicePointer to, const void* from, size_t bytes) = 0;
  virtual Failure download(void* to, DevicePointer from, size_t bytes) = 0;
  virtual Failure copy(DevicePointer to, DevicePointer from, size_t bytes) = 0;
  /// Whether device addresses may be read and written directly by the host after `synchronise`.
  virtual bool hostAddressable() const = 0;

  /// Announces a program before its first launch. May compile, now or later.
  virtual Failure prepare(const ProgramKernels& program) = 0;
  /// The same for a program that other programs will run before.
  virtual Failure prepareForLater(const ProgramKernels& program) { return prepare(program); }
  /// Whether a program can be launched: false when it needs a compiler and there is none.
  virtual bool canLaunch(const ProgramKernels& /*program*/) { return true; }
  /// The program will not be launched again and is about to be destroyed.
  virtual void release(const ProgramKernels& program) = 0;
  virtual Failure launch(const LaunchRequest& request) = 0;
  virtual codegen::Streams streams(const LaunchRequest& /*request*/) { return {}; }
  virtual Failure grade(const GradeRequest& request) = 0;
  /// The next `count` draws of the stream to to[count], whatever errors there were; of Int64, or Int32 where
  /// storesShort().
  virtual Failure draw(const RandomStream& stream, ScalarType type, DevicePointer to, int64_t count) = 0;

  /// Waits for everything; gives the recorded error.
  virtual Failure synchronise(std::optional<DeviceError>& error) = 0;
  /// The same; when there is no error, does all the reads in the one wait.
  virtual Failure read(std::span<const HostRead> reads, std::optional<DeviceError>& error) {
    if (auto failure = synchronise(error)) return failure;
    for (const HostRead& r : reads) {
      if (error) break;
      if (auto failure = download(r.to, r.from, r.bytes)) return failure;
    }
    return std::nullopt;
  }
  virtual void clearError() = 0;

  /// Hands memory that was deallocated on to whoever else wants some.
  virtual void giveBackUnused() {}

  /// Whether launches take arrays of Int64 that are stored in 32 bits.
  virtual bool storesShort() { return false; }
  /// Makes one of those an array of Int64, and the other way.
  virtual Failure widen(DevicePointer /*to*/, DevicePointer /*from*/, int64_t /*count*/) {
    return "this target has no short arrays";
  }
  virtual Failure shorten(DevicePointer /*to*/, DevicePointer /*from*/, int64_t /*count*/) {
    return "this target has no short arrays";
  }

  /// Whether launches may be told where the number of elements is instead of the number.
  virtual bool canCount() { return false; }

  // Going on before a condition is known. Of the conditions that are foretold, outcomes are asked for in
  // order, of the first that came out otherwise as the last; kMostForetold may be open at a time.
  static constexpr size_t kMostForetold = 32;
  virtual bool canForetell() { return false; }
  /// Launches from here on do nothing, as after an error, unless the bool at `condition` is `expected` when
  /// the device gets there. Gives the number of the condition.
  virtual Failure foretell(DevicePointer /*condition*/, bool /*expected*/, uint64_t& /*number*/) {
    return "this target does not foretell";
  }
  /// `wait`: never Open.
  virtual Failure outcomeOf(uint64_t /*number*/, bool /*wait*/, Outcome& /*outcome*/) {
    return "this target does not foretell";
  }
  /// Undoes condition `number`, which came out otherwise or was not reached: what was launched since did
  /// nothing and is not counted. After the former launches work again.
  virtual void takeBack(uint64_t /*number*/) {}

  virtual TargetStatistics statistics() const = 0;
  /// What went wrong, but changed no result, since it was asked for last; empty: nothing.
  virtual std::string takeComplaint() { return ""; }
  virtual const LaunchWork* lastWork() const { return nullptr; }  ///< of the latest launch, where counted
  /// How compiled code ran in the latest launch; empty where there is none.
  virtual std::vector<codegen::CompiledPass> lastPasses() const { return {}; }
  /// Without copyBandwidth.
  virtual codegen::DeviceFigures figures() const { return {}; }

  /// From now on, or no longer, keeps what every launch and grade takes on the device.
  virtual void timeLaunches(bool on) = 0;
  /// Seconds of the launches and grades not asked for yet, one each, in order; waits for the device.
  virtual std::vector<double> launchSeconds() = 0;
  /// Bytes read plus bytes written in a second by a large copy within the target's memory, measured when
  /// asked; 0 where there is no room for it.
  virtual double copyBandwidth() = 0;
};

}  // namespace kelpie::runtime

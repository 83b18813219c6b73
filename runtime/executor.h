// Runs an lcu::Program on a target.
//
// In:  a well-formed program, the values of its global variables, the services of the outside world.
// Out: the program's results as dense columns, or the first run-time error.
//
// The host part becomes a plan (runtime/plan.h) and is interpreted here: frames live on the heap, so
// recursion is bounded by RunOptions::frameMemory and never by the C++ stack; calls in tail position and
// loops take constant memory. Device values are counted references to pooled buffers. Launches, sorts and
// joins are runtime/launcher.h's, dense columns runtime/column_transfer.h's, waits runtime/run_context.h's; a
// failing check on the host first lets the device finish, whose error came earlier.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "codegen/compiled_kernel.h"
#include "codegen/thunk_sample.h"
#include "ir/data.h"
#include "ir/diagnostic.h"
#include "ir/lcu.h"
#include "ir/services.h"
#include "runtime/target.h"

namespace kelpie::runtime {

/// What a run before has told of a kernel.
struct EarlierKernel {
  double share = 0;  ///< of the time that all kernels of all programs took
  uint64_t launches = 0;
};
using EarlierKernels = std::unordered_map<std::string, EarlierKernel>;  ///< by name

struct RunOptions {
  /// Looked at between statements; when true the run stops with the error "interrupted".
  const std::atomic<bool>* interrupt = nullptr;
  /// Bytes for the frames of active calls; beyond that, "recursion too deep".
  size_t frameMemory = size_t{1} << 28;
  /// Times every kernel and accounts for what it loads and stores.
  bool timeKernels = false;
  /// Evaluates thunks on the host for some elements of some launches (runtime/thunk_sampler.h).
  bool sampleThunks = false;
  std::chrono::milliseconds sampleTime{300};  ///< for one launch, at most, where nothing is known of it
  /// Of the kernels of this program; samples then take the longer the more time these took. Null: not known.
  const EarlierKernels* earlier = nullptr;
  /// The run ends when the results are in the target's memory; they are not handed over (the columns are
  /// none).
  bool discardResults = false;
  /// Bytes of the host's memory that are free; none: the machine tells (host_memory.h).
  std::optional<size_t> hostMemory = std::nullopt;
};

struct KernelStatistics {
  std::string name;
  Span span;
  uint64_t launches = 0, elements = 0, segments = 0;
  uint64_t empty = 0;             ///< times that it was not launched because it had nothing to do
  uint64_t evaluated = 0;         ///< launches of the targets `interp` and `cpu` that the evaluator ran
  double seconds = 0;             ///< of the launches, on the device; with RunOptions::timeKernels
  LaunchWork work;                ///< of the evaluator; of all launches with RunOptions::timeKernels
  codegen::ThunkSample sample;    ///< sums over the launches sampled, with RunOptions::sampleThunks
  std::vector<uint64_t> targets;  ///< elements of the results of each Permute, in order of bindings
  /// Of compiled code, as the launch with the most blocks ran it; with RunOptions::timeKernels.
  std::vector<codegen::CompiledPass> passes;
};

struct RunStatistics {
  uint64_t launches = 0;          ///< kernels, grades, and random draws on the device
  uint64_t fetches = 0;           ///< scalars and elements that the host waited for
  uint64_t synchronisations = 0;  ///< waits for the device, of any kind
  uint64_t foretold = 0;          ///< conditions that the host did not wait for (runtime/run_ahead.h)
  double waitedSeconds = 0;       ///< of the host, in these waits
  uint64_t services = 0;
  uint64_t uploadedBytes = 0, downloadedBytes = 0;
  uint64_t copiedBytes = 0;  ///< of arrays that others are written onto while they are still needed
  size_t peakBytes = 0;      ///< of device memory
  size_t heldBytes = 0;      ///< of it in use when the run began: values of runs before
  uint64_t allocations = 0;  ///< of the target's memory; the others came from the pool
  CompilerStatistics compiler;
  uint64_t unexpected = 0;  ///< TargetStatistics
  uint64_t deepestCall = 0;
  double seconds = 0;  ///< from the host's view, preparing included unless that was done before
  std::vector<KernelStatistics> kernels;  ///< in program order; then sorts ("grade"), as they came up
};

/// The columns of a session cell; asked once for each global of the program.
using GlobalValues = std::function<Columns(uint32_t cell)>;

using RunResult = std::variant<Columns, RuntimeError>;

/// A program made ready for an executor, to run any number of times.
class PreparedProgram {
 public:
  ~PreparedProgram();
  /// False when the target needs a compiler for it and there is none.
  bool canRun() const;

 private:
  friend class Executor;
  struct Parts;
  explicit PreparedProgram(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

class Executor {
 public:
  explicit Executor(std::unique_ptr<Target> target);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// The program must outlive what is returned, and that must not outlive the executor. `later`: other
  /// programs will run before this one.
  std::unique_ptr<PreparedProgram> prepare(const lcu::Program& program, bool later = false);
  RunResult run(const PreparedProgram& program, const GlobalValues& globals, Services& services,
                const RunOptions& options = {}, RunStatistics* statistics = nullptr);
  RunResult run(const lcu::Program& program, const GlobalValues& globals, Services& services,
                const RunOptions& options = {}, RunStatistics* statistics = nullptr);
  Target& target();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kelpie::runtime

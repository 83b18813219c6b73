// Where programs run: one core::Program in, its values out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>

#include "driver/options.h"
#include "driver/pipeline.h"
#include "ir/core.h"
#include "ir/data.h"
#include "ir/diagnostic.h"
#include "ir/services.h"
#include "runtime/executor.h"

namespace kelpie::driver {

/// Told after each run what was compiled and what it took.
using RunObserver =
    std::function<void(const core::Program&, const fusion::FusionReport&, const runtime::RunStatistics&)>;

/// What kernels of programs took in a run before.
using EarlierRuns = std::unordered_map<const core::Program*, runtime::EarlierKernels>;

/// A program made ready to run any number of times.
class PreparedForm {
 public:
  virtual ~PreparedForm() = default;
  struct Options {
    bool keepResults = true;   ///< false: results stay where they are made, and the columns are none
    bool timeKernels = false;  ///< and account for the bytes they load and store
    bool sampleThunks = false;
    const runtime::EarlierKernels* earlier = nullptr;  ///< runtime::RunOptions
  };
  virtual std::variant<Columns, RuntimeError> run(const CellValues& cells, Services& services,
                                                  const Options& options,
                                                  runtime::RunStatistics& statistics) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// The columns of the program's row, each of length 1, or the error that stopped it.
  virtual std::variant<Columns, RuntimeError> run(const core::Program& program, const CellValues& cells,
                                                  Services& services) = 0;
  /// For values of the cells that have these shapes. Must not outlive the backend.
  virtual std::unique_ptr<PreparedForm> prepare(const core::Program& program, const CellValues& cells) = 0;
  /// Tells forms whose programs will run, in this order, instead of those told before: some backends begin to
  /// compile them. They must live until they have run or others are told. `values`: of cells that have one.
  virtual void expect(const std::vector<const FormResult*>& /*forms*/,
                      const std::unordered_map<uint32_t, Columns>& /*values*/) {}
  /// From now on every kernel is timed, and `observer` called; targets without kernels ignore it.
  virtual void observe(const RunObserver& /*observer*/) {}
  /// From now on some elements are evaluated on the host, too, to see what thunks do; most of those whose
  /// kernels took longest before.
  virtual void sample(const EarlierRuns& /*earlier*/) {}
  /// What the last run did, for -v: "3 kernels, 1 wait"; empty when there is nothing to tell.
  virtual std::string account() const { return ""; }
  /// What went wrong since it was asked for last, but changed no result; empty: nothing.
  virtual std::string takeComplaint() { return ""; }
  /// Bytes read plus bytes written in a second by a large copy, measured now; 0 where that is not possible.
  virtual double copyBandwidth() { return 0; }
  /// Of the GPU that it runs on, all but copyBandwidth; without a name where it is none.
  virtual codegen::DeviceFigures figures() { return {}; }
};

/// Tells on standard error what Backend::takeComplaint has.
void tellComplaint(Backend& backend);

/// Null when the target (as in Options) cannot be used here, with the reason in `problem`. Evaluations stop
/// soon after `interrupted` becomes true.
std::unique_ptr<Backend> makeBackend(const std::string& target, const Options& options,
                                     const std::atomic<bool>& interrupted, const SourceManager& sources,
                                     std::string& problem);

}  // namespace kelpie::driver

// Where programs run: one core::Program in, its values out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
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

using CellValues = std::function<Columns(uint32_t cell)>;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// The columns of the program's row, each of length 1, or the error that stopped it.
  virtual std::variant<Columns, RuntimeError> run(const core::Program& program, const CellValues& cells,
                                                  Services& services) = 0;
  /// From now on every kernel is timed, and `observer` called; targets without kernels ignore
  /// it.
  virtual void observe(RunObserver) {}
  /// What the last run did, for -v: "3 kernels, 1 wait"; empty when there is nothing to tell.
  virtual std::string account() const { return ""; }
  /// Bytes read plus bytes written in a second by a large copy, measured now; 0 where that is not possible.
  virtual double copyBandwidth() { return 0; }
};

/// Null when the target (as in Options) cannot be used here, with the reason in `problem`. Evaluations stop
/// soon after `interrupted` becomes true.
std::unique_ptr<Backend> makeBackend(const std::string& target, const Options& options,
                                     const std::atomic<bool>& interrupted, const SourceManager& sources,
                                     std::string& problem);

}  // namespace kelpie::driver

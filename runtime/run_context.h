// What all parts of a run share: target and memory, errors, and reading values back from the device.
//
// The host waits in three ways only: `synchronise`, `download` and `fetch`. A fetch is one wait, whatever it
// brings: beside the value that is needed now it reads the ones that are likely to be needed next. The error
// word is looked at by every wait, before any value is believed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/device_value.h"
#include "runtime/executor.h"

namespace kelpie::runtime {

/// Unwinds a run; never leaves the executor.
struct Stop {
  RuntimeError error;
};

/// Thrown when a scan of this run found that its total does not fit into a short array.
struct PositionsTooLong {};

/// A value in device memory that the host may want.
struct Wanted {
  static constexpr int64_t kTotal = -1;  ///< the last element, of an array `withTotal` whose count is unknown
  DeviceValue* value;
  int64_t position;
};

class RunContext {
 public:
  RunContext(Target& target, BufferPool& pool, const lcu::Program& program, const RunOptions& options,
             RunStatistics& statistics)
      : target(target), pool(pool), program(program), options(options), statistics(statistics) {}

  Target& target;
  BufferPool& pool;
  const lcu::Program& program;
  const RunOptions& options;
  RunStatistics& statistics;
  Span span;                   ///< of the statement under way
  bool pending = false;        ///< work was given to the device since the last wait
  bool longPositions = false;  ///< what scans make is not stored short (codegen/short_arrays.h)
  /// Called before every wait, and before giving up for want of memory: finds out whether the run is where it
  /// thinks it is (run_ahead.h).
  std::function<void()> settle;
  /// Called before giving up for want of memory: gives up device memory whose contents the host has, too.
  std::function<void()> forget;
  /// Adds what else to read when the host waits for a value anyway.
  std::function<void(std::vector<Wanted>&)> alsoWanted;

  [[noreturn]] void stop(Span where, std::string message) const { throw Stop{{where, std::move(message)}}; }
  [[noreturn]] void stopAt(lcu::SiteId site, int64_t payload0, int64_t payload1) const;
  void check(const Failure& failure) const {
    if (failure) stop(span, *failure);
  }

  /// Waits for the device if it has work; an error recorded there ends the run.
  void synchronise();
  /// After a wait that told of no error.
  void download(void* to, DevicePointer from, size_t bytes);
  Register fetch(DeviceValue& v, int64_t position);
  /// Makes a variable of the host a host scalar, if it is a cell yet.
  void bring(PlanValue& v) {
    if (v.device) v = {fetch(*v.device, 0), nullptr};
  }
  /// The number of elements. Once it is known, survivors of a filter move to a buffer of their own size when
  /// most of the first one is empty.
  int64_t countOf(DeviceValue& v);

  /// All memory that nothing needs, to others than the pool: code, the driver, other programs.
  void giveBackUnused();
  /// Null when there is no memory, whatever is given up for it.
  BufferRef allocateBytes(size_t bytes) const;
  /// `what` names it when there is no memory, which ends the run.
  DeviceRef allocate(ScalarType type, int64_t count, const std::string& what);
  /// The array with elements of `type`: itself, or a copy of a short one.
  DeviceRef widened(const DeviceRef& array, ScalarType type);
  /// Ends the run: there is no memory for `what`, "ys needs 10 elements of 8 bytes".
  [[noreturn]] void outOfMemory(const std::string& what);

 private:
  void read(const std::vector<Wanted>& wanted);
  /// The element, with what is around it (host_copy.h); none: there is no memory for that.
  std::optional<Register> fetchAround(DeviceValue& v, int64_t position);
  void shrink(DeviceValue& v);
  std::vector<Wanted> wanted_;
};

}  // namespace kelpie::runtime

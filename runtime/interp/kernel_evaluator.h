// Evaluates a λcu kernel by its definition, binding by binding, fused or not. The meaning of kernels for
// tests, and what the `cpu` target runs until compiling pays.
//
// Combines values in the order of codegen/cpu/reduction_order.h, so results agree with generated code to the
// bit.
//
// Work is counted as the cost model of fusion counts it:
//   elements       one for each binding and element (or segment, for epilogues; one for Once)
//   bytes read     each array that exists before the launch: once in full (elements of the space times
//   element
//                  size) if some thunk reads it at %i, once for all segments if some thunk reads it at %s or
//                  in an epilogue; every load at another position counts one element when it is executed; the
//                  offsets of the space, 8 (m + 1); cells and host scalars count nothing
//   bytes written  the elements written of every result that leaves the kernel (survivors only, for filters)
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "codegen/thunk_sample.h"
#include "runtime/interp/expression_code.h"
#include "runtime/target.h"

namespace kelpie::runtime {

/// The thunks of one kernel as code; made once, used by every launch.
class KernelCode {
 public:
  explicit KernelCode(const KernelEntry& entry);
  ~KernelCode();
  KernelCode(KernelCode&&) noexcept;

  struct Binding {
    ExpressionCode thunks;   ///< effects, where, destination, then pull (but not the pull of a Filter)
    ExpressionCode late;     ///< pull of a Filter, for survivors
    ExpressionCode combine;  ///< operator
    std::vector<std::optional<ScalarOp>> lanewise;
    std::vector<std::optional<codegen::LaneFold>> lanes;
    bool anyTogether = false;  ///< some component is not lanewise
    bool anySerial = false;    ///< ... nor folded in lanes
  };
  const std::vector<Binding>& bindings() const { return bindings_; }

 private:
  std::vector<Binding> bindings_;
};

/// Estimated seconds that evaluateKernel takes for one element; nobody knows how often loops turn.
double secondsOfElement(const lcu::Kernel& kernel);

using Deadline = std::chrono::steady_clock::time_point;
/// Asked when a loop or recursion goes on after the deadline: until when it may go on instead, if at all.
using Postpone = std::function<std::optional<Deadline>()>;
/// Thrown by evaluateKernel when it may not. What the launch wrote is undefined; it can be begun again.
struct DeadlinePassed {};

/// Runs one launch in the memory of the host. Gives the first error: least element, then order of bindings.
std::optional<DeviceError> evaluateKernel(const KernelCode& code, const LaunchRequest& request,
                                          LaunchWork& work, std::optional<Deadline> deadline = std::nullopt,
                                          Postpone postpone = nullptr);

/// The memory behind the arguments, where it has to be fetched before it is read. Before that it is readable,
/// and may hold anything.
class SampledMemory {
 public:
  enum class Presence : uint8_t { Here, Away, Nowhere };
  virtual ~SampledMemory() = default;
  /// Whether what lies at an address is there, or is not of any argument. What is away is noted.
  virtual Presence find(const std::byte* address) = 0;
  virtual size_t noted() const = 0;  ///< pieces
  virtual void fetch() = 0;          ///< all that was noted, in one wait
};

/// Evaluates the thunks for some of the elements, and writes nothing. `bytes` of the arrays by parameter;
/// `memory` may be null: all is there. `streams`: of the launch (Target::streams). What the time does not
/// suffice for is left out.
codegen::ThunkSample sampleThunks(const KernelCode& code, const LaunchRequest& request,
                                  std::span<const size_t> bytes, SampledMemory* memory,
                                  codegen::Streams streams, std::chrono::milliseconds most);

}  // namespace kelpie::runtime

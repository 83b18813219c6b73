// Evaluates launches on the host, on copies of what they read. Slow and right: the way out for a recursion
// that goes deeper than a thread's stack on the device, and for launches of few elements while compilers are
// at work on their code.
//
// The second is only done where the device would give the same bits: folds of floats add in another order
// there, and functions like `exp` have other last bits. So results do not depend on what has been compiled.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/interp/kernel_evaluator.h"

namespace kelpie::runtime::cuda {

/// Bytes of every allocation on the device, by its address.
using Allocations = std::map<const std::byte*, size_t>;

/// A kernel as the host evaluates it, for all of its launches.
class HostKernel {
 public:
  explicit HostKernel(const KernelEntry& entry);

  /// Whether the host gives the same bits as the device.
  bool exact() const { return exact_; }
  /// Whether a launch takes the host a few milliseconds at most, if its loops end soon.
  bool isSmall(const LaunchRequest& request, const Allocations& allocations) const;

  /// Waits. The outputs of the launch are on the device afterwards, unless `error` was recorded. Throws
  /// DeadlinePassed as evaluateKernel does, and has changed nothing then.
  Failure evaluate(const LaunchRequest& request, Device& device, const Allocations& allocations,
                   std::optional<DeviceError>& error, std::optional<Deadline> deadline = std::nullopt,
                   Postpone postpone = nullptr) const;

 private:
  const KernelEntry& entry_;
  KernelCode code_;
  bool exact_;
  double secondsOfElement_;  ///< estimated
};

/// Whether to evaluate launches of one kernel while its code is not there. When that has taken about as long
/// as compilers do, it is given up.
class Meanwhile {
 public:
  /// Whether a launch had better be evaluated. `missing`: sources of its code that are not loaded. Once they
  /// are ready, it never is again.
  bool suits(const LaunchRequest& request, Device& device, const Allocations& allocations,
             const std::vector<const std::string*>& missing);
  /// Evaluates it until it is done, or until the code is ready: false.
  bool evaluate(const LaunchRequest& request, Device& device, const Allocations& allocations,
                const std::vector<const std::string*>& missing, std::optional<DeviceError>& error,
                Failure& failure);

 private:
  bool isReady(Device& device, const std::vector<const std::string*>& missing);
  /// Asks for the code if launches have taken so long that it would have been worth it.
  void askFor(Device& device, const std::vector<const std::string*>& missing,
              std::chrono::steady_clock::duration spent);

  std::unique_ptr<HostKernel> kernel_;
  bool ready_ = false, urgent_ = false;
  std::chrono::steady_clock::duration spent_{};
  std::chrono::steady_clock::time_point lastLook_;
};

}  // namespace kelpie::runtime::cuda

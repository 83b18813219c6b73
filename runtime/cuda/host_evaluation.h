// Evaluates a launch on the host, on copies of what it reads: the way out for a recursion that goes deeper
// than a thread's stack on the device. Slow and right.
#pragma once

#include <map>

#include "runtime/cuda/device.h"

namespace kelpie::runtime::cuda {

/// Bytes of every allocation on the device, by its address.
using Allocations = std::map<const std::byte*, size_t>;

/// Waits. The outputs of the launch are on the device afterwards, unless `error` was recorded.
Failure evaluateOnHost(const LaunchRequest& request, Device& device, const Allocations& allocations,
                       std::optional<DeviceError>& error);

}  // namespace kelpie::runtime::cuda

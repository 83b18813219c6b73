// lcu::Grade on the device: by CUB's radix sort where it was compiled in, otherwise by way of the host.
#pragma once

#include <functional>

#include "runtime/cuda/device.h"

namespace kelpie::runtime::cuda {

/// `stream` is the device's stream; `begin` is called when there is memory for the sort, before it starts.
Failure gradeOnDevice(Device& device, void* stream, const GradeRequest& request,
                      const std::function<Failure()>& begin);

}  // namespace kelpie::runtime::cuda

// lcu::Grade on the device: by CUB's radix sort where it was compiled in, otherwise by way of the host.
#pragma once

#include "runtime/cuda/device.h"

namespace kelpie::runtime::cuda {

/// `stream` is the device's stream.
Failure gradeOnDevice(Device& device, void* stream, const GradeRequest& request);

}  // namespace kelpie::runtime::cuda

// An NVIDIA GPU through the CUDA driver, which is opened at run time.
//
// Everything runs on one stream; memory comes from the device's asynchronous pool, which keeps what is freed.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/device.h"

namespace kelpie::runtime::cuda {

/// Device number `ordinal`. Null, and `why`, when there is no driver, no such device, or no NVRTC.
std::unique_ptr<Device> openDriverDevice(int ordinal, std::string& why);

}  // namespace kelpie::runtime::cuda

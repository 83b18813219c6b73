// An NVIDIA GPU through the CUDA driver, which is opened at run time.
//
// Everything runs on one stream; memory comes from the device's asynchronous pool, which keeps what is freed.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/device.h"

namespace kelpie::runtime::cuda {

/// Device number `ordinal`, with code from the folder `compiledAhead` if it is not empty; `compilerHelper` as
/// in kernel_compiler.h; with `meanwhile` launches need not wait for code (Device::isReady). Null, and `why`,
/// when there is no driver, no such device, or neither NVRTC nor such a folder.
std::unique_ptr<Device> openDriverDevice(int ordinal, const std::string& compiledAhead,
                                         const std::string& compilerHelper, bool meanwhile, std::string& why);

/// As in cuda.h.
bool compilersAreAtWork();

}  // namespace kelpie::runtime::cuda

#include "runtime/cuda/cuda.h"

#include "runtime/cuda/cuda_target.h"
#include "runtime/cuda/driver_device.h"

namespace kelpie::runtime {

std::unique_ptr<Target> makeCudaTarget(std::string& why, int ordinal,
                                       std::function<std::string(Span)> describe) {
  std::unique_ptr<cuda::Device> device = cuda::openDriverDevice(ordinal, why);
  if (!device) return nullptr;
  codegen::cuda::CudaOptions options;
  options.describe = std::move(describe);
  return std::make_unique<cuda::CudaTarget>(std::move(device), std::move(options));
}

}  // namespace kelpie::runtime

#include "runtime/cuda/cuda.h"

#include "runtime/cuda/cuda_target.h"
#include "runtime/cuda/driver_device.h"

namespace kelpie::runtime {

std::unique_ptr<Target> makeCudaTarget(std::string& why, const CudaTargetOptions& options) {
  std::unique_ptr<cuda::Device> device = cuda::openDriverDevice(options.device, options.compiledAhead, why);
  if (!device) return nullptr;
  codegen::cuda::CudaOptions generated;
  generated.describe = options.describe;
  return std::make_unique<cuda::CudaTarget>(std::move(device), std::move(generated));
}

}  // namespace kelpie::runtime

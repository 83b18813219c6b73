#include "runtime/cuda/cuda.h"

#include <unistd.h>

#include "runtime/cuda/compiler_process.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/cuda/driver_device.h"
#include "runtime/cuda/nvrtc_compiler.h"

namespace kelpie::runtime {

std::unique_ptr<Target> makeCudaTarget(std::string& why, const CudaTargetOptions& options) {
  std::unique_ptr<cuda::Device> device = cuda::openDriverDevice(
      options.device, options.compiledAhead, options.compilerHelper, options.evaluateMeanwhile, why);
  if (!device) return nullptr;
  codegen::cuda::CudaOptions generated;
  generated.describe = options.describe;
  generated.storesShort = !options.longOffsets;
  return std::make_unique<cuda::CudaTarget>(std::move(device), std::move(generated));
}

bool compilersAreAtWork() { return cuda::compilersAreAtWork(); }

void serveAsCompiler() {
  const cuda::NvrtcCompiler compiler;
  cuda::serveCompilers(compiler, STDIN_FILENO);
}

}  // namespace kelpie::runtime

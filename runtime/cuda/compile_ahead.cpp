#include "runtime/cuda/compile_ahead.h"

#include <system_error>
#include <thread>

#include "codegen/cuda/cuda_module.h"
#include "codegen/short_arrays.h"
#include "runtime/cuda/device_draws.h"
#include "runtime/cuda/host_reader.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/nvrtc_compiler.h"
#include "runtime/plan.h"
#include "runtime/runtime.h"

namespace kelpie::runtime {

std::vector<std::string> cudaSources(const lcu::Program& program) {
  using namespace codegen::cuda;
  std::vector<std::string> sources = {cuda::HostReader::source()};
  bool support = false;
  CudaOptions options;
  options.shortArrays = codegen::shortArrays(program);
  const ProgramKernels kernels = makePlan(program).kernels;
  if (kernels.draws)
    for (const RandomGenerator generator : {RandomGenerator::Additive, RandomGenerator::Philox})
      sources.push_back(cuda::DeviceDraws::source(generator));
  for (const auto& [kernel, info, shortArrays] : kernels.kernels) {
    const CudaKernel generated = generateKernel(*kernel, program, entryOf(*kernel), options);
    for (const CudaPass& pass : generated.passes) {
      sources.push_back(sourceOf(pass));
      for (const auto& alternative : pass.alternatives) sources.push_back(sourceOf(*alternative));
    }
    support = support || needsSupport(generated);
  }
  if (support) sources.push_back(supportSource());
  return sources;
}

Compilers startCompilers(const std::string& command) {
  Compilers compilers;
  if (std::thread::hardware_concurrency() > cuda::KernelCompiler::kFewCores) {
    compilers.server = std::make_shared<cuda::CompilerServer>(command);
    compilers.server->start();
  }
  try {
    compilers.here = std::async(std::launch::async, [] { cuda::NvrtcCompiler().getReady(); });
  } catch (const std::system_error&) {
    // The system has no more threads. NVRTC gets ready with the first source, then.
  }
  return compilers;
}

Failure compileAhead(const std::vector<std::string>& sources, int architecture, const std::string& folder,
                     const Compilers& compilers, CompilerStatistics& statistics) {
  cuda::KernelCompiler compiler(architecture, folder, compilers.server);
  if (!compiler.available()) return "NVRTC (libnvrtc.so) was not found; it belongs to the CUDA toolkit";
  const cuda::CodeCache output(folder);
  compiler.start(sources, false);
  for (const std::string& source : sources) {
    std::vector<char> code;
    if (auto failure = compiler.take(source, code)) return failure;
    if (!folder.empty() && !output.write(cuda::CodeCache::key(source, architecture), code))
      return "cannot write to the folder " + folder;
    if (folder.empty() && !compiler.isKept(source))
      return "nothing can be written to the cache of compiled kernels; $KELPIE_CACHE names another folder";
  }
  statistics = compiler.statistics();
  return std::nullopt;
}

}  // namespace kelpie::runtime

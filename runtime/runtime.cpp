#include "runtime/runtime.h"

#include "codegen/cpu/cpu_module.h"
#include "codegen/cpu/support_text.h"
#include "codegen/cuda/cuda_module.h"
#include "codegen/cuda/device_library.h"
#include "codegen/short_arrays.h"
#include "runtime/host_target.h"
#include "runtime/plan.h"

namespace kelpie::runtime {

const std::vector<std::string>& targetNames() {
  static const std::vector<std::string> kNames = {"interp", "cpu", "cuda"};
  return kNames;
}

std::unique_ptr<Target> makeTarget(const std::string& name, std::string& why, const TargetOptions& options) {
  if (name == "interp") return std::make_unique<InterpTarget>(options.cpu.memoryLimit);
  if (name == "cpu") return std::make_unique<CpuTarget>(options.cpu);
  if (name == "cuda") return makeCudaTarget(why, options.cuda);
  why = "there is no target \"" + name + "\"";
  return nullptr;
}

std::vector<const lcu::Kernel*> kernelsOf(const lcu::Program& program) {
  std::vector<const lcu::Kernel*> kernels;
  const Plan plan = makePlan(program);
  for (const auto& entry : plan.kernels.kernels) kernels.push_back(entry.kernel);
  return kernels;
}

std::string generatedCode(const lcu::Program& program, const std::string& name,
                          const std::function<std::string(Span)>& describe, bool withLibrary) {
  const auto kernels = kernelsOf(program);
  std::string text;
  if (name == "cpu") {
    codegen::cpu::CpuOptions options;
    options.describe = describe;
    codegen::cpu::CpuModule module = codegen::cpu::generateModule(kernels, program, options);
    const size_t library = codegen::cpu::reductionOrderText().size() + codegen::cpu::supportText().size();
    text = withLibrary ? module.source : module.source.substr(library);
  } else if (name == "cuda") {
    codegen::cuda::CudaOptions options;
    options.describe = describe;
    options.shortArrays = codegen::shortArrays(program);
    if (withLibrary) {
      for (const auto& file : codegen::cuda::deviceLibrary())
        text += std::string("// ") + file.name + "\n" + file.text;
    }
    text += codegen::cuda::generateModule(kernels, program, options).source;
  }
  return text;
}

std::string generatedCode(const lcu::Kernel& kernel, const lcu::Program& program, const std::string& name,
                          const std::function<std::string(Span)>& describe) {
  const std::string entry = codegen::identifier(kernel.name);
  std::string text;
  if (name == "cpu") {
    codegen::cpu::CpuOptions options;
    options.describe = describe;
    text = codegen::cpu::generateKernel(kernel, program, entry, options);
  } else if (name == "cuda") {
    codegen::cuda::CudaOptions options;
    options.describe = describe;
    options.shortArrays = codegen::shortArrays(program);
    for (const auto& pass : codegen::cuda::generateKernel(kernel, program, entry, options).passes) {
      text += pass.text;
      for (const auto& alternative : pass.alternatives) text += alternative->text;
    }
  }
  return text;
}

}  // namespace kelpie::runtime

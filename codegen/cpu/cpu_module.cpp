#include "codegen/cpu/cpu_module.h"

#include <fmt/format.h>

#include "codegen/cpu/kernel_text.h"
#include "codegen/cpu/support_text.h"

namespace kelpie::codegen::cpu {

std::string generateKernel(const lcu::Kernel& kernel, const lcu::Program& program, const std::string& entry,
                           const CpuOptions& options) {
  return KernelText(kernel, program, entry, options).generate();
}

CpuModule generateModule(const std::vector<const lcu::Kernel*>& kernels, const lcu::Program& program,
                         const CpuOptions& options) {
  CpuModule module;
  module.source += reductionOrderText();
  module.source += supportText();
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::string entry = fmt::format("kernel_{}_{}", k, identifier(kernels[k]->name));
    module.source += "\n" + generateKernel(*kernels[k], program, entry, options);
    module.entries.push_back(std::move(entry));
  }
  return module;
}

}  // namespace kelpie::codegen::cpu

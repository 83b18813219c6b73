// The runtime as its users see it: targets by name, an executor for each (runtime/executor.h), generated code
// as text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/lcu.h"
#include "runtime/cpu_target.h"
#include "runtime/cuda/cuda.h"
#include "runtime/executor.h"
#include "runtime/target.h"

namespace kelpie::runtime {

struct TargetOptions {
  CpuOptions cpu;  ///< target cpu; `memoryLimit` also for interp
  CudaTargetOptions cuda;
};

/// "interp", "cpu", "cuda": the targets this library was built with. `cuda` may still be unavailable at run
/// time.
const std::vector<std::string>& targetNames();

/// Null when the target is unknown or cannot be used on this machine; `why` tells.
std::unique_ptr<Target> makeTarget(const std::string& name, std::string& why,
                                   const TargetOptions& options = {});

/// The source that target `name` ("cpu" or "cuda") compiles for the kernels of the program, in program order,
/// without its support library unless `withLibrary`; empty for other targets.
std::string generatedCode(const lcu::Program& program, const std::string& name,
                          const std::function<std::string(Span)>& describe = {}, bool withLibrary = false);

/// The part of it that is one kernel of the program.
std::string generatedCode(const lcu::Kernel& kernel, const lcu::Program& program, const std::string& name,
                          const std::function<std::string(Span)>& describe = {});

/// All kernels of a program, in program order: the order of ProgramKernels.
std::vector<const lcu::Kernel*> kernelsOf(const lcu::Program& program);

}  // namespace kelpie::runtime

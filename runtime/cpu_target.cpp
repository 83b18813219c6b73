#include "runtime/cpu_target.h"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <chrono>

#include "codegen/cpu/cpu_module.h"
#include "codegen/cpu/support_text.h"

namespace kelpie::runtime {

using codegen::cpu::ErrorRecord;
using codegen::cpu::KernelFunction;
using codegen::cpu::KernelLaunch;

namespace {

// Thresholds of Jit::Auto, in seconds of the evaluator.
constexpr double kLookUpAfter =
    0.002;  ///< generating the sources and looking into the cache takes about that
constexpr double kCompileAfter =
    0.1;  ///< the compiler takes longer, but a program that came so far will go on
constexpr double kSecondsPerNode = 5e-9;
constexpr double kSecondsPerElement = 2e-8;
/// Kernels compiled together: enough to share the start of the compiler, few enough to use several cores.
constexpr size_t kKernelsPerUnit = 12;

double costOfElement(const lcu::Kernel& kernel) {
  double cost = 0;
  for (const lcu::Soac& s : kernel.bindings) {
    size_t nodes = 0;
    auto roots = codegen::thunksOf(s);
    roots.insert(roots.end(), s.combine.result.begin(), s.combine.result.end());
    lcu::forEachNode(roots, [&](lcu::ExprRef e) { nodes += e->kind == lcu::ExprKind::Loop ? 100 : 1; });
    cost += kSecondsPerElement + kSecondsPerNode * static_cast<double>(nodes);
  }
  return cost;
}

void* takeScratch(void* scratch, size_t bytes) { return static_cast<Scratch*>(scratch)->take(bytes); }

static_assert(sizeof(codegen::cpu::Argument) == sizeof(KernelArgument));

}  // namespace

CpuTarget::CpuTarget(CpuOptions options)
    : HostTarget(options.memoryLimit), options_(std::move(options)), cache_(options_.cache) {
  if (options_.threads <= 0) options_.threads = omp_get_max_threads();
}
CpuTarget::~CpuTarget() = default;

Failure CpuTarget::prepare(const ProgramKernels& program) {
  HostTarget::prepare(program);
  Compiled& compiled = programs_[&program];
  compiled = {};
  for (const auto& k : program.kernels) compiled.costs.push_back(costOfElement(*k.kernel));
  compiled.functions.resize(program.kernels.size());
  if (options_.jit == Jit::Always && !program.kernels.empty() && !load(program, compiled, true)) {
    return "the kernels could not be compiled: " + cpuStatistics_.compileFailure;
  }
  return std::nullopt;
}

void CpuTarget::release(const ProgramKernels& program) {
  HostTarget::release(program);
  programs_.erase(&program);
}

void CpuTarget::generate(const ProgramKernels& program, Compiled& compiled) {
  if (compiled.generated) return;
  compiled.generated = true;
  for (size_t first = 0; first < program.kernels.size(); first += kKernelsPerUnit) {
    std::vector<const lcu::Kernel*> kernels;
    Unit unit;
    for (size_t k = first; k < std::min(first + kKernelsPerUnit, program.kernels.size()); ++k) {
      kernels.push_back(program.kernels[k].kernel);
      unit.kernels.push_back(k);
    }
    auto module = codegen::cpu::generateModule(kernels, *program.program);
    unit.source = std::move(module.source);
    unit.entries = std::move(module.entries);
    compiled.units.push_back(std::move(unit));
  }
}

bool CpuTarget::load(const ProgramKernels& program, Compiled& compiled, bool mayCompile) {
  generate(program, compiled);
  std::vector<std::string> missing;
  for (const Unit& unit : compiled.units)
    if (!cache_.find(unit.source)) missing.push_back(unit.source);
  cpuStatistics_.cachedUnits += compiled.units.size() - missing.size();
  if (!missing.empty()) {
    if (!mayCompile || !cpuStatistics_.compileFailure.empty()) return false;
    const auto start = std::chrono::steady_clock::now();
    if (auto failure = cache_.compile(missing)) {
      cpuStatistics_.compileFailure = *failure;
      return false;
    }
    cpuStatistics_.compiledUnits += missing.size();
    cpuStatistics_.compileSeconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  for (const Unit& unit : compiled.units) {
    void* handle = cache_.find(unit.source);
    for (size_t k = 0; k < unit.kernels.size(); ++k) {
      void* symbol = handle ? dlsym(handle, unit.entries[k].c_str()) : nullptr;
      if (!symbol) {
        cpuStatistics_.compileFailure = "a compiled kernel could not be loaded";
        return false;
      }
      compiled.functions[unit.kernels[k]] = reinterpret_cast<KernelFunction>(symbol);
    }
  }
  compiled.loaded = true;
  return true;
}

bool CpuTarget::shouldLoad(const LaunchRequest& request, Compiled& compiled) {
  if (options_.jit != Jit::Auto) return false;  // Always is loaded already
  compiled.work += compiled.costs[request.kernel] *
                   static_cast<double>(request.extents.elements + request.extents.segments);
  if (compiled.work < kLookUpAfter) return false;
  const bool mayCompile = compiled.work >= kCompileAfter;
  if (compiled.lookedUp && (!mayCompile || !cpuStatistics_.compileFailure.empty())) return false;
  compiled.lookedUp = true;
  return load(*request.program, compiled, mayCompile);
}

Failure CpuTarget::execute(const LaunchRequest& request, std::optional<DeviceError>& error) {
  Compiled& compiled = programs_.at(request.program);
  if (compiled.loaded || shouldLoad(request, compiled)) {
    ++cpuStatistics_.compiledLaunches;
    return call(request, compiled.functions[request.kernel], error);
  }
  ++cpuStatistics_.interpretedLaunches;
  interpret(request, error);
  return std::nullopt;
}

Failure CpuTarget::call(const LaunchRequest& request, KernelFunction function,
                        std::optional<DeviceError>& error) {
  ErrorRecord record;
  KernelLaunch launch{request.extents.elements,
                      request.extents.segments,
                      request.extents.length,
                      request.extents.targets.data(),
                      reinterpret_cast<const codegen::cpu::Argument*>(request.arguments.data()),
                      request.outputs.data(),
                      &record,
                      request.scratch,
                      takeScratch,
                      options_.threads};
  if (function(&launch) != 0) return "out of memory for the temporary data of a kernel";
  if (record.recorded != 0) {
    error = DeviceError{static_cast<lcu::SiteId>(record.site), record.payload0, record.payload1};
  }
  return std::nullopt;
}

}  // namespace kelpie::runtime

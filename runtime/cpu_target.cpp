#include "runtime/cpu_target.h"

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "codegen/cpu/cpu_module.h"
#include "codegen/cpu/support_text.h"
#include "ir/deep_stack.h"

namespace kelpie::runtime {

using codegen::cpu::ErrorRecord;
using codegen::cpu::KernelFunction;
using codegen::cpu::KernelLaunch;

namespace {

// Thresholds of Jit::Auto, in estimated seconds of the evaluator.
constexpr double kLookUpAfter =
    0.002;  ///< generating the sources and looking into the cache takes about that
constexpr double kCompileAfter = 0.15;  ///< a program that came so far will probably go on
/// In quickly compiled code: what goes on for so long is worth more, and what was there from an earlier run
/// will probably be run again.
constexpr double kImproveAfter = 1, kImproveAgainAfter = 0.1;
constexpr double kWorthWaiting = 0.5;  ///< a single launch that takes longer waits for the compiler
constexpr std::chrono::milliseconds kPatience(100);  ///< with loops and recursions in the evaluator
constexpr std::chrono::milliseconds kLookEvery(10);
/// Kernels compiled together: enough to share the start of the compiler, few enough to use several cores.
constexpr size_t kKernelsPerUnit = 12;

bool runDeeper(void* stacks, void (*work)(void*), void* what) {
  return static_cast<StackPool*>(stacks)->run([&] { work(what); });
}

/// A part of what threads get, whoever started them.
int64_t ownStack() {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const auto size = known ? static_cast<int64_t>(limit.rlim_cur) : int64_t{1} << 21;
  return std::clamp<int64_t>(size / 4, 1 << 16, 1 << 20);
}

bool hasLoops(const lcu::Kernel& kernel) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(),
                     [](const lcu::Soac& s) { return lcu::anyNode(codegen::thunksOf(s), lcu::isUnbounded); });
}

void runParts(void* team, int64_t parts, int64_t atOnce, ThreadTeam::Work work, void* what) {
  static_cast<ThreadTeam*>(team)->run(parts, atOnce, work, what);
}

void* takeScratch(void* scratch, size_t bytes) { return static_cast<Scratch*>(scratch)->take(bytes); }

static_assert(sizeof(codegen::cpu::Argument) == sizeof(KernelArgument));

}  // namespace

CpuTarget::CpuTarget(CpuOptions options)
    : HostTarget(options.memoryLimit, options.threads > 0 ? options.threads : usualThreads()),
      options_(std::move(options)),
      quick_({options_.cache.directory, options_.cache.compiler, true}),
      small_({options_.cache.directory, options_.cache.compiler, false}),
      good_({options_.cache.directory, options_.cache.compiler, false}),
      ownStack_(ownStack()) {}
CpuTarget::~CpuTarget() = default;

Failure CpuTarget::prepare(const ProgramKernels& program) {
  HostTarget::prepare(program);
  Compiled& compiled = programs_[&program];
  compiled = {};
  for (const auto& k : program.kernels) {
    compiled.costs.push_back(secondsOfElement(*k.kernel));
    compiled.endless.push_back(hasLoops(*k.kernel));
  }
  compiled.functions.resize(program.kernels.size());
  if (options_.jit != Jit::Always) return std::nullopt;
  generate(program, compiled);
  load(compiled);
  if (compiled.missing > 0) {
    startCompiling(compiled);
    waitForCompilers(compiled);
  }
  if (compiled.missing > 0) return "the kernels could not be compiled: " + cpuStatistics_.compileFailure;
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
    unit.goodKey = good_.keyOf(unit.source);
    unit.quickKey = quick_.keyOf(unit.source);
    unit.entries = std::move(module.entries);
    compiled.units.push_back(std::move(unit));
  }
  compiled.missing = compiled.units.size();
}

void CpuTarget::load(Compiled& compiled) {
  for (Unit& unit : compiled.units) {
    if (unit.good) continue;
    if (void* handle = good_.find(unit.goodKey)) {
      unit.good = true;
      if (unit.loaded) ++cpuStatistics_.improvedUnits;
      take(compiled, unit, handle);
    } else if (!unit.loaded && options_.jit == Jit::Auto) {
      if (void* quick = quick_.find(unit.quickKey)) take(compiled, unit, quick);
    }
  }
}

void CpuTarget::take(Compiled& compiled, Unit& unit, void* handle) {
  if (!unit.loaded) {
    unit.loaded = true;
    --compiled.missing;
    ++(compiled.started ? cpuStatistics_.compiledUnits : cpuStatistics_.cachedUnits);
  }
  for (size_t k = 0; k < unit.kernels.size(); ++k) {
    compiled.functions[unit.kernels[k]] =
        reinterpret_cast<KernelFunction>(dlsym(handle, unit.entries[k].c_str()));
  }
}

ObjectCache& CpuTarget::firstOf(const Unit& unit) {
  // Bytes for which the system's compiler takes 0.1 s or less, well or not.
  constexpr size_t kShort = 22'000;
  if (options_.jit == Jit::Always) return good_;
  return unit.source.size() <= kShort ? small_ : quick_;
}

void CpuTarget::startCompiling(Compiled& compiled, size_t first) {
  compiled.started = true;
  if (!cpuStatistics_.compileFailure.empty()) return;
  for (ObjectCache* cache : {&quick_, &small_, &good_}) {
    std::vector<std::string> sources;
    for (const Unit& unit : compiled.units) {
      if (unit.loaded || &firstOf(unit) != cache) continue;
      sources.push_back(unit.source);
      if (std::find(unit.kernels.begin(), unit.kernels.end(), first) != unit.kernels.end())
        std::swap(sources.front(), sources.back());
    }
    if (sources.empty()) continue;
    if (auto failure = cache->start(sources)) giveUp(*failure);
  }
}

void CpuTarget::giveUp(const std::string& why) {
  if (!cpuStatistics_.compileFailure.empty()) return;
  cpuStatistics_.compileFailure = why;
  if (options_.jit == Jit::Auto) complaint_ = why;  // otherwise the program does not run
}

bool CpuTarget::compilersWork() {
  const bool quick = quick_.busy(), small = small_.busy();
  return quick || small;
}

void CpuTarget::waitForKernel(Compiled& compiled, size_t kernel) {
  constexpr std::chrono::milliseconds kNap(2);
  const auto start = std::chrono::steady_clock::now();
  while (!compiled.functions[kernel] && compilersWork()) {
    std::this_thread::sleep_for(kNap);
    load(compiled);
  }
  cpuStatistics_.waitedSeconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!compiled.functions[kernel]) waitForCompilers(compiled);
}

void CpuTarget::waitForCompilers(Compiled& compiled) {
  const auto start = std::chrono::steady_clock::now();
  if (options_.jit == Jit::Always) good_.wait();
  quick_.wait();
  small_.wait();
  cpuStatistics_.waitedSeconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  load(compiled);
  // What small_ has compiled is looked for in good_.
  for (const Unit& unit : compiled.units)
    if (!unit.loaded) giveUp((&firstOf(unit) == &quick_ ? quick_ : good_).failureOf(unit.source));
}

void CpuTarget::improve(Compiled& compiled) {
  const double after = compiled.started ? kImproveAfter : kImproveAgainAfter;
  if (compiled.improved || compiled.missing > 0 || compiled.compiledWork < after) return;
  if (!compiled.improving) {
    compiled.improving = true;
    std::vector<std::string> sources;
    for (const Unit& unit : compiled.units)
      if (!unit.good) sources.push_back(unit.source);
    compiled.improved = sources.empty() || good_.start(sources).has_value();
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - compiled.lastLook < kLookEvery) return;
  compiled.lastLook = now;
  compiled.improved = !good_.busy();
  load(compiled);
}

double CpuTarget::costOf(const LaunchRequest& request, const Compiled& compiled) const {
  return compiled.costs[request.kernel] *
         static_cast<double>(request.extents.elements + request.extents.segments);
}

void CpuTarget::advance(const LaunchRequest& request, Compiled& compiled) {
  const double cost = costOf(request, compiled);
  compiled.work += cost;
  if (compiled.work < kLookUpAfter || (compiled.generated && compiled.missing == 0)) return;
  if (!compiled.lookedUp) {
    compiled.lookedUp = true;
    generate(*request.program, compiled);
    load(compiled);
  }
  if (compiled.missing == 0 || compiled.work < kCompileAfter) return;
  if (!compiled.started) startCompiling(compiled, request.kernel);
  if (!cpuStatistics_.compileFailure.empty()) return;
  // Loops are evaluated until their code is there: nobody knows how long they take.
  if (cost > kWorthWaiting && !compiled.endless[request.kernel]) {
    waitForKernel(compiled, request.kernel);
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - compiled.lastLook < kLookEvery) return;
  compiled.lastLook = now;
  if (compilersWork()) {
    load(compiled);
  } else {
    waitForCompilers(compiled);
  }
}

bool CpuTarget::interpretUntilCompiled(const LaunchRequest& request, std::optional<DeviceError>& error,
                                       Compiled& compiled) {
  const auto postpone = [&]() -> std::optional<Deadline> {
    generate(*request.program, compiled);
    load(compiled);
    if (compiled.missing == 0) return std::nullopt;
    if (!compiled.started) startCompiling(compiled);
    if (!compilersWork()) waitForCompilers(compiled);
    if (compiled.functions[request.kernel]) return std::nullopt;
    if (!cpuStatistics_.compileFailure.empty()) return Deadline::max();
    return std::chrono::steady_clock::now() + kLookEvery;
  };
  try {
    interpret(request, error, std::chrono::steady_clock::now() + kPatience, postpone);
  } catch (const DeadlinePassed&) {
    return false;
  }
  return true;
}

Failure CpuTarget::execute(const LaunchRequest& request, std::optional<DeviceError>& error) {
  Compiled& compiled = programs_.at(request.program);
  const bool mayCompile = options_.jit == Jit::Auto;
  if (mayCompile && !compiled.functions[request.kernel]) advance(request, compiled);
  if (!compiled.functions[request.kernel]) {
    const auto start = std::chrono::steady_clock::now();
    bool done = true;
    if (mayCompile && compiled.endless[request.kernel] && cpuStatistics_.compileFailure.empty()) {
      done = interpretUntilCompiled(request, error, compiled);
    } else {
      interpret(request, error);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    compiled.work += std::max(0.0, seconds - costOf(request, compiled));
    if (done) {
      ++cpuStatistics_.interpretedLaunches;
      return std::nullopt;
    }
  }
  ++cpuStatistics_.compiledLaunches;
  const auto start = std::chrono::steady_clock::now();
  Failure failure = call(request, compiled.functions[request.kernel], error);
  compiled.compiledWork += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (mayCompile) improve(compiled);
  return failure;
}

Failure CpuTarget::call(const LaunchRequest& request, KernelFunction function,
                        std::optional<DeviceError>& error) {
  ErrorRecord record;
  StackPool stacks(codegen::cpu::kDeepStack);
  KernelLaunch launch{request.extents.elements,
                      request.extents.segments,
                      request.extents.length,
                      request.extents.targets.data(),
                      reinterpret_cast<const codegen::cpu::Argument*>(request.arguments.data()),
                      request.outputs.data(),
                      &record,
                      request.scratch,
                      takeScratch,
                      &team(),
                      runParts,
                      ownStack_,
                      &stacks,
                      runDeeper,
                      reinterpret_cast<const bool*>(request.interrupt)};
  static_assert(sizeof(std::atomic<bool>) == sizeof(bool));
  const bool outOfMemory = function(&launch) != 0;
  if (request.interrupt && request.interrupt->load(std::memory_order_relaxed)) throw Interrupted{};
  if (outOfMemory) return "out of memory for the temporary data of a kernel";
  if (record.recorded != 0) {
    error = DeviceError{static_cast<lcu::SiteId>(record.site), record.payload0, record.payload1};
  }
  return std::nullopt;
}

}  // namespace kelpie::runtime

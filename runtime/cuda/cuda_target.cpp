#include "runtime/cuda/cuda_target.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "ir/diagnostic.h"

namespace kelpie::runtime::cuda {

using codegen::KernelOutput;
using codegen::ParameterKind;
using codegen::cuda::CudaPass;
using codegen::cuda::Grid;

namespace {

// Mirrors of codegen/cuda/base.cuh.
struct ErrorWord {
  uint64_t launch;
  int64_t element;
  uint32_t binding, site;
  int64_t payload[2];
  uint32_t lock;
};
struct LaunchWord {
  uint64_t number;
  DevicePointer error, counters, states, values;
  int64_t tiles;
  uint32_t epoch;
};
constexpr uint64_t kEpochMask = 0x1fffffff;
constexpr size_t kStateBytes = 16;
constexpr int64_t kGroup = 32;

/// Fewer tiles than this find their own part of a segmented space.
constexpr int64_t kFewTiles = 1024;

/// Launches that are timed before the device is asked for their times.
constexpr int kMostMarked = 4096;

Failure outOfMemory() { return "out of device memory"; }

/// Arguments of one launch, kept at fixed addresses.
class Arguments {
 public:
  template <class T>
  void add(const T& value) {
    storage_.emplace_back();
    static_assert(sizeof(T) <= sizeof(Slot));
    std::memcpy(storage_.back().bytes, &value, sizeof(T));
    addresses_.push_back(storage_.back().bytes);
  }
  void add(const KernelArgument& argument, ScalarType type) {
    switch (type) {
      case ScalarType::Bool:
      case ScalarType::Char:
        add(static_cast<uint8_t>(argument.integer));
        break;
      case ScalarType::Int32:
        add(static_cast<int32_t>(argument.integer));
        break;
      case ScalarType::Int64:
        add(argument.integer);
        break;
      case ScalarType::Float32:
        add(static_cast<float>(argument.real));
        break;
      case ScalarType::Float64:
        add(argument.real);
        break;
    }
  }
  void** addresses() { return addresses_.data(); }

 private:
  struct Slot {
    alignas(16) std::byte bytes[sizeof(LaunchWord)];
  };
  std::deque<Slot> storage_;
  std::vector<void*> addresses_;
};

uint64_t bitsOf(const Scalar& value) {
  uint64_t bits = 0;
  if (value.type == ScalarType::Float32) {
    float f = static_cast<float>(value.f);
    std::memcpy(&bits, &f, sizeof f);
  } else {
    std::memcpy(&bits, &value.i, sizeof bits);
  }
  return bits;
}

}  // namespace

CudaTarget::CudaTarget(std::unique_ptr<Device> device, codegen::cuda::CudaOptions options)
    : device_(std::move(device)), options_(std::move(options)) {}

CudaTarget::~CudaTarget() {
  device_->wait();
  programs_.clear();
  for (DevicePointer p : {error_, counters_, states_})
    if (p) device_->deallocate(p);
}

Failure CudaTarget::upload(DevicePointer to, const void* from, size_t bytes) {
  return device_->upload(to, from, bytes);
}
Failure CudaTarget::download(void* to, DevicePointer from, size_t bytes) {
  return device_->download(to, from, bytes);
}
Failure CudaTarget::copy(DevicePointer to, DevicePointer from, size_t bytes) {
  return device_->copy(to, from, bytes);
}
Failure CudaTarget::grade(const GradeRequest& request) {
  return timed([&]() -> Failure {
    if (request.extents.elements == 0) return std::nullopt;
    ++statistics_.launches;
    return device_->grade(request);
  });
}

template <typename Work>
Failure CudaTarget::timed(const Work& work) {
  if (!timing_) return work();
  if (auto failure = device_->mark()) return failure;
  Failure failure = work();
  if (auto other = device_->mark(); other && !failure) failure = other;
  if (++marked_ < kMostMarked) return failure;
  marked_ = 0;
  if (auto other = device_->takeMarks(seconds_); other && !failure) failure = other;
  return failure;
}

void CudaTarget::timeLaunches(bool on) {
  launchSeconds();
  timing_ = on;
}

std::vector<double> CudaTarget::launchSeconds() {
  marked_ = 0;
  device_->takeMarks(seconds_);  // a failure is that of a kernel, and comes back at the next wait
  return std::exchange(seconds_, {});
}

double CudaTarget::copyBandwidth() {
  constexpr size_t kBytes = size_t{1} << 29;  // beyond caches
  constexpr int kRepetitions = 5;             // of which the first one warms up
  DevicePointer from = device_->allocate(kBytes), to = device_->allocate(kBytes);
  std::vector<double> seconds;
  bool good = from && to && !device_->takeMarks(seconds_) && !device_->clear(from, kBytes);
  for (int k = 0; k < kRepetitions && good; ++k)
    good = !device_->mark() && !device_->copy(to, from, kBytes) && !device_->mark();
  good = good && !device_->takeMarks(seconds);
  for (DevicePointer p : {from, to})
    if (p) device_->deallocate(p);
  return good ? 2.0 * kBytes / *std::min_element(seconds.begin(), seconds.end()) : 0;
}

Failure CudaTarget::start() {
  if (error_) return std::nullopt;
  counters_ = device_->allocate(2 * sizeof(uint32_t));
  if (!counters_) return outOfMemory();
  if (auto failure = device_->clear(counters_, 2 * sizeof(uint32_t))) return failure;
  DevicePointer error = device_->allocate(sizeof(ErrorWord));
  if (!error) return outOfMemory();
  error_ = error;
  return device_->clear(error_, sizeof(ErrorWord));
}

Failure CudaTarget::prepare(const ProgramKernels& program) {
  if (auto failure = start()) return failure;
  CompiledProgram compiled;
  std::vector<const lcu::Kernel*> kernels;
  for (const KernelEntry& entry : program.kernels) kernels.push_back(entry.kernel);
  compiled.text = codegen::cuda::generateModule(kernels, *program.program, options_);
  if (!kernels.empty()) {
    std::vector<std::string> entries = {"kelpie_split", "kelpie_fill1", "kelpie_fill4", "kelpie_fill8"};
    for (const auto& kernel : compiled.text.kernels)
      for (const CudaPass& pass : kernel.passes) entries.push_back(pass.entry);
    if (auto failure = device_->compile(compiled.text.source, entries, compiled.module)) return failure;
    for (const auto& kernel : compiled.text.kernels) {
      compiled.functions.emplace_back();
      for (const CudaPass& pass : kernel.passes) {
        Function function = compiled.module->function(pass.entry);
        int64_t resident = pass.persistent ? device_->residentBlocks(function, pass.shape.threads) : 0;
        compiled.functions.back().push_back({function, resident});
      }
    }
    compiled.split = compiled.module->function("kelpie_split");
    compiled.fill1 = compiled.module->function("kelpie_fill1");
    compiled.fill4 = compiled.module->function("kelpie_fill4");
    compiled.fill8 = compiled.module->function("kelpie_fill8");
  }
  programs_[&program] = std::move(compiled);
  return std::nullopt;
}

void CudaTarget::release(const ProgramKernels& program) {
  auto it = programs_.find(&program);
  if (it == programs_.end()) return;
  device_->wait();
  programs_.erase(it);
}

Failure CudaTarget::reserveStates(int64_t words) {
  if (words <= stateWords_) return std::nullopt;
  int64_t size = std::max<int64_t>(words + words / 2, 4096);
  DevicePointer states = device_->allocate(static_cast<size_t>(size) * kStateBytes);
  if (!states) return outOfMemory();
  if (auto failure = device_->clear(states, static_cast<size_t>(size) * kStateBytes)) return failure;
  if (states_) device_->deallocate(states_);
  states_ = states;
  stateWords_ = size;
  return std::nullopt;
}

Failure CudaTarget::launch(const LaunchRequest& request) {
  return timed([&] { return launchPasses(request); });
}

Failure CudaTarget::launchPasses(const LaunchRequest& request) {
  auto it = programs_.find(request.program);
  if (it == programs_.end()) throw InternalError("launch of a program that was not prepared");
  ++launches_;
  std::unordered_map<lcu::VarId, DevicePointer> between;
  const auto& passes = it->second.text.kernels.at(request.kernel).passes;
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    if (auto failure = launchPass(request, it->second, request.kernel, pass, between)) return failure;
  }
  return std::nullopt;
}

/// Positions of a permute that nobody writes hold its fill.
Failure CudaTarget::fillPermuted(const LaunchRequest& request, const CompiledProgram& program,
                                 const CudaPass& pass, lcu::VarId var, DevicePointer pointer) {
  const KernelOutput& output = *request.program->kernels[request.kernel].info.output(var);
  const KernelOutput& own = *pass.info.output(var);
  const lcu::Soac& soac = pass.kernel.bindings[own.binding];
  if (soac.unique && soac.target == soac.space.extent) return std::nullopt;  // every position is written
  int64_t count = codegen::capacity(output, request.extents);
  if (count == 0) return std::nullopt;
  Arguments arguments;
  arguments.add(pointer);
  arguments.add(count);
  arguments.add(bitsOf(soac.fill.at(own.result)));
  int bytes = sizeOf(output.type);
  Function fill = bytes == 1 ? program.fill1 : bytes == 4 ? program.fill4 : program.fill8;
  return device_->launch(fill, std::min<int64_t>((count + 1023) / 1024, 4096), 256, arguments.addresses());
}

Failure CudaTarget::launchPass(const LaunchRequest& request, const CompiledProgram& program, size_t kernel,
                               size_t passNumber, std::unordered_map<lcu::VarId, DevicePointer>& between) {
  const KernelEntry& entry = request.program->kernels[kernel];
  const CudaPass& pass = program.text.kernels[kernel].passes[passNumber];
  const auto& extents = request.extents;

  std::vector<DevicePointer> outputs;
  for (const KernelOutput& o : pass.info.outputs) {
    DevicePointer pointer = nullptr;
    if (const KernelOutput* outer = entry.info.output(o.var)) {
      pointer = request.outputs[static_cast<size_t>(outer - entry.info.outputs.data())];
    } else {
      size_t count = static_cast<size_t>(codegen::capacity(o, extents));
      pointer = request.scratch->take(std::max<size_t>(16, count * static_cast<size_t>(sizeOf(o.type))));
      if (!pointer) return outOfMemory();
    }
    between[o.var] = pointer;
    outputs.push_back(pointer);
    if (o.extent == codegen::ExtentKind::Target) {
      if (auto failure = fillPermuted(request, program, pass, o.var, pointer)) return failure;
    }
  }
  if (!pass.needsLaunch && extents.elements == 0 && (!pass.segmented() || extents.segments == 0))
    return std::nullopt;

  LaunchWord word{launches_, error_, counters_, nullptr, nullptr, pass.tiles(extents), 0};
  if (pass.levels > 0) {
    word.epoch = static_cast<uint32_t>(++epochs_ & kEpochMask);
    if (word.epoch == 0 && states_) {  // all tags have been used
      if (auto failure = device_->clear(states_, static_cast<size_t>(stateWords_) * kStateBytes))
        return failure;
    }
    if (auto failure = reserveStates(pass.levels * (word.tiles + word.tiles / kGroup))) return failure;
    word.states = states_;
  }
  if (int64_t bytes = pass.fixedBytes + pass.bytesPerTile * word.tiles; bytes > 0) {
    word.values = request.scratch->take(static_cast<size_t>(bytes));
    if (!word.values) return outOfMemory();
  }

  auto argumentOf = [&](const codegen::KernelParameter& p) {
    for (size_t k = 0; k < entry.info.parameters.size(); ++k) {
      const auto& outer = entry.info.parameters[k];
      if (outer.kind == p.kind && outer.var == p.var) return request.arguments[k];
    }
    KernelArgument argument;
    argument.pointer = between.at(p.var);
    return argument;
  };

  Arguments arguments;
  arguments.add(word);
  arguments.add(extents.elements);
  if (pass.segmented()) {
    arguments.add(extents.segments);
    arguments.add(extents.length);
  }
  if (pass.grid == Grid::Merged) {
    DevicePointer splits = nullptr;
    if (pass.info.offsetsParameter && word.tiles > kFewTiles) {
      splits = request.scratch->take(static_cast<size_t>(word.tiles + 1) * sizeof(int64_t));
      if (!splits) return outOfMemory();
      Arguments split;
      split.add(argumentOf(pass.info.parameters[*pass.info.offsetsParameter]).pointer);
      split.add(extents.segments);
      split.add(extents.elements);
      split.add(pass.tileSize());
      split.add(word.tiles);
      split.add(splits);
      if (auto failure = device_->launch(program.split, (word.tiles + 1 + 127) / 128, 128, split.addresses()))
        return failure;
    }
    arguments.add(splits);
  }
  for (const auto& p : pass.info.parameters) {
    KernelArgument argument = argumentOf(p);
    switch (p.kind) {
      case ParameterKind::Array:
      case ParameterKind::Cell:
        arguments.add(argument.pointer);
        break;
      case ParameterKind::Size:
        arguments.add(argument.integer);
        break;
      case ParameterKind::Scalar:
        arguments.add(argument, p.type);
    }
  }
  for (DevicePointer p : outputs) arguments.add(p);
  ++statistics_.launches;
  const auto& code = program.functions[kernel][passNumber];
  return device_->launch(code.function, pass.blocks(word.tiles, code.resident), pass.shape.threads,
                         arguments.addresses());
}

Failure CudaTarget::synchronise(std::optional<DeviceError>& error) {
  error.reset();
  if (!error_) return device_->wait();
  ErrorWord word;
  if (auto failure = device_->download(&word, error_, sizeof word)) return failure;
  if (word.launch != 0) error = DeviceError{word.site, word.payload[0], word.payload[1]};
  return std::nullopt;
}

void CudaTarget::clearError() {
  if (error_) device_->clear(error_, sizeof(ErrorWord));
}

}  // namespace kelpie::runtime::cuda

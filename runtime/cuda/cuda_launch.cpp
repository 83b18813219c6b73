// CudaTarget: how a kernel is launched, pass by pass.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/diagnostic.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/cuda/launch_words.h"

namespace kelpie::runtime::cuda {

using codegen::KernelOutput;
using codegen::ParameterKind;
using codegen::cuda::CudaPass;
using codegen::cuda::Places;

namespace {

constexpr uint64_t kEpochMask = 0x1fffffff;
constexpr size_t kStateBytes = 16;

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

Failure CudaTarget::findStates(int64_t words, Scratch& scratch, DevicePointer& states) {
  if (words > stateWords_) {
    const int64_t size = std::max<int64_t>(words + words / 2, 4096);
    const auto bytes = static_cast<size_t>(size) * kStateBytes;
    if (DevicePointer larger = device_->allocate(bytes)) {
      if (states_) device_->deallocate(states_);
      states_ = larger;
      stateWords_ = size;
      if (auto failure = device_->clear(states_, bytes)) return failure;
    }
  }
  states = states_;
  if (words <= stateWords_) return std::nullopt;
  // There may be memory where results come from.
  const auto bytes = static_cast<size_t>(words) * kStateBytes;
  states = scratch.take(bytes);
  return states ? device_->clear(states, bytes) : outOfMemory(bytes);
}

CudaTarget::PreparedPass& CudaTarget::chosen(const LaunchRequest& request, PreparedKernel& kernel,
                                             size_t number, const CudaPass*& pass) {
  pass = &kernel.text.passes[number];
  PreparedPass& prepared = kernel.passes[number];
  for (size_t k = 0; k < prepared.alternatives.size(); ++k) {
    const CudaPass& alternative = *pass->alternatives[k];
    if (!alternative.suits(extentsOf(request, prepared.alternatives[k], alternative))) continue;
    pass = &alternative;
    return prepared.alternatives[k];
  }
  return prepared;
}

CudaTarget::PreparedKernel& CudaTarget::kernelOf(const LaunchRequest& request) {
  auto it = programs_.find(request.program);
  if (it == programs_.end()) throw InternalError("launch of a program that was not prepared");
  PreparedKernel& expected = it->second[request.kernel];
  const int64_t most = std::max(request.extents.elements, request.extents.segments);
  const Places places = most <= options_.mostShortPlaces ? Places::Short : Places::Long;
  const auto fits = [&](const PreparedKernel& k) {
    return k.places == places && std::ranges::equal(k.shortArrays, request.shortArrays);
  };
  if (fits(expected)) return expected;
  for (const auto& other : expected.others)
    if (fits(*other)) return *other;
  ++statistics_.unexpected;
  expected.others.push_back(std::make_unique<PreparedKernel>(
      generate(request.program->kernels[request.kernel], *request.program->program,
               {request.shortArrays.begin(), request.shortArrays.end()}, places)));
  return *expected.others.back();
}

Failure CudaTarget::launch(const LaunchRequest& request) {
  PreparedKernel& kernel = kernelOf(request);
  std::vector<std::pair<PreparedPass*, const CudaPass*>> missing;
  for (size_t number = 0; number < kernel.passes.size(); ++number) {
    const CudaPass* pass = nullptr;
    PreparedPass& prepared = chosen(request, kernel, number, pass);
    if (!prepared.loaded) missing.emplace_back(&prepared, pass);
  }
  if (!missing.empty() && !timing_) {
    std::vector<const std::string*> sources;
    for (const auto& [prepared, pass] : missing)
      if (!loaded_.contains(prepared->source)) sources.push_back(&prepared->source);
    bool done = false;
    if (auto failure = evaluateMeanwhile(request, kernel, sources, done); failure || done) return failure;
  }
  for (const auto& [prepared, pass] : missing)
    if (auto failure = load(*prepared, *pass)) return failure;
  if (kernel.text.calls && !stackReserved_) {
    if (auto failure = device_->reserveStack(codegen::cuda::kStackBytes)) return failure;
    stackReserved_ = true;
  }
  ++launches_;
  return timed([&] { return launchPasses(request, kernel); });
}

codegen::Streams CudaTarget::streams(const LaunchRequest& request) {
  const auto it = programs_.find(request.program);
  if (it == programs_.end()) return {};
  codegen::Streams most;
  const PreparedKernel& kernel = it->second[request.kernel];
  for (size_t k = 0; k < kernel.text.passes.size(); ++k) {
    const CudaPass& pass = kernel.text.passes[k];
    const codegen::Streams own = pass.streams(extentsOf(request, kernel.passes[k], pass));
    if (k == 0 || own.number > most.number) most = own;
  }
  return most;
}

Failure CudaTarget::finishRecursive(const LaunchRequest& request) {
  ErrorWord word{};
  if (auto failure = device_->download(&word, error_, sizeof word)) return failure;
  if (word.launch != launches_ || word.site != codegen::cuda::kStackSite) return std::nullopt;
  if (auto failure = device_->clear(error_, sizeof word)) return failure;
  std::optional<DeviceError> error;
  const HostKernel kernel(request.program->kernels.at(request.kernel));
  if (auto failure = kernel.evaluate(request, *device_, allocations_, error)) return failure;
  return record(error);
}

/// As the kernel of the latest launch would have.
Failure CudaTarget::record(const std::optional<DeviceError>& error) {
  if (!error) return std::nullopt;
  const ErrorWord word{launches_, 0, 0, error->site, {error->payload0, error->payload1}, 0};
  return device_->upload(error_, &word, sizeof word);
}

Failure CudaTarget::evaluateMeanwhile(const LaunchRequest& request, PreparedKernel& kernel,
                                      const std::vector<const std::string*>& missing, bool& done) {
  if (!kernel.meanwhile.suits(request, *device_, allocations_, missing)) return std::nullopt;
  ErrorWord before{};
  if (auto failure = device_->download(&before, error_, sizeof before)) return failure;
  ++launches_;
  done = true;
  if (before.launch != 0) return std::nullopt;  // after an error launches do nothing
  Failure failure;
  std::optional<DeviceError> error;
  done = kernel.meanwhile.evaluate(request, *device_, allocations_, missing, error, failure);
  if (!done || failure) return failure;
  ++statistics_.evaluated;
  return record(error);
}

/// Memory for what passes hand on, before the first is launched.
Failure CudaTarget::takeBetween(const LaunchRequest& request, PreparedKernel& kernel) {
  for (size_t number = 0; number < kernel.passes.size(); ++number) {
    const CudaPass* pass = nullptr;
    const PreparedPass& prepared = chosen(request, kernel, number, pass);
    for (size_t k = 0; k < prepared.outputs.size(); ++k) {
      if (prepared.outputs[k].of != Origin::Of::Between) continue;
      const KernelOutput& o = pass->info.outputs[k];
      const size_t count = static_cast<size_t>(codegen::capacity(o, request.extents));
      const size_t bytes = std::max<size_t>(16, count * static_cast<size_t>(sizeOf(o.type)));
      DevicePointer pointer = request.scratch->take(bytes);
      if (!pointer) return outOfMemory(bytes);
      kernel.between[prepared.outputs[k].index] = pointer;
    }
  }
  return std::nullopt;
}

Failure CudaTarget::launchPasses(const LaunchRequest& request, PreparedKernel& kernel) {
  lastPasses_.clear();
  if (auto failure = takeBetween(request, kernel)) return failure;
  for (size_t pass = 0; pass < kernel.passes.size(); ++pass)
    if (auto failure = launchPass(request, kernel, pass)) return failure;
  return kernel.text.recursive ? finishRecursive(request) : std::nullopt;
}

/// The permutes of a pass of which the host finds the last writers, and the memory that takes: where there is
/// too little, they write one by one.
CudaTarget::FoundTogether CudaTarget::lastWriters(const LaunchRequest& request, const PreparedPass& prepared,
                                                  const CudaPass& pass) {
  FoundTogether result;
  const int64_t elements = request.extents.elements;
  if (elements < options_.manyWriters) return result;
  for (size_t k = 0; k < prepared.outputs.size(); ++k) {
    const KernelOutput& output = pass.info.outputs[k];
    const lcu::Soac& soac = pass.kernel.bindings[output.binding];
    if (!codegen::keepsLastWriter(soac) || prepared.outputs[k].of != Origin::Of::Output) continue;
    const size_t number = codegen::numberAmongLastWriters(pass.kernel, output.binding);
    const bool onto = soac.fill.empty();  // arrays, or what nobody looks at
    LastWriters last{.places = nullptr,
                     .elements = elements,
                     .counted = request.counted,
                     .writers = request.outputs[prepared.outputs[k].index],
                     .target = codegen::capacity(
                         *request.program->kernels[request.kernel].info.output(output.var), request.extents),
                     .onto = onto,
                     .fill = onto ? 0 : soac.fill.at(output.result).i,
                     .error = error_};
    if (number >= codegen::kMostFoundTogether || last.target == 0 ||
        last.target > int64_t{UINT32_MAX} - UINT16_MAX ||
        !codegen::findsWritersTogether(elements, last.target, onto, options_.manyWriters))
      continue;
    const size_t bytes = device_->lastWritersBytes(last);
    if (bytes == 0) continue;
    last.places = request.scratch->take(static_cast<size_t>(elements) * sizeof(uint32_t));
    const DevicePointer scratch = last.places ? request.scratch->take(bytes) : nullptr;
    if (!scratch) continue;
    result.places[number] = last.places;
    result.all.push_back({last, scratch});
  }
  return result;
}

/// Positions of a permute that nobody writes hold its fill.
Failure CudaTarget::fillPermuted(const LaunchRequest& request, const CudaPass& pass, lcu::VarId var,
                                 DevicePointer pointer) {
  const KernelOutput& output = *request.program->kernels[request.kernel].info.output(var);
  const KernelOutput& own = *pass.info.output(var);
  const lcu::Soac& soac = pass.kernel.bindings[own.binding];
  if (soac.fill.empty()) return std::nullopt;
  const bool all = soac.unique && !soac.where && soac.target == soac.space.extent;
  if (all) return std::nullopt;  // every position is written
  int64_t count = codegen::capacity(output, request.extents);
  if (count == 0) return std::nullopt;
  if (auto failure = loadSupport()) return failure;
  ArgumentBlock arguments(3);
  arguments.set(0, pointer);
  arguments.set(1, count);
  arguments.set(2, bitsOf(soac.fill.at(own.result)));
  int bytes = sizeOf(output.type);
  Function fill = bytes == 1 ? fill1_ : bytes == 4 ? fill4_ : fill8_;
  return device_->launch(fill, std::min<int64_t>((count + 1023) / 1024, 4096), 256, arguments.addresses());
}

Failure CudaTarget::convert(const Function& function, DevicePointer to, DevicePointer from, int64_t count) {
  if (auto failure = loadSupport()) return failure;
  ArgumentBlock arguments(3);
  arguments.set(0, from);
  arguments.set(1, to);
  arguments.set(2, count);
  return device_->launch(function, std::min<int64_t>((count + 255) / 256, 4096), 256, arguments.addresses());
}

codegen::LaunchExtents CudaTarget::extentsOf(const LaunchRequest& request, const PreparedPass& prepared,
                                             const CudaPass& pass) {
  codegen::LaunchExtents extents = request.extents;
  if (prepared.loaded) extents.blocksAtOnce = prepared.loaded->resources.blocksAtOnce;
  extents.inner = pass.innerConstant;
  if (pass.innerParameter)  // passes hand on arrays, not sizes
    extents.inner = request.arguments[prepared.parameters[*pass.innerParameter].index].integer;
  return extents;
}

Failure CudaTarget::launchPass(const LaunchRequest& request, PreparedKernel& kernel, size_t passNumber) {
  const auto& extents = request.extents;
  const CudaPass* chosenPass = nullptr;
  PreparedPass& prepared = chosen(request, kernel, passNumber, chosenPass);
  const CudaPass& pass = *chosenPass;

  const auto fillPlaces = [&](const FoundTogether& last) -> Failure {
    for (size_t k = 0; k < prepared.outputs.size(); ++k) {
      const Origin& place = prepared.outputs[k];
      const KernelOutput& o = pass.info.outputs[k];
      if (place.of == Origin::Of::Output && o.extent == codegen::ExtentKind::Target &&
          !last.finds(request.outputs[place.index])) {
        if (auto failure = fillPermuted(request, pass, o.var, request.outputs[place.index])) return failure;
      }
    }
    return std::nullopt;
  };
  if (!pass.needsLaunch && extents.elements == 0 && (!pass.segmented() || extents.segments == 0))
    return fillPlaces({});

  LaunchWord word{launches_,
                  error_,
                  counters_,
                  nullptr,
                  nullptr,
                  pass.tiles(extentsOf(request, prepared, pass)),
                  0,
                  static_cast<int32_t>(pass.together(extents)),
                  request.counted,
                  {},
                  {}};
  if (pass.stateWords > 0) {
    word.epoch = static_cast<uint32_t>(++epochs_ & kEpochMask);
    if (word.epoch == 0) {  // all tags have been used, and that of cleared words is 0
      word.epoch = static_cast<uint32_t>(++epochs_ & kEpochMask);
      if (states_)
        if (auto failure = device_->clear(states_, static_cast<size_t>(stateWords_) * kStateBytes))
          return failure;
    }
    if (auto failure = findStates(pass.states(word.tiles), *request.scratch, word.states)) return failure;
  }
  if (int64_t bytes = pass.fixedBytes + pass.bytesPerTile * word.tiles; bytes > 0) {
    word.values = request.scratch->take(static_cast<size_t>(bytes));
    if (!word.values) return outOfMemory(static_cast<size_t>(bytes));
  }

  // Memory and code before the first of several launches: what a launch waits for in between would count as
  // the time of the kernel.
  DevicePointer begins = nullptr;  // where tiles begin in the list of segments
  const int64_t blocksOfEmpty = pass.blocksOfEmpty(extents);
  if (pass.findsBegins() && pass.info.offsetsParameter &&
      (word.tiles > options_.fewTiles || blocksOfEmpty > 0)) {
    const size_t bytes = static_cast<size_t>(word.tiles + 1) * sizeof(int64_t);
    begins = request.scratch->take(bytes);
    if (!begins) return outOfMemory(bytes);
  }
  std::vector<DevicePointer> tables;
  for (size_t k = 0; k < pass.ranked.size(); ++k) {
    const auto bytes = static_cast<size_t>(pass.rankBytes(word.tiles));
    tables.push_back(request.scratch->take(bytes));
    if (!tables.back()) return outOfMemory(bytes);
  }
  if (begins || !tables.empty()) {
    if (auto failure = loadSupport()) return failure;
  }

  // What spares time has what memory is left.
  const FoundTogether last = lastWriters(request, prepared, pass);
  std::ranges::copy(last.places, word.places);
  if (auto failure = fillPlaces(last)) return failure;
  for (size_t k = 0; k < pass.records.size(); ++k)
    if (auto failure = interleave(request, kernel, prepared, pass, k, word)) return failure;

  auto pointerOf = [&](const Origin& place) {
    return place.of == Origin::Of::Output ? request.outputs[place.index] : kernel.between[place.index];
  };
  auto argumentOf = [&](const Origin& origin) {
    if (origin.of == Origin::Of::Argument) return request.arguments[origin.index];
    KernelArgument argument;
    argument.pointer = pointerOf(origin);
    return argument;
  };

  ArgumentBlock& arguments = prepared.arguments;
  size_t next = 0;
  arguments.set(next++, word);
  arguments.set(next++, extents.elements);
  if (pass.segmented()) {
    arguments.set(next++, extents.segments);
    arguments.set(next++, extents.length);
  }
  if (pass.findsBegins()) {
    if (begins) {
      const size_t p = *pass.info.offsetsParameter;
      ArgumentBlock search(7);
      search.set(0, argumentOf(prepared.parameters[p]).pointer);
      search.set(1, int64_t{kernel.isShort(pass.info.parameters[p].var)});
      search.set(2, extents.segments);
      search.set(3, extents.elements);
      search.set(4, pass.tileSize());
      search.set(5, word.tiles);
      search.set(6, begins);
      if (auto failure = device_->launch(starts_, (word.tiles + 1 + 127) / 128, 128, search.addresses()))
        return failure;
    }
    arguments.set(next++, begins);
  }
  for (DevicePointer table : tables) arguments.set(next++, table);
  for (size_t k = 0; k < prepared.parameters.size(); ++k) {
    const auto& p = pass.info.parameters[k];
    const KernelArgument argument = argumentOf(prepared.parameters[k]);
    switch (p.kind) {
      case ParameterKind::Array:
      case ParameterKind::Cell:
        arguments.set(next++, argument.pointer);
        break;
      case ParameterKind::Size:
        arguments.set(next++, argument.integer);
        break;
      case ParameterKind::Scalar:
        arguments.set(next++, argument, p.type);
    }
  }
  for (const Origin& place : prepared.outputs) arguments.set(next++, pointerOf(place));
  ++statistics_.launches;
  const int64_t blocks = pass.blocks(word.tiles) + blocksOfEmpty;
  if (auto failure =
          device_->launch(prepared.loaded->function, blocks, pass.shape.threads, arguments.addresses()))
    return failure;
  if (timing_) lastPasses_.emplace_back(prepared.loaded->resources).blocks = blocks;
  for (const auto& [writers, scratch] : last.all) {
    ++statistics_.launches;
    if (auto failure = device_->findLastWriters(writers, scratch)) return failure;
  }
  for (size_t k = 0; k < tables.size(); ++k) {
    constexpr int64_t kThreads = 256, kSegmentsOfThread = 4;  // as in support_kernels.cuh
    RankedSegments segments{nullptr,
                            0,
                            extents.length,
                            extents.segments,
                            pointerOf(prepared.outputs[pass.ranked[k]]),
                            kernel.isShort(pass.info.outputs[pass.ranked[k]].var)};
    if (const auto& p = pass.info.offsetsParameter) {
      segments.offsets = argumentOf(prepared.parameters[*p]).pointer;
      segments.isShort = kernel.isShort(pass.info.parameters[*p].var);
    }
    ArgumentBlock ranks(4);
    ranks.set(0, word);
    ranks.set(1, segments);
    ranks.set(2, pass.rankGroups(word.tiles));
    ranks.set(3, tables[k]);
    const Function function = pass.shape.width == 1 ? rank1_ : pass.shape.width == 2 ? rank2_ : rank4_;
    const int64_t blocks = extents.segments / (kThreads * kSegmentsOfThread) + 1;
    if (auto failure = device_->launch(function, blocks, kThreads, ranks.addresses())) return failure;
  }
  return std::nullopt;
}

}  // namespace kelpie::runtime::cuda

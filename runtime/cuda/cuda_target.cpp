#include "runtime/cuda/cuda_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/diagnostic.h"

namespace kelpie::runtime::cuda {

using codegen::KernelOutput;
using codegen::ParameterKind;
using codegen::cuda::CudaPass;
using codegen::cuda::Places;

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
  int32_t together;
  DevicePointer extent;
  DevicePointer records[codegen::cuda::kMostRecords];
};
// Mirror of codegen/cuda/support_kernels.cuh.
struct RecordColumns {
  DevicePointer column[codegen::cuda::kMostColumns];
};
struct RankedSegments {
  DevicePointer offsets;
  int64_t isShort;
  int64_t length, count;
  DevicePointer kept;
  int64_t keptIsShort;
};
constexpr uint64_t kEpochMask = 0x1fffffff;
constexpr size_t kStateBytes = 16;

/// Launches that are timed before the device is asked for their times.
constexpr int kMostMarked = 4096;

/// Modules that are kept for later programs.
constexpr size_t kMostLoaded = 1024;

Failure outOfMemory(size_t bytes) {
  return "out of memory: " + std::to_string(bytes) + " bytes that launches need beside their results";
}

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
    : device_(std::move(device)),
      reader_(*device_),
      board_(*device_, reader_),
      draws_(*device_),
      options_(std::move(options)) {}

CudaTarget::~CudaTarget() {
  device_->wait();
  programs_.clear();
  loaded_.clear();
  support_.reset();
  reader_.unload();
  draws_.unload();
  for (DevicePointer p : {error_, counters_, states_})
    if (p) device_->deallocate(p);
}

DevicePointer CudaTarget::allocate(size_t bytes) {
  DevicePointer pointer = device_->allocate(bytes);
  if (pointer) allocations_[static_cast<const std::byte*>(pointer)] = bytes;
  return pointer;
}
void CudaTarget::deallocate(DevicePointer pointer) {
  allocations_.erase(static_cast<const std::byte*>(pointer));
  device_->deallocate(pointer);
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
  // A first sort of its kind waits for its code to be loaded, up to 2 ms.
  if (timing_ && request.extents.elements > 0 &&
      warmSorts_.insert({request.type, request.space, request.order != nullptr, request.sorted != nullptr})
          .second)
    if (auto failure = device_->grade(request)) return failure;
  return timed([&]() -> Failure {
    if (request.extents.elements == 0) return std::nullopt;
    ++statistics_.launches;
    return device_->grade(request);
  });
}

Failure CudaTarget::draw(const RandomStream& stream, ScalarType type, DevicePointer to, int64_t count) {
  if (auto failure = draws_.load(stream.generator())) return failure;
  ++statistics_.launches;
  return timed([&] { return draws_.draw(stream, type, to, count); });
}

template <typename Work>
Failure CudaTarget::timed(const Work& work) {
  if (!timing_) return work();
  if (auto failure = device_->markLaunch()) return failure;
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
  constexpr size_t kCounterBytes = codegen::cuda::kMostCounters * sizeof(uint32_t);
  if (!counters_) counters_ = device_->allocate(kCounterBytes);
  if (!counters_) return outOfMemory(kCounterBytes);
  if (auto failure = device_->clear(counters_, kCounterBytes)) return failure;
  DevicePointer error = device_->allocate(sizeof(ErrorWord));
  if (!error) return outOfMemory(sizeof(ErrorWord));
  error_ = error;
  return device_->clear(error_, sizeof(ErrorWord));
}

CudaTarget::PreparedKernel CudaTarget::generate(const KernelEntry& entry, const lcu::Program& program,
                                                std::vector<lcu::VarId> shortArrays,
                                                codegen::cuda::Places places) const {
  PreparedKernel kernel;
  kernel.places = places;
  codegen::cuda::CudaOptions options = options_;
  options.shortArrays = std::move(shortArrays);
  kernel.text =
      codegen::cuda::generateKernel(*entry.kernel, program, codegen::cuda::entryOf(*entry.kernel), options);
  kernel.shortArrays = std::move(options.shortArrays);
  std::unordered_map<lcu::VarId, uint32_t> between;
  auto place = [&](lcu::VarId var) -> Origin {
    if (const KernelOutput* outer = entry.info.output(var))
      return {Origin::Of::Output, static_cast<uint32_t>(outer - entry.info.outputs.data())};
    return {Origin::Of::Between, between.try_emplace(var, between.size()).first->second};
  };
  const auto preparePass = [&](const CudaPass& pass) {
    PreparedPass prepared;
    prepared.source = codegen::cuda::sourceOf(pass, places);
    for (const auto& p : pass.info.parameters) {
      const auto* outer = entry.info.parameter(p.kind, p.var);
      prepared.parameters.push_back(
          outer ? Origin{Origin::Of::Argument, static_cast<uint32_t>(outer - entry.info.parameters.data())}
                : place(p.var));
    }
    for (const KernelOutput& o : pass.info.outputs) prepared.outputs.push_back(place(o.var));
    const size_t fixed = 2 + (pass.segmented() ? 2 : 0) + (pass.findsBegins() ? 1 : 0) + pass.ranked.size();
    prepared.arguments = ArgumentBlock(fixed + prepared.parameters.size() + prepared.outputs.size());
    return prepared;
  };
  for (const CudaPass& pass : kernel.text.passes) {
    kernel.passes.push_back(preparePass(pass));
    for (const auto& alternative : pass.alternatives)
      kernel.passes.back().alternatives.push_back(preparePass(*alternative));
  }
  kernel.between.resize(between.size());
  return kernel;
}

Failure CudaTarget::prepare(const ProgramKernels& program, bool soon) {
  if (auto failure = start()) return failure;
  std::vector<PreparedKernel>& kernels = programs_[&program];
  kernels.clear();
  std::vector<std::string> sources;
  if (!reader_.loaded()) sources.push_back(HostReader::source());
  const auto shortArrays = [this](const KernelEntry& entry) {
    return storesShort() ? entry.shortArrays : std::vector<lcu::VarId>();
  };
  const auto find = [&](PreparedPass& pass) {
    if (const auto known = loaded_.find(pass.source); known != loaded_.end()) {
      pass.loaded = known->second;
    } else {
      sources.push_back(pass.source);
    }
  };
  for (const KernelEntry& entry : program.kernels) {
    for (PreparedPass& pass :
         kernels.emplace_back(generate(entry, *program.program, shortArrays(entry), Places::Short)).passes) {
      find(pass);
      for (PreparedPass& alternative : pass.alternatives) find(alternative);
    }
  }
  using codegen::cuda::needsSupport;
  if (!support_ && std::any_of(kernels.begin(), kernels.end(),
                               [](const PreparedKernel& k) { return needsSupport(k.text); }))
    sources.push_back(codegen::cuda::supportSource());
  constexpr RandomGenerator kUsual = RandomGenerator::Additive;  // the other one is waited for
  if (program.draws && !draws_.loaded(kUsual)) sources.push_back(DeviceDraws::source(kUsual));
  device_->announce(sources, soon);
  return std::nullopt;
}

bool CudaTarget::canLaunch(const ProgramKernels& program) {
  const std::vector<PreparedKernel>& kernels = programs_.at(&program);
  const auto known = [this](const PreparedPass& pass) {
    return pass.loaded || device_->canCompile(pass.source);
  };
  return std::all_of(kernels.begin(), kernels.end(), [&](const PreparedKernel& kernel) {
    return std::all_of(kernel.passes.begin(), kernel.passes.end(), [&](const PreparedPass& pass) {
      return known(pass) && std::all_of(pass.alternatives.begin(), pass.alternatives.end(), known);
    });
  });
}

void CudaTarget::release(const ProgramKernels& program) {
  programs_.erase(&program);
  if (loaded_.size() <= kMostLoaded) return;
  device_->wait();
  std::erase_if(loaded_, [](const auto& entry) { return entry.second.use_count() == 1; });
}

Failure CudaTarget::load(PreparedPass& prepared, const CudaPass& pass) {
  auto [known, isNew] = loaded_.try_emplace(prepared.source);
  if (isNew) {
    auto loaded = std::make_shared<Loaded>();
    if (auto failure = device_->compile(prepared.source, {pass.entry}, loaded->module)) {
      loaded_.erase(known);
      return failure;
    }
    loaded->function = loaded->module->function(pass.entry);
    loaded->resources = loaded->module->resources(loaded->function, pass.shape.threads);
    known->second = std::move(loaded);
  }
  prepared.loaded = known->second;
  return std::nullopt;
}

Failure CudaTarget::loadSupport() {
  if (support_) return std::nullopt;
  const std::vector<std::string> entries = {
      "kelpie_starts", "kelpie_rank1", "kelpie_rank2",      "kelpie_rank4", "kelpie_fill1",
      "kelpie_fill4",  "kelpie_fill8", "kelpie_interleave", "kelpie_widen", "kelpie_shorten"};
  if (auto failure = device_->compile(codegen::cuda::supportSource(), entries, support_)) return failure;
  starts_ = support_->function("kelpie_starts");
  rank1_ = support_->function("kelpie_rank1");
  rank2_ = support_->function("kelpie_rank2");
  rank4_ = support_->function("kelpie_rank4");
  fill1_ = support_->function("kelpie_fill1");
  fill4_ = support_->function("kelpie_fill4");
  fill8_ = support_->function("kelpie_fill8");
  interleave_ = support_->function("kelpie_interleave");
  widen_ = support_->function("kelpie_widen");
  shorten_ = support_->function("kelpie_shorten");
  return std::nullopt;
}

TargetStatistics CudaTarget::statistics() const {
  TargetStatistics statistics = statistics_;
  statistics.compiler = device_->compilerStatistics();
  return statistics;
}

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
  for (size_t number = 0; number < kernel.passes.size(); ++number) {
    const CudaPass* pass = nullptr;
    PreparedPass& prepared = chosen(request, kernel, number, pass);
    if (!prepared.loaded)
      if (auto failure = load(prepared, *pass)) return failure;
  }
  if (kernel.text.calls && !stackReserved_) {
    stackReserved_ = true;
    if (auto failure = device_->reserveStack(codegen::cuda::kStackBytes)) return failure;
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
  if (auto failure = evaluateOnHost(request, *device_, allocations_, error)) return failure;
  if (!error) return std::nullopt;
  word = {launches_, 0, 0, error->site, {error->payload0, error->payload1}, 0};
  return device_->upload(error_, &word, sizeof word);
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

Failure CudaTarget::interleave(const LaunchRequest& request, const PreparedPass& pass,
                               const std::vector<uint32_t>& columns, DevicePointer& records) {
  constexpr int64_t kMostForElement = 2;  // of more, what is put side by side may never be looked at
  RecordColumns arrays{};
  int64_t count = 0;
  for (size_t k = 0; k < columns.size(); ++k) {
    const Origin& origin = pass.parameters[columns[k]];
    if (origin.of != Origin::Of::Argument || origin.index >= request.lengths.size()) return std::nullopt;
    const int64_t length = request.lengths[origin.index];
    count = k == 0 ? length : std::min(count, length);
    arrays.column[k] = request.arguments[origin.index].pointer;
  }
  const auto width = static_cast<int64_t>(columns.size()), stride = (width + 1) / 2 * 2;
  const size_t bytes = static_cast<size_t>(count * stride) * sizeof(uint64_t);
  if (count == 0 || static_cast<int64_t>(bytes) < options_.recordBytes ||
      count / kMostForElement > request.extents.elements)
    return std::nullopt;
  DevicePointer place = request.scratch->take(bytes);
  if (!place) return std::nullopt;
  if (auto failure = loadSupport()) return failure;
  ArgumentBlock arguments(5);
  arguments.set(0, arrays);
  arguments.set(1, count);
  arguments.set(2, width);
  arguments.set(3, stride);
  arguments.set(4, place);
  records = place;
  return device_->launch(interleave_, std::min<int64_t>((count + 255) / 256, 4096), 256,
                         arguments.addresses());
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

  for (size_t k = 0; k < prepared.outputs.size(); ++k) {
    const Origin& place = prepared.outputs[k];
    const KernelOutput& o = pass.info.outputs[k];
    if (place.of == Origin::Of::Output && o.extent == codegen::ExtentKind::Target) {
      if (auto failure = fillPermuted(request, pass, o.var, request.outputs[place.index])) return failure;
    }
  }
  if (!pass.needsLaunch && extents.elements == 0 && (!pass.segmented() || extents.segments == 0))
    return std::nullopt;

  LaunchWord word{launches_,
                  error_,
                  counters_,
                  nullptr,
                  nullptr,
                  pass.tiles(extentsOf(request, prepared, pass)),
                  0,
                  static_cast<int32_t>(pass.together(extents)),
                  request.counted,
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

  for (size_t k = 0; k < pass.records.size(); ++k)
    if (auto failure = interleave(request, prepared, pass.records[k], word.records[k])) return failure;

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

Failure CudaTarget::synchronise(std::optional<DeviceError>& error) { return read({}, error); }

Failure CudaTarget::read(std::span<const HostRead> reads, std::optional<DeviceError>& error) {
  error.reset();
  ErrorWord word{};
  reads_.assign(reads.begin(), reads.end());
  if (error_) reads_.push_back({&word, error_, sizeof word});
  if (auto failure = reader_.read(reads_)) return failure;
  if (word.launch != 0) {
    error = DeviceError{word.site, word.payload[0], word.payload[1]};
  } else {
    cleanAt_ = launches_;
  }
  return std::nullopt;
}

Failure CudaTarget::foretell(DevicePointer condition, bool expected, uint64_t& number) {
  return board_.foretell(condition, expected, error_, ++launches_, statistics_.launches, number);
}
Failure CudaTarget::outcomeOf(uint64_t number, bool wait, Outcome& outcome) {
  return board_.outcomeOf(number, wait, outcome);
}
void CudaTarget::takeBack(uint64_t number) {
  statistics_.launches = board_.launchesBefore(number);
  Outcome outcome = Outcome::Open;
  if (!board_.outcomeOf(number, false, outcome) && outcome == Outcome::Otherwise) clearError();
}

void CudaTarget::clearError() {
  if (!error_ || cleanAt_ == launches_) return;
  device_->clear(error_, sizeof(ErrorWord));
  cleanAt_ = launches_;
}

}  // namespace kelpie::runtime::cuda

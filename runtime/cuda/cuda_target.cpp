#include "runtime/cuda/cuda_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/diagnostic.h"
#include "runtime/cuda/launch_words.h"

namespace kelpie::runtime::cuda {

using codegen::KernelOutput;
using codegen::cuda::CudaPass;
using codegen::cuda::Places;

namespace {

/// Launches that are timed before the device is asked for their times.
constexpr int kMostMarked = 4096;

/// Draws that the host makes in less time than their kernel takes to compile.
constexpr int64_t kFewDraws = int64_t{1} << 18;

/// Modules that are kept for later programs.
constexpr size_t kMostLoaded = 1024;

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
Failure CudaTarget::grade(const GradeRequest& given) {
  GradeRequest request = given;
  request.failure = error_;
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
  if (count <= kFewDraws && !timing_ && !draws_.isReady(stream.generator())) {
    ++statistics_.evaluated;
    return draws_.drawOnHost(stream, type, to, count);
  }
  if (auto failure = draws_.load(stream.generator())) return failure;
  ++statistics_.launches;
  return timed([&] { return draws_.draw(stream, type, to, count); });
}

Failure CudaTarget::timed(const std::function<Failure()>& work) {
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
  // Small, and many launches are waited for by it.
  if (!reader_.isReady()) device_->announce({HostReader::source()}, true);
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
  const std::vector<std::string> entries = {"kelpie_starts", "kelpie_rank1",      "kelpie_rank2",
                                            "kelpie_rank4",  "kelpie_fill1",      "kelpie_fill4",
                                            "kelpie_fill8",  "kelpie_interleave", "kelpie_interleave_scattered",
                                            "kelpie_widen",  "kelpie_shorten"};
  if (auto failure = device_->compile(codegen::cuda::supportSource(), entries, support_)) return failure;
  starts_ = support_->function("kelpie_starts");
  rank1_ = support_->function("kelpie_rank1");
  rank2_ = support_->function("kelpie_rank2");
  rank4_ = support_->function("kelpie_rank4");
  fill1_ = support_->function("kelpie_fill1");
  fill4_ = support_->function("kelpie_fill4");
  fill8_ = support_->function("kelpie_fill8");
  interleave_ = support_->function("kelpie_interleave");
  interleaveScattered_ = support_->function("kelpie_interleave_scattered");
  widen_ = support_->function("kelpie_widen");
  shorten_ = support_->function("kelpie_shorten");
  return std::nullopt;
}

TargetStatistics CudaTarget::statistics() const {
  TargetStatistics statistics = statistics_;
  statistics.compiler = device_->compilerStatistics();
  return statistics;
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

#include "runtime/thunk_sampler.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_set>

#include "codegen/expression_schedule.h"

namespace kelpie::runtime {

using codegen::ParameterKind;

namespace {

constexpr std::chrono::milliseconds kMostTime(300);  ///< for one launch

/// The memory of a target as far as it is read. What many neighbours read is fetched some way ahead, the rest
/// piece by piece, many at once.
class RemoteArrays final : public SampledMemory {
 public:
  explicit RemoteArrays(Target& target) : target_(target) {}
  ~RemoteArrays() override {
    for (const auto& [end, array] : arrays_) munmap(array.begin, array.bytes);
  }
  RemoteArrays(const RemoteArrays&) = delete;
  RemoteArrays& operator=(const RemoteArrays&) = delete;

  /// Where the host will find it; null: nowhere.
  DevicePointer add(DevicePointer remote, size_t bytes) {
    void* memory = mmap(nullptr, bytes + kPiece, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* begin = static_cast<std::byte*>(memory);
    arrays_[begin + bytes + kPiece] = {begin, static_cast<std::byte*>(remote), bytes + kPiece, bytes, {}, {}};
    return begin;
  }

  void need(const std::byte* address) override {
    const auto [array, first] = placeOf(address);
    if (!array || array->fetched.contains(first)) return;
    size_t end = first;
    while (end < first + kAhead && end < array->pieces() && array->fetched.insert(end).second) ++end;
    const size_t from = first * kPiece;
    failed_ |= target_
                   .download(array->begin + from, array->remote + from,
                             std::min(end * kPiece, array->remoteBytes) - from)
                   .has_value();
  }

  bool holds(const std::byte* address) override {
    const auto [array, piece] = placeOf(address);
    if (!array || array->fetched.contains(piece)) return true;
    if (array->noted.insert(piece).second) {
      const size_t from = piece * kPiece;
      noted_.push_back(
          {array->begin + from, array->remote + from, std::min(kPiece, array->remoteBytes - from)});
    }
    return false;
  }

  void fetch() override {
    for (size_t k = 0; k < noted_.size(); k += kAtOnce) {
      std::optional<DeviceError> error;
      const auto some = std::span(noted_).subspan(k, std::min(kAtOnce, noted_.size() - k));
      failed_ |= target_.read(some, error).has_value() || error;
    }
    noted_.clear();
    for (auto& [end, array] : arrays_) array.fetched.merge(array.noted);
    for (auto& [end, array] : arrays_) array.noted.clear();
  }
  bool failed() const { return failed_; }

 private:
  static constexpr size_t kPiece = 128;    ///< no element lies across two
  static constexpr size_t kAhead = 32;     ///< pieces fetched together
  static constexpr size_t kAtOnce = 2000;  ///< pieces read in one wait: what a target has room for
  struct Array {
    std::byte *begin, *remote;
    size_t bytes, remoteBytes;
    std::unordered_set<size_t> fetched, noted;
    size_t pieces() const { return (remoteBytes + kPiece - 1) / kPiece; }
  };
  struct Place {
    Array* array;  ///< null: a cell, or nothing of ours; nothing is to be fetched
    size_t piece;
  };
  Place placeOf(const std::byte* address) {
    const auto found = arrays_.upper_bound(address);
    if (found == arrays_.end() || address < found->second.begin) return {nullptr, 0};
    const size_t piece = static_cast<size_t>(address - found->second.begin) / kPiece;
    return {piece < found->second.pieces() ? &found->second : nullptr, piece};
  }

  Target& target_;
  std::map<const std::byte*, Array> arrays_;  ///< by their end
  std::vector<HostRead> noted_;
  bool failed_ = false;
};

/// Whether a sample of the thunks tells anything.
bool tells(const std::vector<lcu::ExprRef>& thunks) {
  const codegen::Schedule schedule = codegen::scheduleExpressions(thunks);
  for (size_t b = 0; b < schedule.blocks.size(); ++b) {
    for (const codegen::ScheduleStep& step : schedule.blocks[b].steps)
      if (b > 0 || (step.node->kind == lcu::ExprKind::Load && !codegen::loadsInOrder(step.node))) return true;
  }
  return false;
}

/// Whether a launch, the first being 1, is looked at: at the beginning all of them, as what an iteration
/// works on changes most there (pointers that jump), later two of each doubling.
bool isSampled(uint64_t launch) {
  return launch <= 8 || std::has_single_bit(launch) || (launch % 3 == 0 && std::has_single_bit(launch / 3));
}

bool tells(const lcu::Kernel& kernel) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(), [](const lcu::Soac& soac) {
    return soac.kind == lcu::SoacKind::Permute || tells(codegen::eagerThunks(soac)) ||
           tells(codegen::lateThunks(soac));
  });
}

}  // namespace

void ThunkSampler::sample(const LaunchRequest& request, const std::vector<size_t>& bytes) {
  known_.resize(plan_.kernels.kernels.size());
  Known& known = known_[request.kernel];
  if (!known.looked) {
    known.looked = true;
    known.telling = tells(*plan_.kernels.kernels[request.kernel].kernel);
  }
  if (!known.telling) return;
  const double elements = static_cast<double>(std::max<int64_t>(request.extents.elements, 1));
  if (isSampled(++known.launches)) {
    codegen::ThunkSample sample = look(request, bytes, known);
    if (!sample.empty()) {
      known.latest = std::move(sample);
      known.elements = elements;
    }
  }
  if (!known.latest.empty())
    context_.statistics.kernels[request.kernel].sample.add(known.latest, elements / known.elements);
}

codegen::ThunkSample ThunkSampler::look(const LaunchRequest& request, const std::vector<size_t>& bytes,
                                        Known& known) {
  std::optional<DeviceError> error;
  if (context_.target.synchronise(error) || error) return {};  // memory need not be set
  const KernelEntry& entry = plan_.kernels.kernels[request.kernel];
  if (!known.code) known.code = std::make_unique<KernelCode>(entry);
  const codegen::Streams streams = context_.target.streams(request);
  if (context_.target.hostAddressable())
    return sampleThunks(*known.code, request, bytes, nullptr, streams, kMostTime);

  std::vector<KernelArgument> arguments(request.arguments.begin(), request.arguments.end());
  RemoteArrays remote(context_.target);
  for (size_t k = 0; k < arguments.size(); ++k) {
    const codegen::KernelParameter& parameter = entry.info.parameters[k];
    const bool array = parameter.kind == ParameterKind::Array;
    if (!array && parameter.kind != ParameterKind::Cell) continue;
    arguments[k].pointer =
        remote.add(arguments[k].pointer, array ? bytes[k] : static_cast<size_t>(sizeOf(parameter.type)));
    if (!arguments[k].pointer) return {};
    if (!array) remote.need(static_cast<const std::byte*>(arguments[k].pointer));
  }
  LaunchRequest onHost = request;
  onHost.arguments = arguments;
  codegen::ThunkSample sample = sampleThunks(*known.code, onHost, bytes, &remote, streams, kMostTime);
  return remote.failed() ? codegen::ThunkSample() : sample;
}

}  // namespace kelpie::runtime

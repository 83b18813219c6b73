#include "runtime/thunk_sampler.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <map>

#include "codegen/expression_schedule.h"
#include "codegen/integer_division.h"

namespace kelpie::runtime {

using codegen::ParameterKind;

namespace {

/// The memory of a target as far as it is read, piece by piece, many at once.
class RemoteArrays final : public SampledMemory {
 public:
  explicit RemoteArrays(Target& target) : target_(target) {}
  ~RemoteArrays() override {
    for (const auto& [end, array] : arrays_) munmap(array.begin, array.mapped);
  }
  RemoteArrays(const RemoteArrays&) = delete;
  RemoteArrays& operator=(const RemoteArrays&) = delete;

  /// Where the host will find it; null: nowhere.
  DevicePointer add(DevicePointer remote, size_t bytes) {
    // Pages that nobody touches take no memory, nor do the states of their pieces.
    const size_t pieces = (bytes + kPiece - 1) / kPiece, mapped = (pieces + 1) * kPiece + pieces;
    void* memory =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* begin = static_cast<std::byte*>(memory);
    auto* states = reinterpret_cast<PieceState*>(begin + (pieces + 1) * kPiece);
    arrays_[begin + bytes] = {begin, static_cast<std::byte*>(remote), bytes, mapped, states};
    return begin;
  }

  Presence find(const std::byte* address) override {
    const auto found = arrays_.upper_bound(address);
    if (found == arrays_.end() || address < found->second.begin) return Presence::Nowhere;
    const Array& array = found->second;
    const size_t piece = static_cast<size_t>(address - array.begin) / kPiece;
    if (array.states[piece] == PieceState::Here) return Presence::Here;
    if (array.states[piece] == PieceState::Away) {
      array.states[piece] = PieceState::Noted;
      const size_t from = piece * kPiece;
      noted_.push_back({array.begin + from, array.remote + from, std::min(kPiece, array.bytes - from)});
      states_.push_back(array.states + piece);
    }
    return Presence::Away;
  }
  size_t noted() const override { return noted_.size(); }

  void fetch() override {
    for (size_t k = 0; k < noted_.size(); k += kAtOnce) {
      std::optional<DeviceError> error;
      const auto some = std::span(noted_).subspan(k, std::min(kAtOnce, noted_.size() - k));
      failed_ |= target_.read(some, error).has_value() || error;
    }
    for (PieceState* state : states_) *state = PieceState::Here;
    noted_.clear();
    states_.clear();
  }
  bool failed() const { return failed_; }

 private:
  static constexpr size_t kPiece = 128;    ///< no element lies across two
  static constexpr size_t kAtOnce = 2000;  ///< pieces read in one wait: what a target has room for
  enum class PieceState : uint8_t { Away, Noted, Here };
  struct Array {
    std::byte *begin, *remote;
    size_t bytes, mapped;
    PieceState* states;  ///< by piece
  };

  Target& target_;
  std::map<const std::byte*, Array> arrays_;  ///< by their end
  std::vector<HostRead> noted_;
  std::vector<PieceState*> states_;  ///< of those
  bool failed_ = false;
};

/// Whether a sample of the thunks tells anything.
bool tells(const std::vector<lcu::ExprRef>& thunks) {
  const codegen::Schedule schedule = codegen::scheduleExpressions(thunks);
  for (size_t b = 0; b < schedule.blocks.size(); ++b) {
    for (const codegen::ScheduleStep& step : schedule.blocks[b].steps) {
      const bool gathers = step.node->kind == lcu::ExprKind::Load && !codegen::loadsInOrder(step.node);
      if (b > 0 || gathers || codegen::dividesByWords(step.node)) return true;
    }
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
    const auto begin = std::chrono::steady_clock::now();
    codegen::ThunkSample sample = look(request, bytes, known);
    const auto spent = std::chrono::steady_clock::now() - begin;
    ++known.sampled;
    known.spent += spent;
    spent_ += spent;
    if (!sample.empty()) {
      known.latest = std::move(sample);
      known.elements = elements;
    }
  }
  if (!known.latest.empty())
    context_.statistics.kernels[request.kernel].sample.add(known.latest, elements / known.elements);
}

/// For the next launch.
std::chrono::milliseconds ThunkSampler::time(const Known& known, const std::string& kernel) const {
  if (!context_.options.earlier) return timeBySpent();
  // All samples of all programs take as long as so many launches of which nothing is known; those of kernels
  // that did not run before, a tenth of one.
  constexpr double kAll = 24, kNew = 0.1;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const Milliseconds most = context_.options.sampleTime;
  const auto earlier = context_.options.earlier->find(kernel);
  Milliseconds left = kNew * most;
  if (earlier != context_.options.earlier->end()) {
    uint64_t launches = 0;  // that will be looked at
    for (uint64_t k = 1; k <= earlier->second.launches; ++k) launches += isSampled(k) ? 1 : 0;
    const double part =
        static_cast<double>(known.sampled + 1) / static_cast<double>(std::max(launches, known.sampled + 1));
    left = kAll * earlier->second.share * part * most - known.spent;
  }
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left),
                  std::min(context_.options.sampleTime, std::chrono::milliseconds(1)));
}

/// Those of a program of many kernels get less and less, so that all of them together take no longer than 16
/// do.
std::chrono::milliseconds ThunkSampler::timeBySpent() const {
  const std::chrono::milliseconds most = context_.options.sampleTime;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(16 * most - spent_);
  return std::clamp(left / 8, std::min(most, std::chrono::milliseconds(1)), most);
}

codegen::ThunkSample ThunkSampler::look(const LaunchRequest& request, const std::vector<size_t>& bytes,
                                        Known& known) {
  std::optional<DeviceError> error;
  if (context_.target.synchronise(error) || error) return {};  // memory need not be set
  const KernelEntry& entry = plan_.kernels.kernels[request.kernel];
  if (!known.code) known.code = std::make_unique<KernelCode>(entry);
  const codegen::Streams streams = context_.target.streams(request);
  const std::chrono::milliseconds time = this->time(known, entry.kernel->name);
  if (context_.target.hostAddressable())
    return sampleThunks(*known.code, request, bytes, nullptr, streams, time);

  std::vector<KernelArgument> arguments(request.arguments.begin(), request.arguments.end());
  RemoteArrays remote(context_.target);
  for (size_t k = 0; k < arguments.size(); ++k) {
    const codegen::KernelParameter& parameter = entry.info.parameters[k];
    const bool array = parameter.kind == ParameterKind::Array;
    if (!array && parameter.kind != ParameterKind::Cell) continue;
    arguments[k].pointer =
        remote.add(arguments[k].pointer, array ? bytes[k] : static_cast<size_t>(sizeOf(parameter.type)));
    if (!arguments[k].pointer) return {};
    if (!array) remote.find(static_cast<const std::byte*>(arguments[k].pointer));
  }
  remote.fetch();  // the cells
  LaunchRequest onHost = request;
  onHost.arguments = arguments;
  codegen::ThunkSample sample = sampleThunks(*known.code, onHost, bytes, &remote, streams, time);
  return remote.failed() ? codegen::ThunkSample() : sample;
}

}  // namespace kelpie::runtime

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

/// The memory of a target as far as it is read, page by page.
class RemoteArrays {
 public:
  explicit RemoteArrays(Target& target) : target_(target) {}
  ~RemoteArrays() {
    for (const auto& [end, array] : arrays_) munmap(array.begin, array.bytes);
  }
  RemoteArrays(const RemoteArrays&) = delete;
  RemoteArrays& operator=(const RemoteArrays&) = delete;

  /// Where the host will find it; null: nowhere.
  DevicePointer add(DevicePointer remote, size_t bytes) {
    bytes += sizeof(int64_t);
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* begin = static_cast<std::byte*>(memory);
    arrays_[begin + bytes] = {begin, static_cast<std::byte*>(remote), bytes, bytes - sizeof(int64_t), {}};
    return begin;
  }

  void fetch(const std::byte* address) {
    const auto found = arrays_.upper_bound(address);
    if (found == arrays_.end() || address < found->second.begin) return;  // a cell, or nothing of ours
    Array& array = found->second;
    const size_t page = static_cast<size_t>(address - array.begin) / kPage;
    if (!array.fetched.insert(page).second || page * kPage >= array.remoteBytes) return;
    const size_t size = std::min(kPage, array.remoteBytes - page * kPage);
    failed_ |= target_.download(array.begin + page * kPage, array.remote + page * kPage, size).has_value();
  }
  bool failed() const { return failed_; }

 private:
  static constexpr size_t kPage = 4096;  ///< no element lies across two
  struct Array {
    std::byte *begin, *remote;
    size_t bytes, remoteBytes;
    std::unordered_set<size_t> fetched;
  };
  Target& target_;
  std::map<const std::byte*, Array> arrays_;  ///< by their end
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
  const KernelEntry& entry = plan_.kernels.kernels[request.kernel];
  if (!known.looked) {
    known.looked = true;
    known.telling = tells(*entry.kernel);
  }
  if (!known.telling || !std::has_single_bit(++known.launches)) return;
  std::optional<DeviceError> error;
  if (context_.target.synchronise(error) || error) return;  // memory need not be set

  std::vector<KernelArgument> arguments(request.arguments.begin(), request.arguments.end());
  RemoteArrays remote(context_.target);
  const bool near = context_.target.hostAddressable();
  for (size_t k = 0; k < arguments.size() && !near; ++k) {
    const codegen::KernelParameter& parameter = entry.info.parameters[k];
    const bool array = parameter.kind == ParameterKind::Array;
    if (!array && parameter.kind != ParameterKind::Cell) continue;
    arguments[k].pointer =
        remote.add(arguments[k].pointer, array ? bytes[k] : static_cast<size_t>(sizeOf(parameter.type)));
    if (!arguments[k].pointer) return;
    if (!array) remote.fetch(static_cast<const std::byte*>(arguments[k].pointer));
  }
  if (!known.code) known.code = std::make_unique<KernelCode>(entry);
  LaunchRequest onHost = request;
  onHost.arguments = arguments;
  const auto deadline = std::chrono::steady_clock::now() + kMostTime;
  const BeforeReading beforeReading = [&](const std::byte* address) {
    if (!near) remote.fetch(address);
  };
  const codegen::ThunkSample sample = sampleThunks(*known.code, onHost, beforeReading, deadline);
  if (!remote.failed() && !sample.empty()) context_.statistics.kernels[request.kernel].sample.add(sample);
}

}  // namespace kelpie::runtime

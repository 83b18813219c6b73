#include "runtime/cuda/host_evaluation.h"

#include <algorithm>
#include <cstring>

#include "codegen/short_arrays.h"
#include "ir/diagnostic.h"
#include "runtime/interp/kernel_evaluator.h"

namespace kelpie::runtime::cuda {
namespace {

/// Of a launch that is worth being evaluated, estimated; most kernels take a hundred times as long to
/// compile.
constexpr double kMostSeconds = 0.005;
/// What it reads and writes, which goes to the host and back.
constexpr size_t kMostBytes = size_t{1} << 20;
/// What launches of one kernel may take before its code is asked for, and before it is waited for.
constexpr std::chrono::milliseconds kAskAfter(50), kWaitAfter(400);
/// How often to ask whether code is ready, which looks for a file.
constexpr std::chrono::milliseconds kLookEvery(5);

/// Bytes from `address` to the end of the allocation it is in.
size_t bytesFrom(DevicePointer address, const Allocations& allocations) {
  const auto* from = static_cast<const std::byte*>(address);
  auto next = allocations.upper_bound(from);
  if (next == allocations.begin()) throw InternalError("an array outside of all allocations");
  --next;
  const auto offset = static_cast<size_t>(from - next->first);
  return offset < next->second ? next->second - offset : 0;
}

/// Elements of a short array (codegen/short_arrays.h) as Int64.
std::vector<std::byte> widened(const std::vector<std::byte>& elements) {
  std::vector<std::byte> wide(elements.size() / sizeof(int32_t) * sizeof(int64_t));
  for (size_t k = 0; k < elements.size() / sizeof(int32_t); ++k) {
    int32_t element = 0;
    std::memcpy(&element, elements.data() + k * sizeof element, sizeof element);
    const int64_t same = element;
    std::memcpy(wide.data() + k * sizeof same, &same, sizeof same);
  }
  return wide;
}
/// The other way, in place, of the first `bytes`, which become fewer; false: some element does not fit.
bool shorten(std::vector<std::byte>& elements, size_t& bytes) {
  const size_t count = bytes / sizeof(int64_t);
  bytes = count * sizeof(int32_t);
  for (size_t k = 0; k < count; ++k) {
    int64_t element = 0;
    std::memcpy(&element, elements.data() + k * sizeof element, sizeof element);
    if (element > codegen::kLongestShort) return false;
    const auto same = static_cast<int32_t>(element);
    std::memcpy(elements.data() + k * sizeof same, &same, sizeof same);
  }
  return true;
}

class HostScratch final : public Scratch {
 public:
  DevicePointer take(size_t bytes) override { return parts_.emplace_back(bytes).data(); }

 private:
  std::vector<std::vector<std::byte>> parts_;
};

/// Whether all operations of a kernel are exact, or rounded in one way everywhere, and folded in an order
/// that does not matter.
bool givesSameBits(const lcu::Kernel& kernel) {
  const auto differs = [](lcu::ExprRef e) {
    return e->kind == lcu::ExprKind::Op && e->op >= ScalarOp::Exp && e->op <= ScalarOp::Tanh;
  };
  return std::none_of(kernel.bindings.begin(), kernel.bindings.end(), [&](const lcu::Soac& s) {
    const bool folds = s.kind == lcu::SoacKind::Reduce || s.kind == lcu::SoacKind::Scan;
    return (folds &&
            std::any_of(s.pull.begin(), s.pull.end(), [](lcu::ExprRef e) { return isFloat(e->type); })) ||
           lcu::anyNode(codegen::thunksOf(s), differs) || lcu::anyNode(s.combine.result, differs);
  });
}

}  // namespace

HostKernel::HostKernel(const KernelEntry& entry)
    : entry_(entry),
      code_(entry),
      exact_(givesSameBits(*entry.kernel)),
      secondsOfElement_(secondsOfElement(*entry.kernel)) {}

bool HostKernel::isSmall(const LaunchRequest& request, const Allocations& allocations) const {
  const auto elements = static_cast<double>(request.extents.elements + request.extents.segments);
  if (secondsOfElement_ * elements > kMostSeconds) return false;
  size_t bytes = 0;
  for (size_t k = 0; k < request.arguments.size(); ++k)
    if (entry_.info.parameters[k].kind == codegen::ParameterKind::Array)
      bytes += bytesFrom(request.arguments[k].pointer, allocations);
  for (const codegen::KernelOutput& o : entry_.info.outputs)
    bytes += static_cast<size_t>(codegen::capacity(o, request.extents)) * static_cast<size_t>(sizeOf(o.type));
  return bytes <= kMostBytes;
}

Failure HostKernel::evaluate(const LaunchRequest& request, Device& device, const Allocations& allocations,
                             std::optional<DeviceError>& error, std::optional<Deadline> deadline,
                             Postpone postpone) const {
  const auto& info = entry_.info;
  std::vector<std::vector<std::byte>> read(info.parameters.size()), written(info.outputs.size());
  std::vector<KernelArgument> arguments(request.arguments.begin(), request.arguments.end());
  const auto isShort = [&](lcu::VarId array) {
    return std::binary_search(request.shortArrays.begin(), request.shortArrays.end(), array);
  };
  std::vector<HostRead> reads;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const auto& parameter = info.parameters[k];
    const bool array = parameter.kind == codegen::ParameterKind::Array;
    if (!array && parameter.kind != codegen::ParameterKind::Cell) continue;
    const DevicePointer from = arguments[k].pointer;
    const size_t bytes = array ? bytesFrom(from, allocations) : static_cast<size_t>(sizeOf(parameter.type));
    read[k].resize(bytes + sizeof(int64_t));
    reads.push_back({read[k].data(), from, bytes});
  }
  for (size_t k = 0; k < info.outputs.size(); ++k) {
    const auto count = static_cast<size_t>(codegen::capacity(info.outputs[k], request.extents));
    written[k].resize(count * static_cast<size_t>(sizeOf(info.outputs[k].type)) + sizeof(int64_t));
    const size_t bytes = written[k].size() - sizeof(int64_t);
    if (info.outputs[k].scattered && bytes > 0)
      reads.push_back({written[k].data(), request.outputs[k], bytes});
  }
  LaunchRequest onHost = request;
  onHost.counted = nullptr;
  if (request.counted) reads.push_back({&onHost.extents.elements, request.counted, sizeof(int64_t)});
  if (auto failure = device.read(reads)) return failure;

  for (size_t k = 0; k < arguments.size(); ++k) {
    const auto& parameter = info.parameters[k];
    const bool array = parameter.kind == codegen::ParameterKind::Array;
    if (!array && parameter.kind != codegen::ParameterKind::Cell) continue;
    if (array && isShort(parameter.var)) read[k] = widened(read[k]);
    arguments[k].pointer = read[k].data();
  }
  std::vector<DevicePointer> outputs;
  for (auto& output : written) outputs.push_back(output.data());
  HostScratch scratch;
  onHost.arguments = arguments;
  onHost.outputs = outputs;
  onHost.scratch = &scratch;
  LaunchWork work;
  error = evaluateKernel(code_, onHost, work, deadline, std::move(postpone));
  for (size_t k = 0; k < outputs.size() && !error; ++k) {
    size_t bytes = written[k].size() - sizeof(int64_t);
    if (isShort(info.outputs[k].var) && !shorten(written[k], bytes)) {
      error = DeviceError{codegen::kTooLongSite, 0, 0};
      break;
    }
    if (auto failure = device.upload(request.outputs[k], outputs[k], bytes)) return failure;
  }
  return std::nullopt;
}

bool Meanwhile::isReady(Device& device, const std::vector<const std::string*>& missing) {
  const auto now = std::chrono::steady_clock::now();
  if (ready_ || now - lastLook_ < kLookEvery) return ready_;
  lastLook_ = now;
  ready_ = std::all_of(missing.begin(), missing.end(),
                       [&](const std::string* source) { return device.isReady(*source); });
  return ready_;
}

void Meanwhile::askFor(Device& device, const std::vector<const std::string*>& missing,
                       std::chrono::steady_clock::duration spent) {
  if (urgent_ || spent < kAskAfter) return;
  urgent_ = true;
  for (const std::string* source : missing) device.hurry(*source);
}

bool Meanwhile::suits(const LaunchRequest& request, Device& device, const Allocations& allocations,
                      const std::vector<const std::string*>& missing) {
  if (missing.empty() || spent_ > kWaitAfter || isReady(device, missing)) return false;
  if (!kernel_) kernel_ = std::make_unique<HostKernel>(request.program->kernels.at(request.kernel));
  return kernel_->exact() && kernel_->isSmall(request, allocations);
}

bool Meanwhile::evaluate(const LaunchRequest& request, Device& device, const Allocations& allocations,
                         const std::vector<const std::string*>& missing, std::optional<DeviceError>& error,
                         Failure& failure) {
  const auto begin = std::chrono::steady_clock::now();
  const auto postpone = [&]() -> std::optional<Deadline> {
    if (isReady(device, missing)) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    askFor(device, missing, spent_ + (now - begin));
    return now + kLookEvery;
  };
  bool done = true;
  try {
    failure = kernel_->evaluate(request, device, allocations, error, begin + kLookEvery, postpone);
  } catch (const DeadlinePassed&) {
    done = false;
  }
  spent_ += std::chrono::steady_clock::now() - begin;
  askFor(device, missing, spent_);
  return done;
}

}  // namespace kelpie::runtime::cuda

#include "runtime/cuda/host_evaluation.h"

#include <algorithm>
#include <cstring>

#include "codegen/short_arrays.h"
#include "ir/diagnostic.h"
#include "runtime/interp/kernel_evaluator.h"

namespace kelpie::runtime::cuda {
namespace {

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

}  // namespace

Failure evaluateOnHost(const LaunchRequest& request, Device& device, const Allocations& allocations,
                       std::optional<DeviceError>& error) {
  const KernelEntry& entry = request.program->kernels.at(request.kernel);
  const auto& info = entry.info;
  std::vector<std::vector<std::byte>> read(info.parameters.size()), written(info.outputs.size());
  std::vector<KernelArgument> arguments(request.arguments.begin(), request.arguments.end());
  const auto isShort = [&](lcu::VarId array) {
    return std::binary_search(request.shortArrays.begin(), request.shortArrays.end(), array);
  };
  for (size_t k = 0; k < arguments.size(); ++k) {
    const auto& parameter = info.parameters[k];
    const bool array = parameter.kind == codegen::ParameterKind::Array;
    if (!array && parameter.kind != codegen::ParameterKind::Cell) continue;
    const DevicePointer from = arguments[k].pointer;
    const size_t bytes = array ? bytesFrom(from, allocations) : static_cast<size_t>(sizeOf(parameter.type));
    read[k].resize(bytes + sizeof(int64_t));
    if (auto failure = device.download(read[k].data(), from, bytes)) return failure;
    if (array && isShort(parameter.var)) read[k] = widened(read[k]);
    arguments[k].pointer = read[k].data();
  }
  std::vector<DevicePointer> outputs;
  for (size_t k = 0; k < info.outputs.size(); ++k) {
    const auto count = static_cast<size_t>(codegen::capacity(info.outputs[k], request.extents));
    written[k].resize(count * static_cast<size_t>(sizeOf(info.outputs[k].type)) + sizeof(int64_t));
    outputs.push_back(written[k].data());
    const size_t bytes = written[k].size() - sizeof(int64_t);
    if (!info.outputs[k].scattered || bytes == 0) continue;
    if (auto failure = device.download(written[k].data(), request.outputs[k], bytes)) return failure;
  }
  HostScratch scratch;
  LaunchRequest onHost = request;
  onHost.arguments = arguments;
  onHost.outputs = outputs;
  onHost.scratch = &scratch;
  LaunchWork work;
  error = evaluateKernel(KernelCode(entry), onHost, work);
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

}  // namespace kelpie::runtime::cuda

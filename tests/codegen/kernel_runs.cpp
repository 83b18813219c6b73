#include "tests/codegen/kernel_runs.h"

#include <algorithm>
#include <cstring>

namespace kelpie::tests {

using lcu::SoacKind;

namespace {

template <class To, class From>
std::vector<std::byte> converted(const std::vector<std::byte>& elements) {
  std::vector<From> from(elements.size() / sizeof(From));
  std::memcpy(from.data(), elements.data(), from.size() * sizeof(From));
  const std::vector<To> to(from.begin(), from.end());
  std::vector<std::byte> bytes(to.size() * sizeof(To));
  std::memcpy(bytes.data(), to.data(), bytes.size());
  return bytes;
}

}  // namespace

std::vector<lcu::VarId> randomShortArrays(Random& random, const lcu::Kernel& kernel,
                                          const codegen::KernelInfo& info) {
  std::vector<lcu::VarId> arrays;
  if (random() % 2) return arrays;
  for (const auto& p : info.parameters)
    if (p.kind == codegen::ParameterKind::Array && p.type == ScalarType::Int64 && random() % 2)
      arrays.push_back(p.var);
  for (const auto& o : info.outputs) {
    const lcu::Soac& soac = kernel.bindings[o.binding];
    if (soac.kind == SoacKind::Filter && soac.space.segmented() && o.result == 0 && random() % 2)
      arrays.push_back(o.var);
  }
  std::sort(arrays.begin(), arrays.end());
  return arrays;
}

LaunchResult runKernel(runtime::Target& target, const runtime::ProgramKernels& kernels, size_t kernel,
                       const KernelData& data, int64_t spare) {
  LaunchResult result;
  const codegen::KernelInfo& info = kernels.kernels[kernel].info;
  HeldScratch memory(target);
  codegen::LaunchExtents extents = data.extents;
  extents.elements += spare;
  auto note = [&](const runtime::Failure& failure) {
    if (failure && !result.failure) result.failure = failure;
  };
  std::vector<lcu::VarId> shortArrays;
  if (target.storesShort()) shortArrays = kernels.kernels[kernel].shortArrays;
  const auto isShort = [&](lcu::VarId v) {
    return std::binary_search(shortArrays.begin(), shortArrays.end(), v);
  };
  std::vector<runtime::KernelArgument> arguments;
  std::vector<int64_t> lengths;
  for (const auto& p : info.parameters) {
    runtime::KernelArgument argument;
    if (p.kind == codegen::ParameterKind::Scalar) {
      argument.integer = data.scalars.at(p.var).i;
    } else if (p.kind == codegen::ParameterKind::Size) {
      const auto bytes = static_cast<int64_t>(data.arrays.at(p.var).size());
      argument.integer = bytes / sizeOf(kernels.program->vars[p.var].type);
    } else {
      auto bytes = data.arrays.at(p.var);
      if (p.kind == codegen::ParameterKind::Array && isShort(p.var))
        bytes = converted<int32_t, int64_t>(bytes);
      argument.pointer = memory.take(bytes.size());
      note(target.upload(argument.pointer, bytes.data(), bytes.size()));
    }
    arguments.push_back(argument);
    lengths.push_back(p.kind == codegen::ParameterKind::Array
                          ? static_cast<int64_t>(data.arrays.at(p.var).size()) /
                                sizeOf(kernels.program->vars[p.var].type)
                          : 0);
  }
  std::vector<runtime::DevicePointer> outputs;
  std::vector<size_t> sizes;
  for (const auto& o : info.outputs) {
    const int width = isShort(o.var) ? static_cast<int>(sizeof(int32_t)) : sizeOf(o.type);
    sizes.push_back(static_cast<size_t>(codegen::capacity(o, extents) * width));
    outputs.push_back(memory.take(std::max<size_t>(16, sizes.back())));
    std::vector<std::byte> before(sizes.back(), std::byte{0x5a});
    if (o.onto != 0) {
      const auto& base = data.arrays.at(o.onto);
      std::copy_n(base.begin(), std::min(base.size(), before.size()), before.begin());
    }
    note(target.upload(outputs.back(), before.data(), before.size()));
  }
  runtime::LaunchRequest request{&kernels, kernel, extents, arguments, outputs, &memory};
  request.lengths = lengths;
  request.shortArrays = shortArrays;
  if (spare > 0) {
    const runtime::DevicePointer count = memory.take(sizeof(int64_t));
    note(target.upload(count, &data.extents.elements, sizeof(int64_t)));
    request.counted = count;
  }
  note(target.launch(request));
  if (result.failure) return result;
  note(target.synchronise(result.error));
  if (result.error) {
    target.clearError();
    return result;
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    result.outputs.emplace_back(sizes[k]);
    note(target.download(result.outputs.back().data(), outputs[k], sizes[k]));
    if (!isShort(info.outputs[k].var)) continue;
    result.outputs.back() = converted<int64_t, int32_t>(result.outputs.back());
    sizes[k] = result.outputs.back().size();
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const auto& o = info.outputs[k];
    lcu::VarId countVar = 0;
    if (o.count) countVar = *o.count;
    const lcu::Soac& soac = kernels.kernels[kernel].kernel->bindings[o.binding];
    int64_t count = -1;
    for (size_t c = 0; c < outputs.size(); ++c) {
      const auto& other = info.outputs[c];
      bool segmentedFilter = soac.kind == SoacKind::Filter && soac.space.segmented() && o.result > 0 &&
                             other.binding == o.binding && other.result == 0;
      if (!segmentedFilter && (countVar == 0 || other.var != countVar)) continue;
      // The count is the last entry: of a cell the only one, of offsets the number of survivors.
      std::memcpy(&count, result.outputs[c].data() + sizes[c] - sizeof count, sizeof count);
    }
    if (count < 0)
      result.outputs[k].resize(static_cast<size_t>(codegen::capacity(o, data.extents) * sizeOf(o.type)));
    if (count < 0) continue;
    if (o.countsFalse) count = data.extents.elements - count;
    size_t bytes = static_cast<size_t>(count * sizeOf(o.type));
    if (bytes > result.outputs[k].size()) {
      note("a count of " + std::to_string(count) + " is out of range");
      return result;
    }
    result.outputs[k].resize(bytes);
  }
  return result;
}

std::string difference(const LaunchResult& expected, const LaunchResult& got,
                       const codegen::KernelInfo& info) {
  if (expected.failure) return "expected side failed: " + *expected.failure;
  if (got.failure) return *got.failure;
  if (expected.error.has_value() != got.error.has_value())
    return expected.error ? "no error was recorded" : "an error was recorded";
  if (expected.error) {
    const auto &a = *expected.error, &b = *got.error;
    if (a.site == b.site && a.payload0 == b.payload0 && a.payload1 == b.payload1) return "";
    return "errors differ: payloads " + std::to_string(a.payload0) + ", " + std::to_string(a.payload1) +
           " and " + std::to_string(b.payload0) + ", " + std::to_string(b.payload1);
  }
  std::string all;  // of each output the first element that differs
  for (size_t k = 0; k < expected.outputs.size(); ++k) {
    const auto &a = expected.outputs[k], &b = got.outputs[k];
    const auto& o = info.outputs[k];
    if (a.size() != b.size()) {
      all += (all.empty() ? "" : "; ") + o.name + " has " + std::to_string(b.size()) + " bytes instead of " +
             std::to_string(a.size());
      continue;
    }
    const auto size = static_cast<size_t>(sizeOf(o.type));
    size_t at = 0;
    while (at < a.size() && std::memcmp(&a[at], &b[at], size) == 0) at += size;
    if (at >= a.size()) continue;
    auto text = [&](const std::vector<std::byte>& bytes) {
      int64_t i = 0;
      double f = 0;
      float single = 0;
      std::memcpy(&i, &bytes[at], size);
      if (o.type == ScalarType::Float64) std::memcpy(&f, &bytes[at], 8);
      if (o.type == ScalarType::Float32) {
        std::memcpy(&single, &bytes[at], 4);
        f = single;
      }
      return isFloat(o.type) ? std::to_string(f) : std::to_string(i);
    };
    all += (all.empty() ? "" : "; ") + o.name + "[" + std::to_string(at / size) + "] is " + text(b) +
           " instead of " + text(a);
  }
  return all;
}

}  // namespace kelpie::tests

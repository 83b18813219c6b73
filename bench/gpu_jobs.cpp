#include "bench/gpu_jobs.h"

namespace kelpie::bench {

void stop(const std::string& why) {
  std::fprintf(stderr, "gpu benchmark: %s\n", why.c_str());
  std::exit(1);
}
void check(const runtime::Failure& failure) {
  if (failure) stop(*failure);
}
double milliseconds(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

ReusedScratch::~ReusedScratch() {
  for (auto& [bytes, pointer] : held_) target_.deallocate(pointer);
}
runtime::DevicePointer ReusedScratch::take(size_t bytes) {
  if (next_ == held_.size()) held_.emplace_back(bytes, target_.allocate(bytes));
  auto& [size, pointer] = held_[next_++];
  if (size < bytes) {
    target_.deallocate(pointer);
    size = bytes;
    pointer = target_.allocate(bytes);
  }
  return pointer;
}

Bench::~Bench() {
  for (const auto& [name, buffer] : inputs_) target_.deallocate(buffer.pointer);
}

void Bench::forget(const std::string& name) {
  if (auto it = inputs_.find(name); it != inputs_.end()) {
    target_.deallocate(it->second.pointer);
    inputs_.erase(it);
  }
}

runtime::DevicePointer Bench::reserve(const std::string& name, int64_t count, size_t bytes) {
  forget(name);
  runtime::DevicePointer pointer = target_.allocate(std::max<size_t>(16, bytes));
  if (!pointer) stop("out of device memory");
  inputs_[name] = {pointer, count};
  return pointer;
}

std::vector<runtime::KernelArgument> Bench::argumentsOf(const codegen::KernelInfo& info) const {
  std::vector<runtime::KernelArgument> arguments;
  for (const auto& p : info.parameters) {
    const std::string& name = known_.program.vars[p.var].name;
    runtime::KernelArgument argument;
    switch (p.kind) {
      case codegen::ParameterKind::Size:
        argument.integer = inputs_.at(name).count;
        break;
      case codegen::ParameterKind::Scalar:
        argument.integer = scalars_.at(name);
        break;
      default:
        argument.pointer = inputs_.at(name).pointer;
    }
    arguments.push_back(argument);
  }
  return arguments;
}

size_t Bench::widthOf(const runtime::KernelEntry& entry, const codegen::KernelOutput& output) {
  const auto& arrays = entry.shortArrays;
  const bool isShort = std::binary_search(arrays.begin(), arrays.end(), output.var);
  return static_cast<size_t>(sizeOf(isShort ? ScalarType::Int32 : output.type));
}

void Bench::compute(const std::string& name, const std::string& kernel, int64_t elements) {
  const size_t number = known_.number(kernel);
  const runtime::KernelEntry& entry = program_.kernels[number];
  const codegen::KernelInfo& info = entry.info;
  codegen::LaunchExtents extents;
  extents.elements = elements;
  const runtime::DevicePointer output =
      reserve(name, elements, static_cast<size_t>(elements) * widthOf(entry, info.outputs.at(0)));
  scratch_.restart();
  const auto arguments = argumentsOf(info);
  runtime::LaunchRequest request{&program_, number, extents, arguments, {&output, 1}, &scratch_};
  request.shortArrays = entry.shortArrays;
  check(target_.launch(request));
}

void Bench::run(const std::string& job, const std::string& kernel, int64_t elements, int64_t segments,
                double bytes, const Repetitions& repetitions, const Verify& verify) {
  if (!wants(job)) return;
  const size_t number = known_.number(kernel);
  const runtime::KernelEntry& entry = program_.kernels[number];
  const codegen::KernelInfo& info = entry.info;
  codegen::LaunchExtents extents;
  extents.elements = elements;
  extents.segments = segments;
  extents.targets.assign(info.targets.size(), elements);
  for (const auto& p : info.parameters)
    if (p.gathered)
      extents.gatheredBytes += inputs_.at(known_.program.vars[p.var].name).count * sizeOf(p.type);
  const auto arguments = argumentsOf(info);
  std::vector<runtime::DevicePointer> outputs;
  std::vector<size_t> sizes;
  for (const auto& o : info.outputs) {
    sizes.push_back(static_cast<size_t>(codegen::capacity(o, extents)) * widthOf(entry, o));
    outputs.push_back(target_.allocate(std::max<size_t>(16, sizes.back())));
    if (!outputs.back()) stop("out of device memory");
  }
  auto once = [&] {
    scratch_.restart();
    runtime::LaunchRequest request{&program_, number, extents, arguments, outputs, &scratch_};
    request.shortArrays = entry.shortArrays;
    check(target_.launch(request));
  };
  std::optional<runtime::DeviceError> error;
  once();
  once();
  check(target_.synchronise(error));
  const int launches = repetitions.launches;
  std::vector<double> times;
  double hostTime = 0;
  for (int batch = 0; batch < repetitions.batches; ++batch) {
    auto begin = Clock::now();
    for (int k = 0; k < launches; ++k) once();
    auto issued = Clock::now();
    check(target_.synchronise(error));
    times.push_back(milliseconds(begin, Clock::now()) / launches);
    hostTime = milliseconds(begin, issued) / launches;
  }
  std::sort(times.begin(), times.end());
  std::string wrong = error ? "an error was recorded" : "";
  if (verify && wrong.empty()) {
    std::vector<std::vector<std::byte>> results;
    for (size_t k = 0; k < outputs.size(); ++k) {
      results.emplace_back(sizes[k]);
      check(target_.download(results.back().data(), outputs[k], sizes[k]));
    }
    wrong = verify(results);
  }
  for (auto p : outputs) target_.deallocate(p);
  std::printf(
      "{\"job\": \"%s\", \"who\": \"kelpie\", \"ms\": %.5f, \"bytes\": %.0f, \"issue_ms\": %.5f, "
      "\"wrong\": \"%s\"}\n",
      job.c_str(), times[times.size() / 2], bytes, hostTime, wrong.c_str());
  std::fflush(stdout);
}

}  // namespace kelpie::bench

#include "runtime/host_target.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "runtime/host_grade.h"
#include "runtime/host_memory.h"

namespace kelpie::runtime {

HostTarget::HostTarget(size_t memoryLimit, int threads)
    : memoryLimit_(memoryLimit != 0 ? memoryLimit : machineMemory() / 4 * 3), team_(threads) {}

DevicePointer HostTarget::allocate(size_t bytes) {
  const size_t rounded = (std::max<size_t>(bytes, 16) + 255) / 256 * 256;
  if (rounded < bytes) return nullptr;
  return std::aligned_alloc(256, rounded);
}
void HostTarget::deallocate(DevicePointer pointer) { std::free(pointer); }

Failure HostTarget::upload(DevicePointer to, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return std::nullopt;
}
Failure HostTarget::download(void* to, DevicePointer from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return std::nullopt;
}
Failure HostTarget::copy(DevicePointer to, DevicePointer from, size_t bytes) {
  if (bytes != 0) std::memmove(to, from, bytes);
  return std::nullopt;
}

Failure HostTarget::prepare(const ProgramKernels& program) {
  auto& code = code_[&program];
  code.clear();
  code.resize(program.kernels.size());
  return std::nullopt;
}
void HostTarget::release(const ProgramKernels& program) { code_.erase(&program); }

Failure HostTarget::launch(const LaunchRequest& request) {
  work_ = {};
  counted_ = false;
  Failure failure;
  double seconds = 0;
  if (!error_) {
    ++statistics_.launches;
    const auto start = std::chrono::steady_clock::now();
    failure = execute(request, error_);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    statistics_.deviceSeconds += seconds;
  }
  if (timing_) seconds_.push_back(seconds);
  return failure;
}

void HostTarget::interpret(const LaunchRequest& request, std::optional<DeviceError>& error,
                           std::optional<Deadline> deadline, Postpone postpone) {
  auto& code = code_.at(request.program).at(request.kernel);
  if (!code) code = std::make_unique<KernelCode>(request.program->kernels.at(request.kernel));
  work_ = {};  // an evaluation may have been given up before
  error = evaluateKernel(*code, request, work_, deadline, std::move(postpone));
  counted_ = true;
}

template <typename Work>
void HostTarget::timed(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  if (timing_)
    seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

Failure HostTarget::grade(const GradeRequest& request) {
  timed([&] {
    if (!error_) gradeOnHost(request, team_);
  });
  return std::nullopt;
}

Failure HostTarget::draw(const RandomStream& stream, ScalarType /*type*/, DevicePointer to, int64_t count) {
  timed([&] {
    RandomStream own = stream;
    own.draw({static_cast<int64_t*>(to), static_cast<size_t>(count)});
  });
  return std::nullopt;
}

void HostTarget::timeLaunches(bool on) {
  timing_ = on;
  seconds_.clear();
}

double HostTarget::copyBandwidth() {
  constexpr size_t kBytes = size_t{1} << 26;  // beyond caches
  constexpr size_t kPart = size_t{1} << 18;
  constexpr int kRepetitions = 6;  // of which the first ones touch the memory
  void *from = allocate(kBytes), *to = allocate(kBytes);
  double best = 0;
  for (int k = 0; k < kRepetitions && from && to; ++k) {
    const auto start = std::chrono::steady_clock::now();
    team_.forEach(static_cast<int64_t>(kBytes / kPart), [&](int64_t part) {
      const size_t begin = static_cast<size_t>(part) * kPart;
      std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<std::byte*>(from) + begin, kPart);
    });
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * kBytes / taken.count());
  }
  deallocate(from);
  deallocate(to);
  return best;
}

Failure HostTarget::synchronise(std::optional<DeviceError>& error) {
  error = error_;
  return std::nullopt;
}

}  // namespace kelpie::runtime

// A CUDA device emulated on the host: compiles generated modules with the host compiler against emulation.h,
// runs threads as fibers. Memory is poisoned when allocated and fenced: writes past an end are found.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "runtime/cuda/device.h"

namespace kelpie::tests {

class EmulatedDevice : public runtime::cuda::Device {
 public:
  /// `seed` decides the order in which threads and blocks run.
  explicit EmulatedDevice(uint64_t seed);
  ~EmulatedDevice() override;

  runtime::DevicePointer allocate(size_t bytes) override;
  void deallocate(runtime::DevicePointer pointer) override;
  size_t memoryLimit() const override { return size_t{1} << 30; }
  runtime::Failure upload(runtime::DevicePointer to, const void* from, size_t bytes) override;
  runtime::Failure download(void* to, runtime::DevicePointer from, size_t bytes) override;
  runtime::Failure copy(runtime::DevicePointer to, runtime::DevicePointer from, size_t bytes) override;
  runtime::Failure clear(runtime::DevicePointer to, size_t bytes) override;
  runtime::Failure wait() override { return std::nullopt; }
  void* sharedMemory(size_t bytes) override;
  runtime::Failure await(const uint64_t* shared, uint64_t value, uint64_t mask, bool busy) override;
  runtime::Failure compile(const std::string& source, const std::vector<std::string>& entries,
                           std::unique_ptr<runtime::cuda::Module>& module) override;
  runtime::Failure reserveStack(size_t /*bytes*/) override { return std::nullopt; }
  runtime::Failure launch(runtime::cuda::Function function, int64_t blocks, int threads,
                          void** arguments) override;
  runtime::Failure grade(const runtime::GradeRequest& request) override;
  size_t lastWritersBytes(const runtime::cuda::LastWriters& request) override;
  runtime::Failure findLastWriters(const runtime::cuda::LastWriters& request,
                                   runtime::DevicePointer scratch) override;
  runtime::Failure mark() override;
  runtime::Failure markLaunch() override;
  runtime::Failure takeMarks(std::vector<double>& seconds) override;

 private:
  runtime::Failure checkFences() const;
  void markBegin();
  std::mt19937_64 random_;
  std::vector<std::chrono::steady_clock::time_point> marks_;
  bool launchIsMarked_ = false;  ///< the next one
  std::vector<std::unique_ptr<std::byte[]>> shared_;
  std::map<runtime::DevicePointer, size_t> sizes_;  ///< bytes as asked for, rounded to 256
};

}  // namespace kelpie::tests

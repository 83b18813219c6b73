// Makes draws of a random stream on the device (codegen/cuda/random_draws.cuh).
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/device.h"
#include "runtime/random_stream.h"

namespace kelpie::runtime::cuda {

class DeviceDraws {
 public:
  explicit DeviceDraws(Device& device) : device_(device) {}
  DeviceDraws(const DeviceDraws&) = delete;
  DeviceDraws& operator=(const DeviceDraws&) = delete;

  /// The source of its kernels, to be announced.
  static std::string source();
  bool loaded() const { return module_ != nullptr; }
  /// Compiles, and uploads what does not depend on the stream, before the first draws.
  Failure load();
  /// The next `count` draws of the stream to to[count], of Int64 or Int32. Once it is loaded.
  Failure draw(const RandomStream& stream, ScalarType type, DevicePointer to, int64_t count);
  void unload();

 private:
  Device& device_;
  std::unique_ptr<Module> module_;
  Function additive_ = nullptr, philox_ = nullptr, shortAdditive_ = nullptr, shortPhilox_ = nullptr;
  DevicePointer jumps_ = nullptr;
};

}  // namespace kelpie::runtime::cuda

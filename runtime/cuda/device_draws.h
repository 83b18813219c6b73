// Makes draws of a random stream on the device (codegen/cuda/additive_draws.cuh, philox_draws.cuh).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/random_stream.h"

namespace kelpie::runtime::cuda {

class DeviceDraws {
 public:
  explicit DeviceDraws(Device& device) : device_(device) {}
  DeviceDraws(const DeviceDraws&) = delete;
  DeviceDraws& operator=(const DeviceDraws&) = delete;

  /// The source of a generator's kernel, to be announced.
  static std::string source(RandomGenerator generator);
  bool loaded(RandomGenerator generator) const { return modules_[place(generator)] != nullptr; }
  /// Whether there is code, or it can be loaded without waiting for a compiler.
  bool isReady(RandomGenerator generator) { return loaded(generator) || device_.isReady(source(generator)); }
  /// As draw, made on the host.
  Failure drawOnHost(const RandomStream& stream, ScalarType type, DevicePointer to, int64_t count);
  /// Compiles, and uploads what does not depend on the stream, before a generator's first draws.
  Failure load(RandomGenerator generator);
  /// The next `count` draws of the stream to to[count], of Int64 or Int32. Once its generator is loaded.
  Failure draw(const RandomStream& stream, ScalarType type, DevicePointer to, int64_t count);
  void unload();

 private:
  static size_t place(RandomGenerator generator) { return static_cast<size_t>(generator); }

  Device& device_;
  std::unique_ptr<Module> modules_[2];  ///< by generator
  Function functions_[2] = {};
  DevicePointer jumps_ = nullptr;
};

}  // namespace kelpie::runtime::cuda

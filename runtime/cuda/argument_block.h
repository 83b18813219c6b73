// Arguments of launches of one function, at addresses that stay: made once, filled before every launch.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "ir/scalar.h"
#include "runtime/target.h"

namespace kelpie::runtime::cuda {

class ArgumentBlock {
 public:
  explicit ArgumentBlock(size_t count = 0) : slots_(count) {
    for (Slot& slot : slots_) addresses_.push_back(slot.bytes);
  }
  // Moving a vector keeps the addresses of its elements; copying does not.
  ArgumentBlock(ArgumentBlock&&) = default;
  ArgumentBlock& operator=(ArgumentBlock&&) = default;

  template <class T>
  void set(size_t number, const T& value) {
    static_assert(sizeof(T) <= sizeof(Slot));
    std::memcpy(slots_[number].bytes, &value, sizeof(T));
  }
  void set(size_t number, const KernelArgument& argument, ScalarType type) {
    switch (type) {
      case ScalarType::Bool:
      case ScalarType::Char:
        return set(number, static_cast<uint8_t>(argument.integer));
      case ScalarType::Int32:
        return set(number, static_cast<int32_t>(argument.integer));
      case ScalarType::Int64:
        return set(number, argument.integer);
      case ScalarType::Float32:
        return set(number, static_cast<float>(argument.real));
      case ScalarType::Float64:
        return set(number, argument.real);
    }
  }
  /// As for cuLaunchKernel.
  void** addresses() { return addresses_.data(); }

 private:
  struct Slot {
    alignas(16) std::byte bytes[112];
  };
  std::vector<Slot> slots_;
  std::vector<void*> addresses_;
};

}  // namespace kelpie::runtime::cuda

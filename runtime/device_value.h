// Values of the plan executor: host scalars, and scalars and arrays on the device.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "ir/scalar.h"
#include "runtime/buffer_pool.h"
#include "runtime/host_copy.h"
#include "runtime/interp/expression_code.h"

namespace kelpie::runtime {

struct DeviceValue;
using DeviceRef = std::shared_ptr<DeviceValue>;

/// A scalar or an array in device memory. Contents never change once written; what was fetched is remembered.
/// (A launch may take over the memory of an array that nobody has any more: runtime/launcher.cpp.)
struct DeviceValue {
  BufferRef buffer;
  /// Of the elements in memory. Int32 where the program has an Int64: a short array
  /// (codegen/short_arrays.h).
  ScalarType type = ScalarType::Int64;
  int64_t capacity = 0;  ///< elements allocated; 1 for a cell
  /// Elements; unknown until `counter` is fetched for the results of filters.
  std::optional<int64_t> count;
  DeviceRef counter;
  int64_t counterPosition = 0;  ///< element of `counter` to fetch
  bool complement = false;      ///< count = capacity - counter
  bool withTotal = false;       ///< one element more than `counter` says: the last is the total of the others
  /// Of a cell that counts: what it holds at most.
  std::optional<int64_t> most;

  /// An element that was fetched; null: it was not.
  const Register* known(int64_t position) const {
    const auto it = fetched_.find(position);
    return it == fetched_.end() ? nullptr : &it->second;
  }
  void remember(int64_t position, Register value) { fetched_.emplace(position, value); }
  /// Whether the host has come for so many single elements that it will come for more.
  bool isGoneThrough() const { return count && fetched_.size() >= 4; }
  /// What it has of the array then.
  HostCopy& copy() {
    if (!copy_) copy_ = std::make_unique<HostCopy>(*count, static_cast<size_t>(sizeOf(type)));
    return *copy_;
  }

 private:
  std::unordered_map<int64_t, Register> fetched_;
  std::unique_ptr<HostCopy> copy_;
};

struct PlanValue {
  Register scalar{};
  /// Null: a host scalar. Of a variable that is one, a cell that holds it and that nobody has asked for yet.
  DeviceRef device;
};

}  // namespace kelpie::runtime

// Restores a member at the end of a scope.
#pragma once

#include <utility>

namespace kelpie::flatten {

template <typename T>
class Saved {
 public:
  explicit Saved(T& place) : place_(place), value_(place) {}
  ~Saved() { place_ = std::move(value_); }
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;

 private:
  T& place_;
  T value_;
};

}  // namespace kelpie::flatten

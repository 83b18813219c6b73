// Work that is counted in steps instead of timed: a search that it limits ends at the same place every time,
// on every machine.
#pragma once

#include <cstdint>

namespace kelpie::fusion {

/// A step looks at one node, edge, or reader of an array: some nanoseconds.
class CountedWork {
 public:
  explicit CountedWork(int64_t steps) : left_(steps) {}
  void spend(int64_t steps) { left_ -= steps; }
  int64_t left() const { return left_; }
  bool spent() const { return left_ <= 0; }

 private:
  int64_t left_;
};

}  // namespace kelpie::fusion

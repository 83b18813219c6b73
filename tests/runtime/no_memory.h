// A process that has no more memory, for tests.
#pragma once

#include <cstddef>

namespace kelpie::tests {

/// While it exists nobody gets more bytes at once, in any thread: operator new throws std::bad_alloc.
class NoMemoryBeyond {
 public:
  explicit NoMemoryBeyond(size_t bytes);
  ~NoMemoryBeyond();
  NoMemoryBeyond(const NoMemoryBeyond&) = delete;
  NoMemoryBeyond& operator=(const NoMemoryBeyond&) = delete;
};

}  // namespace kelpie::tests

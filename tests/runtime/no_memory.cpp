#include "tests/runtime/no_memory.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace kelpie::tests {
namespace {

std::atomic<size_t> mostBytes{SIZE_MAX};

}  // namespace

NoMemoryBeyond::NoMemoryBeyond(size_t bytes) { mostBytes = bytes; }
NoMemoryBeyond::~NoMemoryBeyond() { mostBytes = SIZE_MAX; }

}  // namespace kelpie::tests

// Those of the whole program; what is not replaced calls these.
void* operator new(size_t bytes) {
  void* const memory = bytes <= kelpie::tests::mostBytes ? std::malloc(bytes != 0 ? bytes : 1) : nullptr;
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

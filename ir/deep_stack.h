// Work that recurses as deep as programs nest, or as they recurse, needs more stack than a thread usually
// has.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace kelpie {

/// Calls `work` on a stack of half a gibibyte (address space only: pages are taken as they are touched), or
/// on this one if it is such a stack, and returns when it has returned, passing its exception on.
void runOnDeepStack(const std::function<void()>& work);

/// Stacks that are used again, with the pages they have, until the pool goes. Any thread may ask.
class StackPool {
 public:
  explicit StackPool(size_t bytes) : bytes_(bytes) {}
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  /// Calls `work` on a stack of its own, and returns when it has returned, passing its exception on; false
  /// when there is no stack to be had, and `work` was not called.
  bool run(const std::function<void()>& work);

 private:
  void* take();  ///< null: no address space

  const size_t bytes_;
  std::mutex mutex_;
  std::vector<void*> free_;
};

}  // namespace kelpie

// The same work for many numbers, on two threads if they are worth it.
//
// What `work(k)` writes has a place of its own for every k, so the result does not depend on who does what.
#pragma once

#include <atomic>
#include <exception>
#include <thread>

namespace kelpie::fusion {

/// Calls work(0) to work(count - 1), each once.
template <typename Work>
void forEachNumber(int count, const Work& work) {
  constexpr int kWorthAThread = 32;
  if (count < kWorthAThread) {
    for (int k = 0; k < count; ++k) work(k);
    return;
  }
  std::atomic<int> next = 0;
  const auto take = [&](std::exception_ptr& failure) {
    try {
      for (int k = next++; k < count; k = next++) work(k);
    } catch (...) {
      failure = std::current_exception();
    }
  };
  std::exception_ptr here, there;
  {
    const std::jthread other(take, std::ref(there));
    take(here);
  }
  if (here) std::rethrow_exception(here);
  if (there) std::rethrow_exception(there);
}

}  // namespace kelpie::fusion

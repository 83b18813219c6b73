// The same work for many numbers, on several threads if they are worth it.
//
// What `work(k)` writes has a place of its own for every k, so the result does not depend on who does what.
// Nor does the time that is counted (work_time.h): each k counts from where the caller was, who then counts
// the sum over the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

#include "fusion/work_time.h"

namespace kelpie::fusion {

/// Calls work(0) to work(count - 1), each once. A thread is worth its start for so many of them.
template <typename Work>
void forEachNumber(int count, const Work& work, int worthAThread = 16, int mostThreads = 2) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = std::min({count / worthAThread, std::max(2, cores), mostThreads});
  if (threads < 2) {
    for (int k = 0; k < count; ++k) work(k);
    return;
  }
  const int64_t start = WorkTime::spent();
  std::atomic<int64_t> spent = 0;
  std::atomic<int> next = 0;
  const auto take = [&](std::exception_ptr& failure) {
    try {
      for (int k = next++; k < count; k = next++) {
        WorkTime::set(start);
        work(k);
        spent += WorkTime::spent() - start;
      }
    } catch (...) {
      failure = std::current_exception();
    }
  };
  std::vector<std::exception_ptr> failures(static_cast<size_t>(threads));
  {
    std::vector<std::jthread> others;
    try {
      for (int k = 1; k < threads; ++k) others.emplace_back(take, std::ref(failures[static_cast<size_t>(k)]));
    } catch (const std::system_error&) {  // no more threads for this process: those there are do it
    }
    take(failures[0]);
  }
  WorkTime::set(start + spent / threads);
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace kelpie::fusion

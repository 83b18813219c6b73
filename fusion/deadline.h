// A moment after which a search stops.
//
// Time is what the thread that made it has spent computing, so that a search finds the same on a machine that
// is busy with other things: with the clock of the wall, a program's kernels, and with them the last bits of
// its float sums, depended on what ran beside the compiler. Where others take the processor for long, or
// other threads ask, the wall's clock counts.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

namespace kelpie::fusion {

class Deadline {
 public:
  explicit Deadline(double seconds)
      : thread_(std::this_thread::get_id()),
        start_(Clock::now()),
        computedBefore_(secondsComputed()),
        seconds_(seconds) {}
  double secondsSpent() const {
    constexpr double kMostSlowdown = 4;
    const double wall = std::chrono::duration<double>(Clock::now() - start_).count();
    if (std::this_thread::get_id() != thread_) return wall;
    return std::max(secondsComputed() - computedBefore_, wall / kMostSlowdown);
  }
  double secondsLeft() const { return seconds_ - secondsSpent(); }
  bool passed() const { return secondsLeft() <= 0; }
  /// For GLPK, which takes 0 as no time at all.
  int millisecondsLeft() const { return std::max(1, static_cast<int>(1000 * secondsLeft())); }

 private:
  using Clock = std::chrono::steady_clock;
  /// By this thread.
  static double secondsComputed() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  std::thread::id thread_;
  Clock::time_point start_;
  double computedBefore_;
  double seconds_;
};

}  // namespace kelpie::fusion

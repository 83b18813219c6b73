// A moment after which a search stops, in time that the thread counts (work_time.h).
//
// Only where that is far from what a clock says does the clock stop the search: on a machine many times as
// slow, or as busy, people would not wait for so long.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "fusion/work_time.h"

namespace kelpie::fusion {

class Deadline {
 public:
  explicit Deadline(double seconds)
      : start_(Clock::now()), before_(WorkTime::spent()), allowed_(static_cast<int64_t>(1e9 * seconds)) {}
  double secondsSpent() const { return 1e-9 * static_cast<double>(std::max(counted(), ofClock())); }
  double secondsLeft() const { return 1e-9 * static_cast<double>(allowed_) - secondsSpent(); }
  bool passed() const { return counted() >= allowed_ || ofClock() >= allowed_; }

  /// To be counted; 0 at least.
  int64_t nanosecondsLeft() const { return std::max(int64_t{0}, allowed_ - counted()); }
  /// Of the clock, for GLPK, which takes 0 as no time at all.
  int millisecondsLeft() const {
    const int64_t left = kGrace + kMostSlowdown * allowed_ - elapsed();
    return static_cast<int>(std::clamp(left / 1'000'000, int64_t{1}, kLongest));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kMostSlowdown = 8, kGrace = 1'000'000'000;  ///< times and nanoseconds
  static constexpr int64_t kLongest = 1'000'000'000;                   ///< milliseconds
  int64_t counted() const { return WorkTime::spent() - before_; }
  int64_t elapsed() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
  }
  /// What the clock says, as what is counted is compared with.
  int64_t ofClock() const { return (elapsed() - kGrace) / kMostSlowdown; }

  Clock::time_point start_;
  int64_t before_;
  int64_t allowed_;  ///< nanoseconds
};

}  // namespace kelpie::fusion

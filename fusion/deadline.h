// A moment after which a search stops.
#pragma once

#include <algorithm>
#include <chrono>

namespace kelpie::fusion {

class Deadline {
 public:
  explicit Deadline(double seconds) : start_(Clock::now()), seconds_(seconds) {}
  double secondsSpent() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double secondsLeft() const { return seconds_ - secondsSpent(); }
  bool passed() const { return secondsLeft() <= 0; }
  /// For GLPK, which takes 0 as no time at all.
  int millisecondsLeft() const { return std::max(1, static_cast<int>(1000 * secondsLeft())); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
  double seconds_;
};

}  // namespace kelpie::fusion

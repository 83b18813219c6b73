// Repeats a run until its time is known well enough.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace kelpie::driver {

/// Seconds of the runs after warming up, and what they say about the next one: the median, and an interval
/// that contains the median of all runs that could be made with a probability of 95 %, whatever their
/// distribution.
struct Measurement {
  std::vector<double> seconds;
  double median = 0, low = 0, high = 0;
  /// Of fewer runs, not even the least and the greatest have the median between them with 95 % (1 - 2 / 2^n).
  bool hasInterval() const { return seconds.size() >= 6; }
};

/// At least one run.
Measurement summarise(std::vector<double> seconds);

/// Calls `run`, which tells its seconds, or nothing when it failed: first until it gets no faster; then
/// `runs` times, or, when that is 0, until the interval is narrower than 1 % to either side, at least ten
/// times and for half a second, but no longer than ten seconds. Nothing: a run failed.
std::optional<Measurement> measure(const std::function<std::optional<double>()>& run, int runs);

}  // namespace kelpie::driver

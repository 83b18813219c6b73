#include "driver/measurement.h"

#include <algorithm>
#include <cmath>

namespace kelpie::driver {

namespace {

constexpr int kMostWarmUps = 20;
constexpr double kMostWarmUpSeconds = 5;
constexpr double kFaster = 0.95;  // of the fastest run before: it still gets faster

constexpr size_t kFewestRuns = 10, kFewestLongRuns = 3, kMostRuns = 1000;
constexpr double kLeastSeconds = 0.5, kMostSeconds = 10;
constexpr double kPrecision = 0.01;

bool precise(const Measurement& m) {
  return m.high - m.median <= kPrecision * m.median && m.median - m.low <= kPrecision * m.median;
}

}  // namespace

Measurement summarise(std::vector<double> seconds) {
  Measurement m;
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  m.seconds = std::move(seconds);
  m.median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
  // How many of n runs are below the median is binomial: between n/2 - d and n/2 + d with 95 %.
  const double d = 0.98 * std::sqrt(static_cast<double>(n));
  const auto rank = static_cast<size_t>(std::max(0.0, std::floor(static_cast<double>(n) / 2 - d)));
  m.low = sorted[rank];
  m.high = sorted[n - 1 - rank];
  return m;
}

std::optional<Measurement> measure(const std::function<std::optional<double>()>& run, int runs) {
  double fastest = 0, total = 0;
  for (int k = 0; k < kMostWarmUps && total < kMostWarmUpSeconds; ++k) {
    const std::optional<double> seconds = run();
    if (!seconds) return std::nullopt;
    total += *seconds;
    if (k > 0 && *seconds >= kFaster * fastest) break;
    fastest = *seconds;
  }
  std::vector<double> seconds;
  total = 0;
  // Sorting all times takes longer than a short run, and what it leaves in caches slows the next one down: it
  // is done now and then.
  size_t nextLook = kFewestRuns;
  const auto enough = [&] {
    const size_t count = seconds.size();
    if (runs > 0) return count >= static_cast<size_t>(runs);
    if (count >= kMostRuns || (total > kMostSeconds && count >= kFewestLongRuns)) return true;
    if (count < nextLook || total < kLeastSeconds) return false;
    nextLook = count + count / 16 + 1;
    return precise(summarise(seconds));
  };
  while (!enough()) {
    const std::optional<double> next = run();
    if (!next) return std::nullopt;
    seconds.push_back(*next);
    total += *next;
  }
  return summarise(std::move(seconds));
}

}  // namespace kelpie::driver

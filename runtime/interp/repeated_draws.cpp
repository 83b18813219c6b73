#include "runtime/interp/repeated_draws.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace kelpie::runtime {

RepeatedDraws::RepeatedDraws(double pieces, size_t windows)
    : pieces_(std::max(1.0, pieces)), times_(windows) {}

void RepeatedDraws::add(const std::unordered_set<int64_t>& pieces, size_t window) {
  for (int64_t piece : pieces) ++times_[window][piece];
  number_ += static_cast<double>(pieces.size());
}

double RepeatedDraws::distinct() const {
  return std::accumulate(times_.begin(), times_.end(), 0.0, [](double sum, const auto& window) {
    return sum + static_cast<double>(window.size());
  });
}

double RepeatedDraws::among(double factor) const {
  const std::vector<double> pieces = classes();
  double result = 0;
  for (size_t k = 0; k < pieces.size(); ++k) result += pieces[k] * -std::expm1(-timesOf(k) * factor);
  return std::min(result, factor * number_);
}

double RepeatedDraws::all() const {
  const std::vector<double> pieces = classes();
  return std::min(pieces_, std::accumulate(pieces.begin(), pieces.end(), 0.0));
}

/// How often a piece of the class is drawn in a window, on average.
double RepeatedDraws::timesOf(size_t k) const {
  constexpr double kRarely = 1.0 / 64;  // of what would be equally often
  const double equally = number_ / static_cast<double>(times_.size()) / pieces_;
  return k == 0 ? kRarely * equally : std::ldexp(equally, static_cast<int>(k) - 1);
}

/// How often a piece is drawn if all that are drawn at all are equally often: x of (1 - e^-x) / x.
double RepeatedDraws::onAverage() const {
  const double share = distinct() / number_;
  double low = 1e-9, high = 1e9;
  for (int k = 0; k < 100; ++k) {
    const double middle = std::sqrt(low * high);
    (-std::expm1(-middle) / middle > share ? low : high) = middle;
  }
  return low;
}

/// The number of pieces in each class, over all windows.
std::vector<double> RepeatedDraws::classes() const {
  if (number_ == 0) return {};
  const size_t all = 2 + static_cast<size_t>(std::log2(pieces_));
  std::map<uint32_t, double> counts;  // of pieces drawn so many times
  for (const auto& window : times_)
    for (const auto& [piece, times] : window) ++counts[times];
  std::vector<std::vector<double>> likely;  // of such a piece in each class
  for (const auto& [times, count] : counts) {
    std::vector<double>& row = likely.emplace_back();
    for (size_t k = 0; k < all; ++k) {
      const double x = timesOf(k);
      row.push_back(std::exp(times * std::log(x) - x - std::lgamma(times + 1.0)) / -std::expm1(-x));
    }
  }
  constexpr double kElsewhere = 0.02;
  std::vector<double> seen(all, kElsewhere);  // pieces of each class
  const double ofOne = std::log2(onAverage() / timesOf(1));
  seen[static_cast<size_t>(std::clamp(std::round(ofOne) + 1, 0.0, static_cast<double>(all - 1)))] = 1;
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> next(all);
    size_t row = 0;
    for (const auto& [times, count] : counts) {
      const double sum = std::inner_product(seen.begin(), seen.end(), likely[row].begin(), 0.0);
      for (size_t k = 0; k < all && sum > 0; ++k) next[k] += count * seen[k] * likely[row][k] / sum;
      ++row;
    }
    seen = std::move(next);
  }
  for (size_t k = 0; k < all; ++k) seen[k] /= -std::expm1(-timesOf(k));
  return seen;
}

}  // namespace kelpie::runtime

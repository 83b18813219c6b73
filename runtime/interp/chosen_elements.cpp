#include "runtime/interp/chosen_elements.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

namespace kelpie::runtime {

namespace {

int64_t mixed(uint64_t seed) {
  seed *= 0x9e3779b97f4a7c15u;
  seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
  return static_cast<int64_t>((seed ^ seed >> 27) * 0x94d049bb133111ebu >> 33);
}

/// A step through so many places that comes to each once, and to far ones first.
int64_t farStep(int64_t places) {
  int64_t step = std::max<int64_t>(1, std::llround(0.618 * static_cast<double>(places)));
  while (std::gcd(step, places) != 1) ++step;
  return step;
}

}  // namespace

ChosenElements::ChosenElements(int64_t elements)
    : n_(elements), groups_((elements + kNeighbours - 1) / kNeighbours) {}

std::pair<int64_t, int64_t> ChosenElements::neighbours(int64_t group, int64_t size) const {
  return {group * size, std::min(n_, (group + 1) * size)};
}

ChosenElements::Batch ChosenElements::operator[](int64_t k) const {
  if (all()) return {Kind::Groups, {neighbours((k + 1) * farStep(groups_) % groups_, kNeighbours)}};
  // The first are groups, the last are of windows; between them they alternate.
  if (k < kFirst) return group(k);
  if (k >= kBatches - kFirst) return inWindow(k - kGroups);
  return (k - kFirst) % 2 == 0 ? inWindow((k - kFirst) / 2) : group(kFirst + (k - kFirst) / 2);
}

ChosenElements::Batch ChosenElements::smallGroups(int64_t k, int64_t number) const {
  constexpr double kGolden = 0.6180339887498949;  // of its multiples any first few are spread
  const int64_t all = (n_ + kInStep - 1) / kInStep;
  Batch batch{Kind::SmallGroups, {}};
  for (const int64_t end = k + number; k < end; ++k) {
    const double place = kGolden * static_cast<double>(k + 1);
    batch.runs.push_back(
        neighbours(static_cast<int64_t>((place - std::floor(place)) * static_cast<double>(all)), kInStep));
  }
  return batch;
}

ChosenElements::Batch ChosenElements::group(int64_t number) const {
  const int64_t place = (number + 1) * farStep(kGroups) % kGroups;
  const int64_t first = place * groups_ / kGroups, end = (place + 1) * groups_ / kGroups;
  const auto seed = static_cast<uint64_t>(2 * number + 1);
  return {Kind::Groups, {neighbours(first + mixed(seed) % std::max<int64_t>(1, end - first), kNeighbours)}};
}

void ChosenElements::chooseWindows(codegen::Streams streams, int64_t elements) {
  rounds_ = std::clamp<int64_t>(streams.rounds, 1, std::max<int64_t>(1, n_ / (3 * kNeighbours)));
  elements = std::clamp<int64_t>(elements, kNeighbours, n_ / 3 / rounds_);
  streams_ = std::clamp<int64_t>(streams.number, 1, elements / kRun);
  ofStream_ = elements / streams_ / kRun * kRun;
  // Anywhere in the windows: at even distances nobody would meet what a neighbour visits.
  const int64_t all = ofWindow() / kRun;
  uint64_t seed = 0;
  for (std::vector<int64_t>& runs : runs_) {
    std::unordered_set<int64_t> chosen;
    while (static_cast<int64_t>(runs.size()) < std::min(all, kGroups / 2 * kRuns))
      if (const int64_t run = mixed(++seed) % all; chosen.insert(run).second) runs.push_back(run);
  }
}

ChosenElements::Batch ChosenElements::inWindow(int64_t number) const {
  Batch batch{Kind::OfWindow, {}, static_cast<int>(number % 2)};
  const std::vector<int64_t>& runs = runs_[static_cast<size_t>(batch.window)];
  const int64_t ofStream = ofStream_ / kRun, length = n_ / rounds_ / streams_;
  const int64_t firstRound = (1 + batch.window) * rounds_ / 3 * (n_ / rounds_);
  const auto from = static_cast<size_t>(number / 2 * kRuns);
  for (size_t r = from; r < std::min(runs.size(), from + kRuns); ++r) {
    const int64_t begin =
        firstRound + runs[r] / ofStream * length + (1 + batch.window) * length / 3 - ofStream_ / 2;
    const int64_t first = begin + runs[r] % ofStream * kRun;
    batch.runs.emplace_back(first, first + kRun);
  }
  return batch;
}

}  // namespace kelpie::runtime

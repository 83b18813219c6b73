#include "runtime/interp/chosen_elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

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

/// The k-th of so many places, of which any first few are spread.
int64_t spread(int64_t k, int64_t places) {
  constexpr double kGolden = 0.6180339887498949;
  const double place = kGolden * static_cast<double>(k + 1);
  return static_cast<int64_t>((place - std::floor(place)) *
                              static_cast<double>(std::max<int64_t>(1, places)));
}

}  // namespace

ChosenElements::ChosenElements(int64_t elements)
    : n_(elements), groups_((elements + kNeighbours - 1) / kNeighbours) {}

std::pair<int64_t, int64_t> ChosenElements::neighbours(int64_t group, int64_t size) const {
  return {group * size, std::min(n_, (group + 1) * size)};
}

ChosenElements::Batch ChosenElements::operator[](int64_t k) const {
  if (all()) return {Kind::Groups, {neighbours((k + 1) * farStep(groups_) % groups_, kNeighbours)}};
  const int64_t place = (k + 1) * farStep(kGroups) % kGroups;
  const int64_t first = place * groups_ / kGroups, end = (place + 1) * groups_ / kGroups;
  const auto seed = static_cast<uint64_t>(2 * k + 1);
  return {Kind::Groups, {neighbours(first + mixed(seed) % std::max<int64_t>(1, end - first), kNeighbours)}};
}

ChosenElements::Batch ChosenElements::together(codegen::Streams streams, int64_t k, int64_t room) const {
  constexpr int64_t kSteps = 4;  // of streams
  Batch batch{Kind::Groups, {}};
  const int64_t tile = std::clamp<int64_t>(streams.tile, 1, std::max(kNeighbours, room));
  const int64_t tiles = std::clamp<int64_t>(room / tile, 1, streams.together);
  const auto add = [&](int64_t begin, int64_t end) {
    for (; begin < end; begin += kNeighbours)
      batch.runs.emplace_back(begin, std::min(end, begin + kNeighbours));
  };
  if (streams.number > 1) {
    const int64_t rounds = std::clamp<int64_t>(streams.rounds, 1, std::max<int64_t>(1, n_ / kNeighbours));
    const int64_t number = std::clamp<int64_t>(streams.number, 1, n_ / rounds);
    const int64_t length = n_ / rounds / number, round = rounds / 2 * (n_ / rounds);
    const int64_t place = k / kSteps;
    const int64_t first = spread(place, length - kSteps * tile) + k % kSteps * tile;
    for (int64_t t = 0; t < tiles && first < length; ++t) {
      const int64_t stream = (place + t * std::max<int64_t>(1, number / tiles)) % number;
      add(round + stream * length + first, round + stream * length + std::min(length, first + tile));
    }
  } else {
    const int64_t all = (n_ + streams.tile - 1) / streams.tile, first = spread(k, all);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = (first + t * streams.cores) % all * streams.tile;
      add(begin, std::min(n_, begin + tile));
    }
  }
  batch.ofCore = static_cast<double>(tiles * tile) / static_cast<double>(streams.together * streams.tile);
  return batch;
}

ChosenElements::Batch ChosenElements::smallGroups(int64_t k, int64_t number) const {
  const int64_t all = (n_ + kInStep - 1) / kInStep;
  Batch batch{Kind::SmallGroups, {}};
  for (const int64_t end = k + number; k < end; ++k)
    batch.runs.push_back(neighbours(spread(k, all), kInStep));
  return batch;
}

std::optional<std::pair<int64_t, int64_t>> ChosenElements::inWindow(codegen::Streams streams, size_t window,
                                                                    const Part& part, int64_t k) const {
  constexpr std::array<int64_t, kWindows> kTwelfths{3, 7, 10};  // where they begin
  const int64_t rounds = std::clamp<int64_t>(streams.rounds, 1, std::max<int64_t>(1, n_ / kNeighbours));
  const int64_t number = std::clamp<int64_t>(streams.number, 1, n_ / rounds);
  const int64_t ofRound = n_ / rounds, length = ofRound / number;
  const int64_t ofPart = part.bundles > 0 ? part.streams() : number, turn = k % ofPart;
  const int64_t begin = kTwelfths[window] * length / 12 + part.skipped + k / ofPart * part.run;
  if (begin >= length) return std::nullopt;
  int64_t place = turn;
  if (part.bundles > 0) place = part.first + turn / part.ofBundle * part.spacing + turn % part.ofBundle;
  const int64_t stream = rounds / 2 * ofRound + std::min(place, number - 1) * length;
  return std::pair(stream + begin, stream + std::min(length, begin + part.run));
}

}  // namespace kelpie::runtime

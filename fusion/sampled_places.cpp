#include "fusion/sampled_places.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kelpie::fusion {

using codegen::ThunkSample;

namespace {

/// How often each piece is visited, in all launches.
double visits(const ThunkSample::Positions& p) {
  constexpr double kPiece = 32;
  return kPiece * p.sectors * p.number / std::max(1.0, p.visited);
}

}  // namespace

double remembered(const ThunkSample& sample, double launches, double passing, double cacheBytes) {
  const auto bytesAfter = [&](double share) {
    double bytes = share * launches * passing;
    for (const ThunkSample::Positions& p : sample.positions)
      if (p.number > 0) bytes += p.visited / p.number * (1 - std::exp(-share * visits(p)));
    return bytes;
  };
  constexpr double kMostLaunches = 64;
  constexpr int kHalvings = 50;
  double least = 0, most = kMostLaunches / std::max(1.0, launches);
  if (bytesAfter(most) < cacheBytes) return std::numeric_limits<double>::max();
  for (int k = 0; k < kHalvings; ++k) {
    const double middle = (least + most) / 2;
    (bytesAfter(middle) < cacheBytes ? least : most) = middle;
  }
  return least;
}

Places placesOf(const ThunkSample::Positions& p, double remembered) {
  Places places;
  places.sectors = p.sectors / p.number;
  places.granules = p.granules / p.number;
  constexpr double kMost = 16;  // granules of a block
  const double ofBlock = p.blocks > 0 ? std::clamp(p.granules / p.blocks, 1.0, kMost) : 1;
  places.scatter = 1 - std::log(ofBlock) / std::log(kMost);
  places.fresh = p.sectors > 0 ? p.fresh / p.sectors : 1;
  places.visited = p.visited / p.number;
  if (remembered > 0) places.held = 1 - std::exp(-remembered * visits(p));
  if (p.simulated > 0) places.missed = p.missed / p.simulated;
  return places;
}

std::optional<double> writersOf(const ThunkSample::Positions& p, double elements, double places) {
  constexpr double kEnough = 4, kNear = 0.9;
  if (!(p.seen > 0) || !(elements > 0)) return std::nullopt;
  const double different = 1 - p.met / p.seen;
  if (different < kNear) return different;  // neighbours meet
  if (p.pairs < kEnough * places) return std::nullopt;
  // Two that were looked at write to one place as often as the places that are written are many, as for
  // birthdays; if none of so many do, no two of all do.
  const double thrown = elements * p.met / p.pairs;
  return thrown > 0 ? (1 - std::exp(-thrown)) / thrown : 1;
}

}  // namespace kelpie::fusion

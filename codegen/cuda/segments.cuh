// Segmented spaces: where segments begin, and searches among them.
#pragma once

#include "tile.cuh"

namespace kelpie {

/// Instead of a place (cuda_module.h): there is none. Launches have fewer elements.
template <class Place>
constexpr Place kNoPlace = Place(~Place(0));

/// The position in its segment of the first extreme, by its place in the space, or the greatest number for
/// none: where there are no elements, or the extreme is no number, which nothing equals.
template <class Segments, class Place, class T>
__device__ __forceinline__ int64_t k_place_in_segment(const Segments& segments, int64_t segment, Place place,
                                                      T extreme) {
  const bool some = place != kNoPlace<Place> && extreme == extreme;
  return some ? int64_t(place) - segments.begin(segment) : int64_t(~uint64_t(0) >> 1);
}

/// Segments given by ascending offsets[0..count]; offsets[0] is 0. Offset: int64_t, or uint32_t where the
/// array is stored so (codegen/short_arrays.h).
template <class Offset>
struct OffsetSegments {
  const Offset* offsets;
  int64_t count;
  __device__ __forceinline__ int64_t begin(int64_t segment) const { return int64_t(offsets[segment]); }
  /// The same numbered from segment `first`.
  __device__ __forceinline__ OffsetSegments from(int64_t first) const {
    return {offsets + first, count - first};
  }
  /// Where neighbouring segments begin, from a multiple of their number on, by one load; or the end of the
  /// last, but nothing behind that.
  static constexpr int kNeighbours = 16 / sizeof(Offset);
  using Neighbours = Pack<Offset, kNeighbours>;
  __device__ __forceinline__ Neighbours neighbours(int64_t first) const {
    return *reinterpret_cast<const Neighbours*>(offsets + first);
  }
  /// The segment of an element: the last that begins at or before it.
  __device__ __forceinline__ int64_t of(int64_t element) const {
    int64_t low = 0, high = count;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (begin(middle) <= element ? low : high) = middle;
    }
    return low;
  }
};

/// `count` segments of `length` elements each.
struct RegularSegments {
  int64_t length;
  int64_t count;
  int64_t start = 0;
  __device__ __forceinline__ int64_t begin(int64_t segment) const { return start + segment * length; }
  __device__ __forceinline__ RegularSegments from(int64_t first) const {
    return {length, count - first, begin(first)};
  }
  static constexpr int kNeighbours = 2;
  using Neighbours = Pack<int64_t, kNeighbours>;
  __device__ __forceinline__ Neighbours neighbours(int64_t first) const {
    return {{begin(first), begin(first + 1)}};
  }
  __device__ __forceinline__ int64_t of(int64_t element) const { return (element - start) / length; }
};

/// The first segment, of low .. high-1, that begins behind an element; `high`: none of these.
template <class Segments>
KELPIE_DEVICE int64_t firstBehind(const Segments& segments, int64_t element, int64_t low, int64_t high) {
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (segments.begin(middle) <= element) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// The first number, of low .. high-1, of which before(number, value(number)) does not hold (`high`, where it
/// holds of all); it holds of some first ones. `latest` becomes the value of the last of these, if there is
/// any. Called by all lanes of a warp: its halves search for one place each, and narrow the range 16 *
/// kProbes times a step.
template <int kProbes, class Value, class Before>
KELPIE_DEVICE int64_t searchByHalfWarp(int64_t low, int64_t high, const Value& value, const Before& before,
                                       int64_t& latest) {
  const uint32_t half = 0xffffu << (laneIndex() & 16);
  while (__ballot_sync(kFullWarp, low < high) != 0) {
    const int64_t step = (high - low + 16 * kProbes - 1) / (16 * kProbes);
    int64_t probed[kProbes];
    KELPIE_UNROLL
    for (int j = 0; j < kProbes; ++j) {
      const int64_t at = low + ((laneIndex() & 15) * kProbes + j) * step;
      probed[j] = at < high ? value(at) : 0;
    }
    int passed = 0;
    int64_t own = 0;  // value of the last of this lane that passes
    KELPIE_UNROLL
    for (int j = 0; j < kProbes; ++j) {
      const int64_t at = low + ((laneIndex() & 15) * kProbes + j) * step;
      const bool passes = at < high && before(at, probed[j]);
      if (passes) own = probed[j];
      passed += __popc(__ballot_sync(kFullWarp, passes) & half);
    }
    const int64_t limit = low + passed * step;
    if (limit < high) high = limit;
    const int last = passed > 0 ? passed - 1 : 0;
    own = shuffleFrom(own, (laneIndex() & 16) + last / kProbes);
    if (passed == 0) continue;
    low += last * step + 1;
    latest = own;
  }
  return low;
}

/// Narrows low .. high, the range of such a search for the first segment that begins at or behind `element`,
/// by a step of its own: it looks around where that segment is if all are equally long, more closely the
/// nearer to it. Of equal segments nothing is left to search, of 2^23 whose lengths are random two steps
/// less, of others one step more at most. Called by all lanes of a warp, as the search is.
template <class Offset>
KELPIE_DEVICE void searchAroundMean(const OffsetSegments<Offset>& segments, int64_t element, int64_t extent,
                                    int64_t& low, int64_t& high) {
  if (segments.count <= 256) return;  // the search takes two steps
  const int lane = laneIndex() & 15;
  const uint32_t half = 0xffffu << (laneIndex() & 16);
  const auto mean = element > 0 ? int64_t(float(element) / float(extent) * float(segments.count)) : 0;
  // -2^22, -2^19, ... -2, 2, 16, ... 2^22 away
  const auto probe = [&](int place) {
    const int64_t away = place < 8 ? -(int64_t(2) << (3 * (7 - place))) : int64_t(2) << (3 * (place - 8));
    const int64_t at = mean + away;
    return at < low ? low : at < high ? at : high;
  };
  const int64_t at = probe(lane);
  const bool passes = at < high && segments.begin(at) < element;
  const int passed = __popc(__ballot_sync(kFullWarp, passes) & half);
  const int64_t above = passed < 16 ? probe(passed) : high;
  if (passed > 0) low = probe(passed - 1) + 1;
  high = above;
}

}  // namespace kelpie

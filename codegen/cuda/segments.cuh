// Segmented spaces: where segments begin, and searches among them.
#pragma once

#include "tile.cuh"

namespace kelpie {

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
  __device__ __forceinline__ int64_t of(int64_t element) const { return (element - start) / length; }
};

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

}  // namespace kelpie

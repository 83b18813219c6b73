// Results of segments in passes that scan: what is folded of a segment is what a scan of it has behind its
// last element, so that sums beside scans or filters read elements once.
//
// A tile leaves the folds up to each of its items in shared memory, and its threads take those at the ends of
// segments: neighbours, whose results are stored side by side. A segment that ends where a tile begins
// belongs to that tile, for which its fold is what lies below. Example: tiles of 4, segments of 3, 1, 0, 4
// and 0 elements. Segment 0 ends in the first tile; 1, 2 and 3 end in the second, the former two at its
// begin: the fold of 1 is what lies below, 2 is empty; so is 4, which is the last tile's in any case.
//
// Where far more segments end in a tile than it has elements, it finds those that have elements by these, and
// additional blocks share the empty ones of all such tiles: a tile alone would take 0.1 ms for a million.
#pragma once

#include "segment_heads.cuh"

namespace kelpie {

/// Segments first..behind-1.
template <class S>
struct EndingSegments {
  int64_t first, behind;

  /// Those that end in tile `number`, or where it begins, of the segments `begin`..`end`-1 that begin in it.
  template <class Segments>
  __device__ __forceinline__ EndingSegments(const Segments& segments, int64_t begin, int64_t end,
                                            int64_t number, int64_t tiles)
      : first(begin > 0 && number > 0 ? begin - 1 : 0),
        behind(number == tiles - 1 ? segments.count
               : end > 0           ? end - 1
                                   : 0) {}
  /// Whether additional blocks do the empty ones.
  __device__ __forceinline__ bool crowded() const { return behind - first > SegmentHeads<S>::kMany; }
};

/// beginningIn of a tile that is this thread's alone; `starts` are in memory.
template <class S, class Offset>
KELPIE_DEVICE void beginningOf(const OffsetSegments<Offset>&, int64_t number, const Tile&,
                               const int64_t* starts, int64_t& begin, int64_t& end) {
  begin = starts[number];
  end = starts[number + 1];
}
template <class S>
KELPIE_DEVICE void beginningOf(const RegularSegments& segments, int64_t, const Tile& tile, const int64_t*,
                               int64_t& begin, int64_t& end) {
  beginningIn<S>(segments, tile, 0, nullptr, begin, end);
}

/// Calls result(segment, fold) for segments that end in a tile: with `none` for empty ones, with `lower`
/// where one ends as the tile begins, else with foldAt(its last offset). Called by all threads of a block;
/// `starts` as in SegmentHeads.
template <class S, class Segments, class Fold, class FoldAt, class Result>
KELPIE_DEVICE void storeEnds(const Segments& segments, const Tile& tile, int64_t number, int64_t tiles,
                             int64_t extent, const int64_t* starts, const Fold& none, const Fold& lower,
                             const FoldAt& foldAt, const Result& result) {
  int64_t begin, end;
  beginningIn<S>(segments, tile, extent, starts, begin, end);
  const EndingSegments<S> ending(segments, begin, end, number, tiles);
  if (ending.crowded()) {
    const int behind = number == tiles - 1 ? tile.count : tile.count - 1;
    KELPIE_NO_UNROLL
    for (int offset = int(threadIdx.x) - 1; offset < behind; offset += S::kThreads) {
      const int64_t element = tile.base + offset;
      if (element < 0) continue;
      const int64_t next = firstBehind(segments, element, ending.first, ending.behind);
      if (next > ending.first && segments.begin(next) == element + 1)
        result(next - 1, offset < 0 ? lower : foldAt(offset));
    }
    return;
  }
  constexpr int kAtOnce = 2;  // loads in flight
  KELPIE_NO_UNROLL
  for (int64_t low = ending.first + threadIdx.x; low < ending.behind; low += kAtOnce * S::kThreads) {
    int64_t from[kAtOnce], to[kAtOnce];
    KELPIE_UNROLL
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t segment = low + j * S::kThreads;
      from[j] = to[j] = 0;
      if (segment >= ending.behind) continue;
      from[j] = segments.begin(segment);
      to[j] = segments.begin(segment + 1);
    }
    KELPIE_UNROLL
    for (int j = 0; j < kAtOnce; ++j) {
      const int64_t segment = low + j * S::kThreads;
      if (segment >= ending.behind) continue;
      const int last = int(to[j] - tile.base) - 1;
      result(segment, from[j] == to[j] ? none : last < 0 ? lower : foldAt(last));
    }
  }
}

/// Calls empty(segment) for the empty segments of crowded tiles, of which `blocks` blocks, of which this one
/// is number `block`, do a share each.
template <class S, class Segments, class Empty>
KELPIE_DEVICE void storeEmpty(const Segments& segments, int64_t extent, const int64_t* starts, int64_t tiles,
                              int64_t block, int64_t blocks, const Empty& empty) {
  constexpr int kAtOnce = 16;  // tiles that a thread looks at, whose loads are in flight together
  const auto endingIn = [&](int64_t number) {
    int64_t begin, end;
    beginningOf<S>(segments, number, flatTile<S>(number, tiles, extent), starts, begin, end);
    return EndingSegments<S>(segments, begin, end, number, tiles);
  };
  for (int64_t first = 0; first < tiles; first += kAtOnce * S::kThreads) {
    bool any = false;
    KELPIE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      const int64_t number = first + k * S::kThreads + int64_t(threadIdx.x);
      if (number < tiles && endingIn(number).crowded()) any = true;
    }
    if (__syncthreads_and(!any)) continue;
    const int64_t behind = first + kAtOnce * S::kThreads < tiles ? first + kAtOnce * S::kThreads : tiles;
    for (int64_t number = first; number < behind; ++number) {
      const EndingSegments<S> ending = endingIn(number);
      if (!ending.crowded()) continue;
      for (int64_t segment = ending.first + block * S::kThreads + threadIdx.x; segment < ending.behind;
           segment += blocks * S::kThreads)
        if (segments.begin(segment) == segments.begin(segment + 1)) empty(segment);
    }
  }
}

}  // namespace kelpie

// Ranges: a contiguous piece of a segmented space for each block, worked off tile by tile.
//
// For passes that fold segments and scan nothing. Elements and segment ends are merged into one list as in
// segments.cuh, but cut into few equal pieces, a block each: a block searches once, keeps the fold of the
// segment it is in from tile to tile, and only what crosses from piece to piece is passed on by look-back.
// Tiles are aligned pieces of elements; the segments that end in one are found by reading on in the offsets.
#pragma once

#include "segments.cuh"

namespace kelpie {

/// How many segment ends are among the first `diagonal` entries of the merged list. Called by all lanes of a
/// warp, which narrow the range 32-fold a step.
template <class Segments>
KELPIE_DEVICE int64_t splitByWarp(const Segments& segments, int64_t diagonal, int64_t extent) {
  int64_t low = diagonal > extent ? diagonal - extent : 0;
  int64_t high = diagonal < segments.count ? diagonal : segments.count;
  while (low < high) {
    const int64_t step = (high - low + 31) / 32;
    const int64_t at = low + laneIndex() * step;
    const bool before = at < high && segments.begin(at + 1) < diagonal - at;
    const uint32_t marks = __ballot_sync(kFullWarp, before);  // some first lanes
    const int passed = marks == kFullWarp ? 32 : __ffs(~marks) - 1;
    const int64_t limit = low + passed * step;
    if (limit < high) high = limit;
    if (passed > 0) low += (passed - 1) * step + 1;
  }
  return low;
}

template <class S>
struct SegmentRange {
  static constexpr int64_t kNever = 0x7fffffffffffffffll;
  static_assert(!S::kBackward, "ranges are worked off forward");

  struct Shared {
    int64_t split[2];
    int64_t lastEnd, nextEnd;  ///< of the tile: where its last end lies, and the next one after it
    int ends;
    uint32_t order;
    /// 1 where a segment begins at this offset of the tile; the threads that read it clear it.
    alignas(16) uint8_t marks[S::kItems + 16];
  };

  int64_t order;                ///< number of the range
  int64_t element, elementEnd;  ///< not yet dealt
  int64_t segment, segmentEnd;  ///< likewise: segments that end in this range
  int64_t nextEnd;              ///< where `segment` ends; kNever: in a later range
  bool ended = false;           ///< a segment has ended in an earlier tile of the range

  /// Takes a range; all lower ones are taken. Contains barriers.
  template <class Segments>
  __device__ __forceinline__ SegmentRange(const Launch& launch, const Segments& segments, int64_t extent,
                                          Shared& shared) {
    if (threadIdx.x == 0) shared.order = atomicInc(&launch.counters[0], gridDim.x - 1);
    uint32_t* const words = reinterpret_cast<uint32_t*>(shared.marks);
    for (int k = threadIdx.x; k < (S::kItems + 16) / 4; k += S::kThreads) words[k] = 0;
    __syncthreads();
    order = shared.order;
    const int64_t all = extent + segments.count;
    for (int which = warpIndex(); which < 2; which += S::kWarps) {
      const int64_t split = splitByWarp(segments, (order + which) * all / launch.tiles, extent);
      if (laneIndex() == 0) shared.split[which] = split;
    }
    __syncthreads();
    segment = shared.split[0];
    segmentEnd = shared.split[1];
    element = order * all / launch.tiles - segment;
    elementEnd = (order + 1) * all / launch.tiles - segmentEnd;
    nextEnd = segment < segmentEnd ? segments.begin(segment + 1) : kNever;
  }

  __device__ __forceinline__ bool more() const { return element < elementEnd || segment < segmentEnd; }

  __device__ __forceinline__ Tile tile() const {
    const int64_t base = element / S::kWidth * S::kWidth;
    const int first = int(element - base);
    const int64_t left = elementEnd - base;
    return {base, first, (left < S::kItems ? int(left) : S::kItems) - first};
  }
  static __device__ __forceinline__ int64_t end(const Tile& tile) {
    return tile.base + tile.first + tile.count;
  }
  /// Whether a segment ends in the tile, or at its end.
  __device__ __forceinline__ bool endsIn(const Tile& tile) const { return nextEnd <= end(tile); }

  /// Marks where segments begin, of a tile in which one ends. A barrier must follow before marks and ends are
  /// read, and another one before the next call.
  template <class Segments>
  __device__ __forceinline__ void mark(const Segments& segments, const Tile& tile, Shared& shared) const {
    constexpr int kAtOnce = 4;  // loads in flight
    const int64_t tileEnd = end(tile);
    for (int64_t first = segment + threadIdx.x;; first += kAtOnce * S::kThreads) {
      int64_t from[kAtOnce], to[kAtOnce];
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int64_t s = first + j * S::kThreads;
        from[j] = s <= segmentEnd ? segments.begin(s) : kNever;
        to[j] = s < segmentEnd ? segments.begin(s + 1) : kNever;
      }
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int64_t s = first + j * S::kThreads;
        if (to[j] <= tileEnd) {
          shared.marks[to[j] - tile.base] = 1;
        } else if (from[j] <= tileEnd && s > segment) {  // the first that does not end here
          shared.ends = int(s - segment);
          shared.lastEnd = from[j];
          shared.nextEnd = to[j];
        }
      }
      if (to[kAtOnce - 1] > tileEnd) break;
    }
  }

  /// Goes on behind a tile; `ending`: endsIn(tile) was true.
  __device__ __forceinline__ void advance(const Tile& tile, bool ending, const Shared& shared) {
    element = end(tile);
    if (!ending) return;
    segment += shared.ends;
    nextEnd = shared.nextEnd;
    ended = true;
  }
};

}  // namespace kelpie

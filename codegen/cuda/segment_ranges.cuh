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

/// kNumbers: items may ask for the number of their segment.
///
/// Positions in a range are 32-bit: elements and ends are counted from its first, since a range of 2^31
/// entries would be one of a list of 2^42.
template <class S, bool kNumbers = false>
struct SegmentRange {
  static constexpr int kNever = 0x7fffffff;
  static_assert(!S::kBackward, "ranges are worked off forward");

  struct Shared {
    int64_t split[2];
    int lastEnd, nextEnd;  ///< of the tile: where its last end lies, and the next one after it
    int ends;
    uint32_t order;
    /// 1 where a segment begins at this offset of the tile; the threads that read it clear it.
    alignas(16) uint8_t marks[S::kItems + 16];
    /// With kNumbers: 0, or the segment (less the range's `segment`) that begins at this offset and has
    /// elements behind it; cleared likewise. And that of the first element of each warp's chunk.
    alignas(16) int numbers[kNumbers ? S::kItems + 4 : 1];
    int chunkNumber[S::kWarps];
  };

  int64_t origin;           ///< of elements: a multiple of the width
  int64_t firstSegment;     ///< of those that end in this range
  int element, elementEnd;  ///< not yet dealt
  int segment, segmentEnd;  ///< likewise
  int nextEnd;              ///< where `segment` ends; kNever: in a later range
  bool sparse;              ///< a tile has no more ends than threads, on average

  /// Takes a range; all lower ones are taken. Contains barriers.
  template <class Segments>
  __device__ __forceinline__ SegmentRange(const Launch& launch, const Segments& segments, int64_t extent,
                                          Shared& shared) {
    if (threadIdx.x == 0) shared.order = atomicInc(&launch.counters[0], gridDim.x - 1);
    uint32_t* const words = reinterpret_cast<uint32_t*>(shared.marks);
    for (int k = threadIdx.x; k < (S::kItems + 16) / 4; k += S::kThreads) words[k] = 0;
    if (kNumbers) {
      for (int k = threadIdx.x; k < S::kItems + 4; k += S::kThreads) shared.numbers[k] = 0;
      if (threadIdx.x < S::kWarps) shared.chunkNumber[threadIdx.x] = 0;
    }
    __syncthreads();
    const int64_t order = shared.order, all = extent + segments.count;
    for (int which = warpIndex(); which < 2; which += S::kWarps) {
      const int64_t split = splitByWarp(segments, (order + which) * all / launch.tiles, extent);
      if (laneIndex() == 0) shared.split[which] = split;
    }
    __syncthreads();
    firstSegment = shared.split[0];
    segment = 0;
    segmentEnd = int(shared.split[1] - firstSegment);
    const int64_t begin = order * all / launch.tiles - firstSegment;
    origin = begin / S::kWidth * S::kWidth;
    element = int(begin - origin);
    elementEnd = int((order + 1) * all / launch.tiles - shared.split[1] - origin);
    nextEnd = segmentEnd > 0 ? int(segments.begin(firstSegment + 1) - origin) : kNever;
    sparse = int64_t(segmentEnd) * S::kItems <= int64_t(elementEnd - element) * S::kThreads;
  }

  /// Where a segment that ends in this range does so. Here and below, `segments` are numbered from the first.
  template <class Segments>
  __device__ __forceinline__ int endOf(const Segments& segments, int number) const {
    return int(segments.begin(number + 1) - origin);
  }

  __device__ __forceinline__ bool more() const { return element < elementEnd || segment < segmentEnd; }
  /// A segment has ended in an earlier tile of the range.
  __device__ __forceinline__ bool ended() const { return segment > 0; }

  __device__ __forceinline__ Tile tile() const {
    const int base = element & -S::kWidth;
    const int first = element - base, left = elementEnd - base;
    return {origin + base, first, (left < S::kItems ? left : S::kItems) - first};
  }
  /// Whether a segment ends in the tile, or at its end.
  __device__ __forceinline__ bool endsIn(const Tile& tile) const { return nextEnd <= element + tile.count; }

  /// Marks where segments begin, of a tile in which one ends. A barrier must follow before marks and ends are
  /// read, and another one before the next call.
  template <class Segments>
  __device__ __forceinline__ void mark(const Segments& segments, const Tile& tile, Shared& shared) const {
    if (sparse) {
      markAtOnce<1>(segments, tile, shared);
    } else {
      markAtOnce<4>(segments, tile, shared);
    }
  }
  /// kAtOnce: loads in flight.
  template <int kAtOnce, class Segments>
  __device__ __forceinline__ void markAtOnce(const Segments& segments, const Tile& tile,
                                             Shared& shared) const {
    const int tileEnd = element + tile.count, base = element - tile.first;
    for (int number = segment + threadIdx.x;; number += kAtOnce * S::kThreads) {
      int from[kAtOnce], to[kAtOnce];
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int k = number + j * S::kThreads;
        from[j] = k > segment && k <= segmentEnd ? endOf(segments, k - 1) : kNever;
        to[j] = k < segmentEnd ? endOf(segments, k) : kNever;
      }
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        if (kNumbers && from[j] <= tileEnd && to[j] > from[j])
          markNumber(number + j * S::kThreads - segment, from[j] - base, to[j] - base, shared);
        if (to[j] <= tileEnd) {
          shared.marks[to[j] - base] = 1;
        } else if (from[j] <= tileEnd) {  // the first that does not end here
          shared.ends = number + j * S::kThreads - segment;
          shared.lastEnd = from[j];
          shared.nextEnd = to[j];
        }
      }
      if (to[kAtOnce - 1] > tileEnd) break;
    }
  }

  /// The segments (less `segment`) of this thread's items, of a tile that has been marked where `ending`.
  /// Contains a barrier where `ending`; another one must follow before the next call of `mark`.
  __device__ __forceinline__ void numbers(bool ending, Shared& shared,
                                          int (&number)[S::kRows][S::kWidth]) const {
    if (!ending) {
      KELPIE_UNROLL
      for (int row = 0; row < S::kRows; ++row) {
        KELPIE_UNROLL
        for (int v = 0; v < S::kWidth; ++v) number[row][v] = 0;
      }
      return;
    }
    __syncthreads();
    using Numbers = Pack<int, S::kWidth>;
    int carry = shared.chunkNumber[warpIndex()];
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      Numbers& place = *reinterpret_cast<Numbers*>(shared.numbers + S::position(row));
      const Numbers marks = place;
      int latest = 0;
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) {
        if (marks.item[v] != 0) latest = marks.item[v];
        number[row][v] = latest;
      }
      if (latest != 0) {
        Numbers none;
        KELPIE_UNROLL
        for (int v = 0; v < S::kWidth; ++v) none.item[v] = 0;
        place = none;
      }
      const uint32_t marked = __ballot_sync(kFullWarp, latest != 0);
      const uint32_t lower = marked & ((1u << laneIndex()) - 1);
      const int nearest = shuffleFrom(latest, lower != 0 ? 31 - __clz(lower) : 0);
      const int inherited = lower != 0 ? nearest : carry;
      const int last = shuffleFrom(latest, marked != 0 ? 31 - __clz(marked) : 0);
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) {
        if (number[row][v] == 0) number[row][v] = inherited;
      }
      if (marked != 0) carry = last;
    }
    __syncwarp();
    if (laneIndex() == 0) shared.chunkNumber[warpIndex()] = 0;
  }

  /// Goes on behind a tile in which `ends` segments ended; `next` is where the next one does.
  __device__ __forceinline__ void advance(const Tile& tile, int ends, int next) {
    element += tile.count;
    segment += ends;
    nextEnd = next;
  }

 private:
  /// Marks the offsets from..to-1 of the tile as those of a segment.
  static __device__ __forceinline__ void markNumber(int number, int from, int to, Shared& shared) {
    shared.numbers[from] = number;
    for (int chunk = (from + S::kChunk - 1) / S::kChunk; chunk < S::kWarps && chunk * S::kChunk < to; ++chunk)
      shared.chunkNumber[chunk] = number;
  }
};

}  // namespace kelpie

// Segmented spaces: tiles of equal work by merge path, and the segments of the items of a tile.
//
// The elements of a space and the ends of its segments are merged into one list: an end comes after the last
// element of its segment. Tiles are equal pieces of that list, so a million empty segments are spread over
// blocks as evenly as a million elements, and the segments that end in a tile are neighbours. An end may
// count more than an element, so that fewer of them can be in a tile than elements: results of segments are
// staged in shared memory, and where there is much to stage, tiles would be short otherwise. No segment
// numbers are stored: a tile marks its segment borders in shared memory, and items find theirs with ballots.
#pragma once

#include "tile.cuh"

namespace kelpie {

/// Segments given by ascending offsets[0..count]; offsets[0] is 0.
struct OffsetSegments {
  const int64_t* offsets;
  int64_t count;
  __device__ __forceinline__ int64_t begin(int64_t segment) const { return offsets[segment]; }
  /// The same numbered from segment `first`.
  __device__ __forceinline__ OffsetSegments from(int64_t first) const {
    return {offsets + first, count - first};
  }
  /// The segment of an element: the last that begins at or before it.
  __device__ __forceinline__ int64_t of(int64_t element) const {
    int64_t low = 0, high = count;
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (offsets[middle] <= element ? low : high) = middle;
    }
    return low;
  }
  /// How many segment ends, of `weight` entries each, are among the first `diagonal` entries of the merged
  /// list, as a whole.
  __device__ __forceinline__ int64_t split(int64_t diagonal, int64_t extent, int weight) const {
    int64_t low = diagonal > extent ? (diagonal - extent) / weight : 0;
    int64_t high = diagonal / weight < count ? diagonal / weight : count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (offsets[middle + 1] + weight * (middle + 1) <= diagonal) {
        low = middle + 1;
      } else {
        high = middle;
      }
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
  __device__ __forceinline__ int64_t split(int64_t diagonal, int64_t, int weight) const {
    const int64_t ends = diagonal / (length + weight);
    return ends < count ? ends : count;
  }
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

/// A tile of the merged list: its elements, and the segments first..first+ends-1 that end in it. Elements
/// behind the last of these ends belong to segment first+ends, and so on backwards.
struct SegmentTile : Tile {
  int64_t firstSegment;
  int ends;
};

/// kEndWeight: entries of the merged list that an end takes.
template <class S, int kEndWeight>
struct SegmentMap {
  /// Entries of the merged list in a tile: fewer than positions, so that a tile may begin at an aligned
  /// element.
  static constexpr int kEntries = S::kItems - S::kWidth;
  static constexpr int kEnds = (kEntries + kEndWeight - 1) / kEndWeight;  ///< of a tile at most

  struct Shared {
    /// 0, or: the segment number (less firstSegment) that begins at this memory offset.
    alignas(8) uint16_t marks[S::kItems + 4];
    /// Segment (likewise) of the first element of each warp's chunk, warps in memory order.
    uint16_t chunkSegment[S::kWarps];
    int64_t split[2], element[2];  ///< where the tile begins and ends
  };

  /// Clears the marks; a barrier must follow before `mark`.
  static __device__ __forceinline__ void clear(Shared& shared) {
    uint32_t* words = reinterpret_cast<uint32_t*>(shared.marks);
    for (int k = threadIdx.x; k < (S::kItems + 4) / 2; k += S::kThreads) words[k] = 0;
    if (threadIdx.x < S::kWarps) shared.chunkSegment[threadIdx.x] = 0;
  }

  /// Looks up where tile number `tile`, in order, begins and ends. `splits`: split(k * kEntries) for all
  /// tiles, or null where they are few: then two threads search. A barrier must follow.
  template <class Segments>
  static __device__ __forceinline__ void lookUp(int64_t tile, const Segments& segments, int64_t tiles,
                                                int64_t extent, const int64_t* splits, Shared& shared) {
    if (threadIdx.x > 1) return;
    const int64_t place = (S::kBackward ? tiles - 1 - tile : tile) + threadIdx.x;
    const int64_t all = extent + kEndWeight * segments.count;
    const int64_t diagonal = place * kEntries < all ? place * kEntries : all;
    const int64_t split = splits != nullptr ? splits[place] : segments.split(diagonal, extent, kEndWeight);
    int64_t element = diagonal - kEndWeight * split;
    if (kEndWeight > 1 && split < segments.count) {  // the cut may go through an end
      const int64_t end = segments.begin(split + 1);
      if (end < element) element = end;
    }
    shared.split[threadIdx.x] = split;
    shared.element[threadIdx.x] = element;
  }

  /// The tile that has been looked up.
  static __device__ __forceinline__ SegmentTile locate(const Shared& shared) {
    const int64_t splitBegin = shared.split[0], begin = shared.element[0];
    SegmentTile result;
    result.firstSegment = splitBegin;
    result.ends = int(shared.split[1] - splitBegin);
    result.base = begin / S::kWidth * S::kWidth;
    result.first = int(begin - result.base);
    result.count = int(shared.element[1] - begin);
    return result;
  }

  /// Marks where segments firstSegment+1 .. firstSegment+ends begin. Of several at one place only one has
  /// elements; the last of all is marked in any case, since its mark says that an end lies there. A barrier
  /// must follow.
  template <class Segments>
  static __device__ __forceinline__ void mark(const Segments& segments, const SegmentTile& tile,
                                              Shared& shared) {
    constexpr int kAtOnce = 4;  // loads in flight
    for (int first = threadIdx.x + 1; first <= tile.ends; first += kAtOnce * S::kThreads) {
      int from[kAtOnce], to[kAtOnce];
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int k = first + j * S::kThreads;
        const int64_t segment = tile.firstSegment + k;
        from[j] = k <= tile.ends ? int(segments.begin(segment) - tile.base) : 0;
        to[j] = k < tile.ends ? int(segments.begin(segment + 1) - tile.base) : S::kItems;
      }
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int k = first + j * S::kThreads;
        if (k > tile.ends || (k < tile.ends && to[j] == from[j])) continue;
        shared.marks[from[j]] = uint16_t(k);
        for (int chunk = (from[j] + S::kChunk - 1) / S::kChunk;
             chunk < S::kWarps && chunk * S::kChunk < to[j]; ++chunk) {
          shared.chunkSegment[chunk] = uint16_t(k);
        }
      }
    }
  }

  /// Whether the elements of the first segment that ends in the tile are all in lower tiles (in memory).
  static __device__ __forceinline__ bool beganBelow(const SegmentTile& tile, const Shared& shared) {
    return tile.ends > 0 && shared.marks[tile.first] != 0;
  }

  uint32_t heads = 0;  ///< bit of an item: a segment begins with it, in order
  uint32_t tails = 0;  ///< a segment ends with it, in order
  bool ends = false;   ///< in order, the last segment of the tile ends with it

  /// Reads the borders of this thread's items.
  __device__ __forceinline__ SegmentMap(const SegmentTile& tile, const Shared& shared) {
    ends = shared.marks[S::kBackward ? tile.first : tile.first + tile.count] != 0;
    if (tile.ends == 0) return;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const int group = S::group(row);
      uint32_t border = 0;  // bit k: a border lies before memory offset group+k
      const Pack<uint16_t, S::kWidth> marks =
          *reinterpret_cast<const Pack<uint16_t, S::kWidth>*>(shared.marks + group);
      KELPIE_UNROLL
      for (int m = 0; m < S::kWidth; ++m) border |= uint32_t(marks.item[m] != 0) << m;
      border |= uint32_t(shared.marks[group + S::kWidth] != 0) << S::kWidth;
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) {
        const int bit = row * S::kWidth + v, m = S::slot(v);
        heads |= (border >> (S::kBackward ? m + 1 : m) & 1) << bit;
        tails |= (border >> (S::kBackward ? m : m + 1) & 1) << bit;
      }
    }
  }

  /// The segments (less firstSegment) of this thread's items.
  static __device__ __forceinline__ void numbers(const SegmentTile& tile, const Shared& shared,
                                                 int (&number)[S::kRows][S::kWidth]) {
    const int lane = laneIndex();
    int carry = shared.chunkSegment[S::kBackward ? S::kWarps - 1 - warpIndex() : warpIndex()];
    KELPIE_UNROLL
    for (int k = 0; k < S::kRows; ++k) {
      const int row = S::kBackward ? S::kRows - 1 - k : k;  // rows in memory order
      if (tile.ends == 0) {
        KELPIE_UNROLL
        for (int v = 0; v < S::kWidth; ++v) number[row][v] = 0;
        continue;
      }
      const Pack<uint16_t, S::kWidth> marks =
          *reinterpret_cast<const Pack<uint16_t, S::kWidth>*>(shared.marks + S::group(row));
      int latest = 0;
      KELPIE_UNROLL
      for (int m = 0; m < S::kWidth; ++m) {
        if (marks.item[m] != 0) latest = marks.item[m];
        number[row][S::slot(m)] = latest;
      }
      const uint32_t marked = __ballot_sync(kFullWarp, latest != 0);
      // Lanes that lie before this one in memory.
      const uint32_t lower = marked & (S::kBackward ? ~((2u << lane) - 1) : (1u << lane) - 1);
      const int source = S::kBackward ? __ffs(lower) - 1 : 31 - __clz(lower);
      const int inherited = __shfl_sync(kFullWarp, latest, lower != 0 ? source : lane);
      const int last = S::kBackward ? __ffs(marked) - 1 : 31 - __clz(marked);
      const int lastMark = __shfl_sync(kFullWarp, latest, marked != 0 ? last : 0);
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) {
        if (number[row][v] == 0) number[row][v] = lower != 0 ? inherited : carry;
      }
      if (marked != 0) carry = lastMark;
    }
  }
};

/// splits[k] = split(k * entries) for k <= tiles: one thread each.
KELPIE_DEVICE void splitSegments(const OffsetSegments& segments, int64_t extent, int64_t entries,
                                 int64_t endWeight, int64_t tiles, int64_t* splits) {
  const int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k > tiles) return;
  const int64_t all = extent + endWeight * segments.count;
  splits[k] = segments.split(k * entries < all ? k * entries : all, extent, int(endWeight));
}

}  // namespace kelpie

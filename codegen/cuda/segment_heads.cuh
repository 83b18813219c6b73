// Heads of segments in tiles of elements, for passes that scan segments and need no more of them. Passes
// whose thunks also need the numbers of segments have segment_numbers.cuh.
//
// Tiles are whole pieces of elements, as in a flat space. A tile marks where segments begin in it, and every
// thread takes the heads among its items as bits. Segments that begin in a tile are neighbours; `starts`
// tells where they do in the list of segments.
#pragma once

#include "segments.cuh"

namespace kelpie {

/// The first segment that begins at or behind an element (the number of segments, where none does). Called by
/// all lanes of a warp, which narrow the range 32-fold a step.
template <class Segments>
KELPIE_DEVICE int64_t firstBeginning(const Segments& segments, int64_t element) {
  int64_t low = 0, high = segments.count;
  while (low < high) {
    const int64_t step = (high - low + 31) / 32;
    const int64_t at = low + laneIndex() * step;
    const bool before = at < high && segments.begin(at) < element;
    const uint32_t marks = __ballot_sync(kFullWarp, before);  // some first lanes
    const int passed = marks == kFullWarp ? 32 : __ffs(~marks) - 1;
    const int64_t limit = low + passed * step;
    if (limit < high) high = limit;
    if (passed > 0) low += (passed - 1) * step + 1;
  }
  return low;
}

KELPIE_DEVICE int64_t firstBeginning(const RegularSegments& segments, int64_t element) {
  if (segments.length == 0) return segments.count;
  const int64_t first = (element + segments.length - 1) / segments.length;
  return first < segments.count ? first : segments.count;
}

/// The segments that begin in a tile, begin..end-1. `starts`: firstBeginning of the first element of all
/// tiles (in memory) and of the end, or null where tiles are few.
template <class S, class Segments>
KELPIE_DEVICE void beginningIn(const Segments& segments, const Tile& tile, const int64_t* starts,
                               int64_t& begin, int64_t& end) {
  const int64_t place = tile.base / S::kItems;
  if (starts != nullptr) {
    begin = starts[place];
    end = starts[place + 1];
  } else {
    begin = firstBeginning(segments, tile.base);
    end = firstBeginning(segments, tile.base + tile.count);
  }
}

template <class S>
struct SegmentHeads {
  struct Shared {
    alignas(16) uint8_t marks[S::kItems + 16];  ///< 1: a segment begins at this memory offset
  };
  /// A tile in which more segments begin, nearly all of them empty, is searched for instead of read.
  static constexpr int64_t kMany = 32 * S::kItems;

  /// A barrier must follow before `mark`.
  static __device__ __forceinline__ void clear(Shared& shared) {
    uint32_t* words = reinterpret_cast<uint32_t*>(shared.marks);
    for (int k = threadIdx.x; k < (S::kItems + 16) / 4; k += S::kThreads) words[k] = 0;
  }

  /// Marks the heads of a tile. A barrier must follow.
  template <class Segments>
  static __device__ __forceinline__ void mark(const Segments& segments, const Tile& tile, int64_t extent,
                                              const int64_t* starts, Shared& shared) {
    const int64_t behind = tile.base + tile.count;
    int64_t begin, end;
    beginningIn<S>(segments, tile, starts, begin, end);
    if (S::kBackward && threadIdx.x == 0) {  // in order, the first item begins a segment if one ends with it
      shared.marks[tile.count] = behind == extent || (end < segments.count && segments.begin(end) == behind);
    }
    const auto own = segments.from(begin);
    const int64_t base = tile.base;
    if (end - begin > kMany) {
      for (int offset = threadIdx.x; offset < tile.count; offset += S::kThreads) {
        int64_t low = 0, high = end - begin;
        while (low < high) {
          const int64_t middle = (low + high) / 2;
          if (own.begin(middle) - base < offset) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        if (low < end - begin && own.begin(low) - base == offset) shared.marks[offset] = 1;
      }
      return;
    }
    // Loads in flight. Where thousands of segments begin in a tile, its block waits for nothing else: a scan
    // of Zipf lengths took 0.353 with 4, 0.334 with 8.
    constexpr int kAtOnce = 8;
    const int count = int(end - begin);
    for (int first = threadIdx.x; first < count; first += kAtOnce * S::kThreads) {
      int at[kAtOnce];
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int k = first + j * S::kThreads;
        at[j] = k < count ? int(own.begin(k) - base) : -1;
      }
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        if (at[j] >= 0) shared.marks[at[j]] = 1;
      }
    }
  }

  /// Bits of this thread's items: a segment begins with it, in order.
  static __device__ __forceinline__ uint32_t heads(const Shared& shared) {
    uint32_t heads = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const int group = S::group(row);
      if (!S::kBackward) {
        heads |= bitsOf(*reinterpret_cast<const Pack<uint8_t, S::kWidth>*>(shared.marks + group))
                 << (row * S::kWidth);
        continue;
      }
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v)
        heads |= uint32_t(shared.marks[group + S::slot(v) + 1]) << (row * S::kWidth + v);
    }
    return heads;
  }
};

/// starts[k] for k <= tiles, for tiles of `items` elements: one thread each.
KELPIE_DEVICE void findStarts(const OffsetSegments& segments, int64_t extent, int64_t items, int64_t tiles,
                              int64_t* starts) {
  constexpr int kWays = 8;  // loads in flight shorten the search
  const int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k > tiles) return;
  const int64_t element = k * items < extent ? k * items : extent;
  int64_t low = 0, high = segments.count;
  while (low < high) {
    const int64_t step = (high - low) / kWays + 1;
    bool before[kWays - 1];
    KELPIE_UNROLL
    for (int j = 0; j < kWays - 1; ++j) {
      const int64_t at = low + (j + 1) * step - 1;
      before[j] = at < high && segments.begin(at) < element;
    }
    int passed = 0;
    KELPIE_UNROLL
    for (int j = 0; j < kWays - 1; ++j) passed += before[j];
    const int64_t limit = low + (passed + 1) * step - 1;
    low += passed * step;
    if (limit < high) high = limit;
  }
  starts[k] = low;
}

}  // namespace kelpie

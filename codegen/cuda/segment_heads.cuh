// Heads of segments in tiles of elements, for passes that scan segments and need no more of them. Passes
// whose thunks also need the numbers of segments have segment_numbers.cuh.
//
// Tiles are whole pieces of elements, as in a flat space. A tile marks where segments begin in it, and every
// thread takes the heads among its items as bits. Segments that begin in a tile are neighbours; `starts`
// tells where they do in the list of segments.
#pragma once

#include "segments.cuh"

namespace kelpie {

/// The segments that begin in a tile of a space of `extent` elements, begin..end-1. `starts`: the first
/// segment that begins at or behind the first element of each tile (in memory), and at or behind the end, or
/// null where tiles are few. Called by all lanes of a warp.
template <class S, class Offset>
KELPIE_DEVICE void beginningIn(const OffsetSegments<Offset>& segments, const Tile& tile, int64_t extent,
                               const int64_t* starts, int64_t& begin, int64_t& end) {
  if (starts != nullptr) {
    const int64_t place = tile.base / S::kItems;
    begin = starts[place];
    end = starts[place + 1];
    return;
  }
  const int64_t element = laneIndex() < 16 ? tile.base : tile.base + tile.count;
  int64_t low = 0, high = element > 0 ? segments.count : 0, ignored;
  searchAroundMean(segments, element, extent, low, high);
  const int64_t first = searchByHalfWarp<1>(
      low, high, [&](int64_t at) { return segments.begin(at); },
      [&](int64_t, int64_t place) { return place < element; }, ignored);
  begin = shuffleFrom(first, 0);
  end = shuffleFrom(first, 16);
}
template <class S>
KELPIE_DEVICE void beginningIn(const RegularSegments& segments, const Tile& tile, int64_t, const int64_t*,
                               int64_t& begin, int64_t& end) {
  const auto first = [&](int64_t element) {
    if (segments.length == 0) return segments.count;
    const int64_t behind = (element + segments.length - 1) / segments.length;
    return behind < segments.count ? behind : segments.count;
  };
  begin = first(tile.base);
  end = first(tile.base + tile.count);
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
    beginningIn<S>(segments, tile, extent, starts, begin, end);
    if (S::kBackward && threadIdx.x == 0) {  // in order, the first item begins a segment if one ends with it
      shared.marks[tile.count] = behind == extent || (end < segments.count && segments.begin(end) == behind);
    }
    if (begin == end) return;
    const int64_t base = tile.base;
    if (end - begin > kMany) {
      const auto own = segments.from(begin);
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
    // Begins are loaded as neighbours, some more than those of the tile at both ends. Where thousands of
    // segments begin in a tile its block waits for nothing else: of 2^27 elements, with a segment for each
    // and as many empty ones, a scan took 0.72 ms with loads of one begin, 8 on the way, and takes 0.60 with
    // these.
    constexpr int kAtOnce = 2, kTogether = Segments::kNeighbours;
    const int ahead = int(begin % kTogether), upTo = int(end - begin) + ahead;
    const auto own = segments.from(begin - ahead);
    const auto mark = [&](int k, int limit, int64_t at) {
      if (k >= ahead && k < limit) shared.marks[int(at) - int(base)] = 1;
    };
    // Behind the last segment there may be nothing to load.
    const int rest = upTo % kTogether;
    const int whole = rest == 0 || own.count + 1 >= upTo - rest + kTogether ? upTo : upTo - rest;
    if (const int k = whole + int(threadIdx.x); k < upTo) mark(k, upTo, own.begin(k));
    KELPIE_NO_UNROLL
    for (int first = threadIdx.x * kTogether; first < whole; first += kAtOnce * S::kThreads * kTogether) {
      typename Segments::Neighbours begins[kAtOnce];
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int k = first + j * S::kThreads * kTogether;
        if (k < whole) begins[j] = own.neighbours(k);
      }
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        KELPIE_UNROLL
        for (int v = 0; v < kTogether; ++v)
          mark(first + j * S::kThreads * kTogether + v, whole, begins[j].item[v]);
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
template <class Segments>
KELPIE_DEVICE void findStarts(const Segments& segments, int64_t extent, int64_t items, int64_t tiles,
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

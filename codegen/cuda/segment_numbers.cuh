// Numbers of the segments of items in tiles of elements (segment_heads.cuh), for passes whose thunks need
// them and that have no results for segments.
//
// A tile marks where segments begin with their number among those that begin in it, and what number the first
// element of each row of a warp has: so every row finds the numbers of its items by itself, and a thread
// holds those of one row at a time.
#pragma once

#include "segment_heads.cuh"

namespace kelpie {

/// What a tile keeps of all its segments in shared memory, for its items: nothing. Passes have structures of
/// their own like this one, which load it while they look for where segments begin: so all that a tile needs
/// is on the way at once, instead of what each row of items does. Maps of 2^27 float32, times a number of
/// their segment of 8, spent half of their time on an H200 in waiting for rows.
struct NoSegmentValues {
  static constexpr int kRoom = 0;  ///< segments that there is room for
  struct Item {};                  ///< of a segment
  __device__ __forceinline__ Item load(int64_t) const { return {}; }
  __device__ __forceinline__ void store(int, const Item&) const {}
};

template <class S>
struct SegmentNumbers {
  static constexpr int kRowItems = 32 * S::kWidth;  ///< of a warp
  static constexpr int kRowsOfTile = S::kItems / kRowItems;
  /// A tile in which more segments begin, nearly all of them empty, is searched for each item.
  static constexpr int64_t kMany = 32 * S::kItems < 65535 ? 32 * S::kItems : 65535;

  struct Shared {
    /// 0, or 1 + the segment (less the first that begins in the tile) that begins at this memory offset and
    /// has elements.
    alignas(16) uint16_t marks[S::kItems + 8];
    uint16_t
        rows[kRowsOfTile];  ///< likewise, of the segment of the first element of each row, in memory order
  };

  int64_t first;  ///< the segment before the first that begins in the tile
  bool alone;     ///< none begins in it: all items are of that segment
  bool kept;      ///< values of `first` and those that begin in the tile have been stored, in this order

  /// A barrier must follow before the constructor.
  static __device__ __forceinline__ void clear(Shared& shared) {
    uint32_t* const words = reinterpret_cast<uint32_t*>(shared.marks);
    for (int k = threadIdx.x; k < (S::kItems + 8) / 2; k += S::kThreads) words[k] = 0;
    for (int k = threadIdx.x; k < kRowsOfTile; k += S::kThreads) shared.rows[k] = 0;
  }

  /// Marks a tile; `starts` as in SegmentHeads. A barrier must follow.
  template <class Segments, class Values = NoSegmentValues>
  __device__ __forceinline__ SegmentNumbers(const Segments& segments, const Tile& tile, int64_t extent,
                                            const int64_t* starts, Shared& shared,
                                            const Values& values = Values()) {
    int64_t begin, end;  // of the segments that begin in the tile
    beginningIn<S>(segments, tile, extent, starts, begin, end);
    first = begin - 1;
    alone = begin == end;
    kept = !alone && end - begin < Values::kRoom;
    crowded_ = end - begin > kMany;
    if (S::kBackward && threadIdx.x == 0) {  // in order, the first item begins a segment if one ends with it
      const int64_t behind = tile.base + tile.count;
      shared.marks[tile.count] = behind == extent || (end < segments.count && segments.begin(end) == behind);
    }
    const auto own = segments.from(begin);
    if (crowded_) {
      KELPIE_NO_UNROLL
      for (int offset = threadIdx.x; offset < tile.count; offset += S::kThreads) {
        const int64_t upTo = countUpTo(own, tile.base + offset, end - begin);
        if (upTo > 0 && own.begin(upTo - 1) == tile.base + offset) shared.marks[offset] = 1;
      }
      return;
    }
    constexpr int kAtOnce = 4;  // loads in flight
    const int count = int(end - begin);
    const bool keepsFirst = kept && begin > 0 && threadIdx.x == S::kThreads - 1;
    typename Values::Item ofFirst;
    if (keepsFirst) ofFirst = values.load(begin - 1);
    KELPIE_NO_UNROLL
    for (int low = threadIdx.x; low < count; low += kAtOnce * S::kThreads) {
      int from[kAtOnce], to[kAtOnce];
      typename Values::Item items[kAtOnce];
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int k = low + j * S::kThreads;
        from[j] = k < count ? int(own.begin(k) - tile.base) : S::kItems;
        to[j] = k + 1 < count ? int(own.begin(k + 1) - tile.base) : S::kItems;
        if (kept && k < count) items[j] = values.load(begin + k);
      }
      if (kept) {
        KELPIE_UNROLL
        for (int j = 0; j < kAtOnce; ++j) {
          const int k = low + j * S::kThreads;
          if (k < count) values.store(1 + k, items[j]);
        }
      }
      KELPIE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        if (to[j] <= from[j]) continue;
        const uint16_t mark = uint16_t(low + j * S::kThreads + 1);
        shared.marks[from[j]] = mark;
        KELPIE_NO_UNROLL
        for (int row = (from[j] + kRowItems - 1) / kRowItems; row < kRowsOfTile && row * kRowItems < to[j];
             ++row)
          shared.rows[row] = mark;
      }
    }
    if (keepsFirst) values.store(0, ofFirst);
  }

  /// Bits of this thread's items: a segment begins with it, in order.
  static __device__ __forceinline__ uint32_t heads(const Shared& shared) {
    uint32_t heads = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const Pack<uint16_t, S::kWidth> marks = marksOf(row, shared);
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) {
        const int m = S::slot(v) + (S::kBackward ? 1 : 0);
        const uint16_t mark = m < S::kWidth ? marks.item[m] : shared.marks[S::group(row) + m];
        markIf(mark != 0, row * S::kWidth + v, heads);
      }
    }
    return heads;
  }

  /// The segments (less `first`, modulo 2^32, as many empty ones may lie between two elements) of the items
  /// of a row; of those outside of the tile that of the nearest one in it.
  template <class Segments>
  __device__ __forceinline__ void row(int row, const Segments& segments, const Tile& tile,
                                      const Shared& shared, int (&number)[S::kWidth]) const {
    if (crowded_) {
      const auto own = segments.from(first + 1);
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v)
        number[v] =
            int(countUpTo(own, tile.base + tile.nearest(S::offset(row, v)), segments.count - first - 1));
      return;
    }
    const Pack<uint16_t, S::kWidth> marks = marksOf(row, shared);
    int latest = 0;
    KELPIE_UNROLL
    for (int m = 0; m < S::kWidth; ++m) {
      // Behind a backward tile there is a mark that is no number.
      const bool behind = S::kBackward && S::group(row) + m == tile.count;
      if (marks.item[m] != 0 && !behind) latest = marks.item[m];
      number[S::slot(m)] = latest;
    }
    const uint32_t marked = __ballot_sync(kFullWarp, latest != 0);
    // Lanes that lie before this one in memory.
    const uint32_t lower = marked & (S::kBackward ? ~((2u << laneIndex()) - 1) : (1u << laneIndex()) - 1);
    const int nearest = S::kBackward ? __ffs(lower) - 1 : 31 - __clz(lower);
    int inherited = shuffleFrom(latest, lower != 0 ? nearest : laneIndex());
    if (lower == 0) {
      const int place = warpIndex() * S::kRows + row;
      inherited = shared.rows[S::kBackward ? kRowsOfTile - 1 - place : place];
    }
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v)
      if (number[v] == 0) number[v] = inherited;
  }

 private:
  bool crowded_;

  static __device__ __forceinline__ Pack<uint16_t, S::kWidth> marksOf(int row, const Shared& shared) {
    return *reinterpret_cast<const Pack<uint16_t, S::kWidth>*>(shared.marks + S::group(row));
  }
  /// How many of the first `count` segments begin at or before an element. Crowded tiles are rare: a call for
  /// each of the many items keeps the code, and the time to compile it, short.
  template <class Segments>
  static __device__ __noinline__ int64_t countUpTo(const Segments& segments, int64_t element, int64_t count) {
    return firstBehind(segments, element, 0, count);
  }
};

}  // namespace kelpie

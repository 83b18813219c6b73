// Ranges: a contiguous piece of a segmented space for each warp, worked off tile by tile.
//
// For passes that fold segments and scan nothing. Elements and segment ends are merged into one list, an end
// behind the last element of its segment, so that a million empty segments are spread as evenly as a million
// elements. It is cut into few pieces of equal work, a warp each: a warp searches once, keeps the fold of the
// segment it is in from tile to tile, and waits for nobody until it is done; only what crosses from piece to
// piece is passed on, through shared memory and by look-back. Tiles are aligned pieces of elements; where
// segments end in one is read from the offsets, a tile ahead.
#pragma once

#include "segments.cuh"

namespace kelpie {

/// What elements and segment ends count where a space is cut into pieces of equal work.
template <int kOfElement, int kOfEnd>
struct Weights {
  static constexpr int kElement = kOfElement, kEnd = kOfEnd;
};

/// A place in the list: so many segment ends, and so many elements, lie before it.
struct Cut {
  int64_t segment, element;
  int64_t begin;  ///< of this segment
};

/// How many segment ends lie before `diagonal` in the weighted list, between two cuts; `begin`: where the
/// next segment begins. Called by all lanes of a warp, for a place by each half.
template <class W, class Segments>
KELPIE_DEVICE int64_t splitByHalfWarp(const Segments& segments, int64_t diagonal, const Cut& from,
                                      const Cut& to, int64_t& begin) {
  int64_t low = diagonal > W::kElement * to.element ? (diagonal - W::kElement * to.element) / W::kEnd : 0;
  if (low < from.segment) low = from.segment;
  const int64_t high = (diagonal + W::kEnd - 1) / W::kEnd;
  constexpr int64_t kUnknown = -1;
  begin = low == from.segment ? from.begin : kUnknown;
  const int64_t split = searchByHalfWarp<4>(
      low, high < to.segment ? high : to.segment, [&](int64_t at) { return segments.begin(at + 1); },
      [&](int64_t at, int64_t end) { return W::kElement * end + W::kEnd * at < diagonal; }, begin);
  if (begin == kUnknown) begin = segments.begin(split);
  return split;
}
template <class W>
KELPIE_DEVICE int64_t splitByHalfWarp(const RegularSegments& segments, int64_t diagonal, const Cut&,
                                      const Cut&, int64_t& begin) {
  const int64_t ends = (diagonal + W::kEnd - 1) / (W::kElement * segments.length + W::kEnd);
  const int64_t split = ends < segments.count ? ends : segments.count;
  begin = segments.begin(split);
  return split;
}

/// S: the tile of a warp. W: the Weights by which the list is cut. kNumbers: items may ask for the number of
/// their segment. kCompact: what is done for segment ends is written once, instead of for each of the batches
/// that are on the way; that takes up to 7 % longer where there are many, and compiles in less time.
///
/// Positions in a range are 32-bit: elements and ends are counted from its first, since a range of 2^31
/// entries would be one of a list of 2^43.
template <class S, class W, bool kNumbers, bool kCompact>
struct SegmentRange {
  static constexpr int kNever = 0x7fffffff;
  static constexpr int kBatches = 4;  ///< of 32 ends, that are loaded a tile ahead
  static_assert(S::kThreads == 32 && !S::kBackward, "ranges are worked off forward, by warps");

  /// Of a warp.
  struct Shared {
    /// 1 where a segment begins at this offset of the tile; the lanes that read it clear it.
    alignas(16) uint8_t marks[S::kItems + 16];
    /// With kNumbers, where some segments that end in the tile are empty: of the items behind so many marks,
    /// the segment (less the range's `segment`).
    int numbers[kNumbers ? S::kItems + 2 : 1];
  };

  int64_t origin;           ///< of elements: a multiple of the width
  int64_t firstSegment;     ///< of those that end in this range
  int element, elementEnd;  ///< not yet dealt
  int segment, segmentEnd;  ///< likewise
  int lastBegin;            ///< of the elements: the first since the last segment began, or of all

  /// Takes range `number` of `count` between two cuts.
  template <class Segments>
  __device__ __forceinline__ SegmentRange(int64_t number, int64_t count, const Cut& from, const Cut& to,
                                          const Segments& segments, Shared& shared) {
    uint32_t* const words = reinterpret_cast<uint32_t*>(shared.marks);
    for (int k = laneIndex(); k < (S::kItems + 16) / 4; k += 32) words[k] = 0;
    __syncwarp();
    // Lower lanes look for the begin, the others for the end.
    const int64_t before = W::kElement * from.element + W::kEnd * from.segment;
    const int64_t all = W::kElement * to.element + W::kEnd * to.segment - before;
    const int64_t upTo = (number + (laneIndex() >> 4)) * share(all, count);
    const int64_t diagonal = before + (upTo < all ? upTo : all);
    int64_t lastEnd;
    const int64_t split = splitByHalfWarp<W>(segments, diagonal, from, to, lastEnd);
    int64_t place = (diagonal - W::kEnd * split) / W::kElement;
    if (place < lastEnd) place = lastEnd;  // the cut goes through an end
    firstSegment = shuffleFrom(split, 0);
    segment = 0;
    segmentEnd = int(shuffleFrom(split, 16) - firstSegment);
    const int64_t begin = shuffleFrom(place, 0);
    origin = begin / S::kWidth * S::kWidth;
    element = int(begin - origin);
    elementEnd = int(shuffleFrom(place, 16) - origin);
    lastBegin = segmentEnd > 0 ? int(shuffleFrom(lastEnd, 16) - origin) : element;
    const float ofTile = float(segmentEnd) * S::kItems / float(elementEnd - element + 1);
    expected_ = int(k_min(ofTile, 32.0f * kBatches));
    loadEnds(segments.from(firstSegment));
  }

  __device__ __forceinline__ bool more() const { return element < elementEnd || segment < segmentEnd; }
  /// A segment has ended in an earlier tile of the range.
  __device__ __forceinline__ bool ended() const { return segment > 0; }

  __device__ __forceinline__ Tile tile() const { return tileAt(element); }
  /// The one that begins with an element.
  __device__ __forceinline__ Tile tileAt(int at) const {
    const int base = at & -S::kWidth;
    const int first = at - base, left = elementEnd - base;
    return {origin + base, first, (left < S::kItems ? left : S::kItems) - first};
  }
  /// Whether a segment ends in the tile, or at its end.
  __device__ __forceinline__ bool endsIn(const Tile& tile) const {
    return shuffleFrom(placeOf(ahead_[0]), 0) <= element + tile.count;
  }

  /// The segments that end in a tile: `count` of them from number `first` of the range on. The last ends at
  /// `last`.
  struct Ends {
    int first, count, element, last;
    int known;              ///< so many are in `at`; those behind them are to be read
    int lastKnown;          ///< where the last of these ends, if there are others
    int places;             ///< with kNumbers: different places where they end
    uint32_t at[kBatches];  ///< by lane, of 32 segments each, as loaded
  };

  /// Marks where segments begin, of a tile in which one ends. Here and below, `segments` are numbered from
  /// the first of the range. __syncwarp must follow.
  template <class Segments>
  __device__ __forceinline__ Ends mark(const Segments& segments, const Tile& tile, Shared& shared) const {
    const int tileEnd = element + tile.count, base = element - tile.first;
    Ends ends{segment, 0, element, element, loaded_, element, 0, {}};
    KELPIE_UNROLL
    for (int j = 0; j < kBatches; ++j) ends.at[j] = ahead_[j];
    const auto isKnown = [&](int known) {
      if (known == ends.known) ends.lastKnown = ends.last;
      return ends.count < known;
    };
    forBatches(segments, ends, kNever, isKnown, [&](int number, int from, int at, int) {
      if (at <= tileEnd) shared.marks[at - base] = 1;
      const uint32_t here = __ballot_sync(kFullWarp, at <= tileEnd);
      if (kNumbers) {
        // Items of segments that are not empty are behind the marks of all that end before them.
        const bool some = at <= tileEnd && at > from;
        const uint32_t others = __ballot_sync(kFullWarp, some);
        if (number == 0) ends.places = (shuffleFrom(at, 0) == element);
        if (some)
          shared.numbers[ends.places + __popc(others & ((1u << laneIndex()) - 1))] = number + laneIndex();
        ends.places += __popc(others);
      }
      ends.count += __popc(here);
      if (here != 0) ends.last = shuffleFrom(at, 31 - __clz(here));
    });
    if (kNumbers && laneIndex() == 0) shared.numbers[ends.places] = ends.count;
    return ends;
  }

  /// Bits of items that begin a segment, of a tile that has been marked.
  static __device__ __forceinline__ uint32_t heads(const Shared& shared) {
    __syncwarp();
    uint32_t heads = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      using Marks = Pack<uint8_t, S::kWidth>;
      heads |= bitsOf(*reinterpret_cast<const Marks*>(shared.marks + S::position(row))) << (row * S::kWidth);
    }
    return heads;
  }

  /// Calls visit(number in the range, begin in the tile, end) for segments that end in a tile, by lanes.
  template <class Segments, class Visit>
  __device__ __forceinline__ void forEach(const Segments& segments, const Ends& ends,
                                          const Visit& visit) const {
    const auto isKnown = [&](int known) { return ends.count <= known; };
    forBatches(segments, ends, ends.count, isKnown, [&](int number, int from, int at, int upTo) {
      const int own = number + laneIndex();
      if (own < upTo && own < ends.count) visit(ends.first + own, from, at);
    });
  }

  /// The segments (less `segment`) of this lane's items, of a tile that has been marked with these `ends`, if
  /// `ending`. __syncwarp must follow before the next call of `mark`.
  __device__ __forceinline__ void numbers(bool ending, const Ends& ends, const Shared& shared,
                                          int (&number)[S::kRows][S::kWidth]) const {
    // Counts of several rows are added at once, in fields of a word: there are up to 32 * kWidth marks in
    // one.
    constexpr int kBits = S::kWidth <= 4 ? 8 : 16, kFields = S::kRows < 32 / kBits ? S::kRows : 32 / kBits;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) number[row][v] = 0;
    }
    if (!ending) return;
    __syncwarp();
    using Marks = Pack<uint8_t, S::kWidth>;
    int carry = 0;
    KELPIE_UNROLL
    for (int first = 0; first < S::kRows; first += kFields) {
      uint32_t own = 0;  // marks of this lane in each row
      KELPIE_UNROLL
      for (int k = 0; k < kFields; ++k) {
        const Marks marks = *reinterpret_cast<const Marks*>(shared.marks + S::position(first + k));
        int count = 0;
        KELPIE_UNROLL
        for (int v = 0; v < S::kWidth; ++v) number[first + k][v] = count += marks.item[v];
        own |= uint32_t(count) << (k * kBits);
      }
      uint32_t upTo = own;
      KELPIE_UNROLL
      for (int d = 1; d < 32; d *= 2) {
        const uint32_t left = shuffleUp(upTo, d);
        if (laneIndex() >= d) upTo += left;
      }
      const uint32_t all = shuffleFrom(upTo, 31), lower = upTo - own;
      KELPIE_UNROLL
      for (int k = 0; k < kFields; ++k) {
        const int before = carry + int(lower >> (k * kBits) & ((1u << kBits) - 1));
        KELPIE_UNROLL
        for (int v = 0; v < S::kWidth; ++v) number[first + k][v] += before;
        carry += int(all >> (k * kBits) & ((1u << kBits) - 1));
      }
    }
    if (ends.places == ends.count) return;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) number[row][v] = shared.numbers[number[row][v]];
    }
  }

  /// Goes on behind a tile in which no segment ends.
  __device__ __forceinline__ void advance(const Tile& tile) { element += tile.count; }
  /// Goes on behind a tile, with the segments that end in it.
  template <class Segments>
  __device__ __forceinline__ void advance(const Segments& segments, const Tile& tile, const Ends& ends) {
    element += tile.count;
    segment += ends.count;
    // The most of the latest tiles, roughly: where lengths differ much, so do counts, and waiting for ends
    // that were not loaded costs more than loading some again.
    const int count = k_min(ends.count, 32 * kBatches);
    expected_ = count > expected_ ? count : expected_ - (expected_ - count) / 8;
    loadEnds(segments);
  }

 private:
  /// By lane: where the 32 segments of each batch from `segment` on end, in 32 bits; kNever from the origin:
  /// in a later range. Nothing waits for loads before the next tile is begun.
  uint32_t ahead_[kBatches];
  int loaded_;    ///< so many of them
  int expected_;  ///< segments that end in a tile in which some do

  __device__ __forceinline__ int placeOf(uint32_t end) const { return int(end - uint32_t(origin)); }

  /// The value of the lane below; lane 0 gets `before`, and the next call's is that of lane 31.
  static __device__ __forceinline__ int lower(int at, int& before) {
    const int left = shuffleFrom(at, (laneIndex() + 31) & 31);
    const int from = laneIndex() == 0 ? before : left;
    before = left;
    return from;
  }

  /// What each of `count` equal pieces gets, the last less: by short division where that suffices.
  static __device__ __forceinline__ int64_t share(int64_t all, int64_t count) {
    const int64_t rounded = all + count - 1;
    return rounded >> 32 == 0 ? int64_t(uint32_t(rounded) / uint32_t(count)) : rounded / count;
  }

  /// Calls batch(number, begin, end, upTo) for 32 segments at a time, by lanes: numbers from `number` on, of
  /// which those below `upTo` are known. First for those in `ends` that are below `limit`, then, until
  /// isKnown(upTo) says that it suffices, for others, which are read.
  template <class Segments, class IsKnown, class Batch>
  __device__ __forceinline__ void forBatches(const Segments& segments, const Ends& ends, int limit,
                                             const IsKnown& isKnown, const Batch& batch) const {
    int at[kBatches];
    KELPIE_UNROLL
    for (int j = 0; j < kBatches; ++j) at[j] = placeOf(ends.at[j]);
    int before = ends.element, known = ends.known;
    const auto step = [&](int number, int place) {
      const int from = lower(place, before);
      batch(number, from, place, known);
    };
    if (kCompact) {
      for (int first = 0;;) {
        KELPIE_NO_UNROLL
        for (int number = first; number < known && number < limit; number += 32) {
          step(number, at[0]);
          KELPIE_UNROLL
          for (int j = 1; j < kBatches; ++j) at[j - 1] = at[j];
        }
        if (isKnown(known)) return;
        if (first == 0) before = ends.lastKnown;
        readEnds(segments, ends.first + known, at);
        first = known;
        known += 32 * kBatches;
      }
    }
    KELPIE_UNROLL
    for (int j = 0; j < kBatches; ++j) {
      if (32 * j < known && 32 * j < limit) step(32 * j, at[j]);
    }
    bool suffices = isKnown(known);
    before = ends.lastKnown;
    while (!suffices) {
      readEnds(segments, ends.first + known, at);
      known += 32 * kBatches;
      KELPIE_UNROLL
      for (int j = 0; j < kBatches; ++j) step(known + 32 * (j - kBatches), at[j]);
      suffices = isKnown(known);
    }
  }

  /// Loads what the next tile is expected to have, or somewhat more: those that are not used are loaded
  /// again.
  template <class Segments>
  __device__ __forceinline__ void loadEnds(const Segments& segments) {
    loaded_ = k_min(expected_ + expected_ / 8 + 8, 32 * kBatches);
    KELPIE_UNROLL
    for (int j = 0; j < kBatches; ++j) {
      const int number = 32 * j + laneIndex();
      ahead_[j] = number < loaded_ && segment + number < segmentEnd
                      ? uint32_t(segments.begin(segment + number + 1))
                      : uint32_t(origin) + uint32_t(kNever);
    }
  }
  template <class Segments>
  __device__ __forceinline__ void readEnds(const Segments& segments, int first, int (&at)[kBatches]) const {
    KELPIE_UNROLL
    for (int j = 0; j < kBatches; ++j) {
      const int number = first + 32 * j + laneIndex();
      at[j] = number < segmentEnd ? int(segments.begin(number + 1) - origin) : kNever;
    }
  }
};

}  // namespace kelpie

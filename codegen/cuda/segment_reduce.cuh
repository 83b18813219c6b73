// Reductions of segments over the tiles of a range (segment_ranges.cuh).
//
// Tiles in which no segment ends are folded by lanes, where the operator commutes. In the others the items
// of several rows are transposed through shared memory, so that every lane folds neighbours, one after the
// other; a scan over the warp completes what crosses from lane to lane. The folds up to each item stay in
// shared memory, where segments pick the one of their last item: no item needs to know its segment. What the
// next tile needs, if it is whole, is loaded as soon as the items of this one are in shared memory.
//
// L as in scan.cuh, with Carry = Value and all parts segmented. kCommutes: left and right may
// change places.
#pragma once

#include "below_range.cuh"
#include "segment_ranges.cuh"
#include "warp_items.cuh"

namespace kelpie {

template <class S, class L, class Range, int kWarpsOfBlock>
struct SegmentReduce {
  using Value = typename L::Value;
  using Ends = typename Range::Ends;
  static constexpr int kOfLane = S::kRows * S::kWidth;  ///< neighbours that a lane folds
  using Items = WarpItems<Value, kOfLane, S::kWidth>;
  using Moved = typename Items::Moved;
  static constexpr int kMoved = Items::kMoved;
  static constexpr bool kInOrder = S::kRows == 1;  ///< lanes have neighbours as it is

  using Shared = typename Items::Shared;  ///< of a warp
  using Below = BelowRange<L, kWarpsOfBlock>;

  Value carry;    ///< fold of the range since its last segment end, or its begin
  Value own;      ///< of this lane, beyond that, where `accumulated`
  Value sum;      ///< fold of the tile since its last segment end
  Value pending;  ///< lane 0: the first segment that ended in the range, as far as it is known
  bool accumulated = false;

  __device__ __forceinline__ SegmentReduce()
      : carry(L::identity()), own(L::identity()), sum(L::identity()), pending(L::identity()) {}

  /// Brings the fold of the lanes into the carry.
  __device__ __forceinline__ void collect() {
    if (!L::kCommutes || !accumulated) return;
    KELPIE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) own = L::join(own, shuffleXor(own, mask));
    carry = L::combine(carry, own, false);
    own = L::identity();
    accumulated = false;
  }

  /// Folds a tile and goes on behind it; items outside of it hold the identity. `ending`: a segment ends in
  /// it, so it has been marked, with these `ends`, of which `result` takes the folds. `fetch` loads what the
  /// next tile needs.
  template <class Segments, class Result, class Fetch>
  __device__ __forceinline__ void tile(const Value (&items)[S::kRows][S::kWidth], const Tile& tile,
                                       bool ending, const Ends& ends, Range& range, const Segments& segments,
                                       Shared& shared, typename Range::Shared& rangeShared,
                                       const Result& result, const Fetch& fetch) {
    if (!ending && L::kCommutes) {
      range.advance(tile);
      fetch();
      KELPIE_UNROLL
      for (int row = 0; row < S::kRows; ++row) {
        KELPIE_UNROLL
        for (int v = 0; v < S::kWidth; ++v) own = L::combine(own, items[row][v], false);
      }
      accumulated = true;
      return;
    }
    const int base = range.element - tile.first, tileEnd = range.element + tile.count;
    collect();
    if (!kInOrder) store(items, shared);
    if (ending) {
      range.advance(segments, tile, ends);
    } else {
      range.advance(tile);
    }
    fetch();
    __syncwarp();
    fold(items, shared, rangeShared);
    __syncwarp();  // also before items of the next tile take the place of these
    if (!ending) {
      carry = L::combine(carry, sum, false);
      return;
    }
    range.forEach(segments, ends, [&](int number, int from, int to) {
      Value value = L::identity();
      if (to > from) value = Items::loadOne(shared, to - 1 - base);
      if (number == ends.first) value = L::combine(carry, value, false);
      if (number == 0) {
        pending = value;
      } else {
        result(range.firstSegment + number, L::combine(L::identity(), value, false));
      }
    });
    __syncwarp();
    carry = ends.last == tileEnd ? L::identity() : sum;
  }

  /// Behind the last tile: the first segment that ended in a range gets what lies in lower ones; of other
  /// blocks only if this one is not `alone`. Contains barriers.
  template <class Result>
  __device__ __forceinline__ void finish(const Range& range, bool alone, int64_t order,
                                         const States<Value>& states, typename Below::Shared& shared,
                                         const Result& result) {
    collect();
    const Value lower = Below::find(carry, range.ended(), alone, false, order, states, shared);
    if (laneIndex() != 0 || !range.ended()) return;
    result(range.firstSegment, L::combine(L::identity(), L::combine(lower, pending, false), false));
  }

 private:
  /// Puts the items into shared memory; lanes in order have neighbours there.
  static __device__ __forceinline__ void store(const Value (&items)[S::kRows][S::kWidth], Shared& shared) {
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      KELPIE_UNROLL
      for (int first = 0; first < S::kWidth; first += kMoved) {
        Moved pack;
        KELPIE_UNROLL
        for (int k = 0; k < kMoved; ++k) pack.item[k] = items[row][first + k];
        Items::store(shared, S::position(row) + first, pack);
      }
    }
  }

  /// Leaves the fold of the tile up to each item, from its segment's begin, in its place, except for items
  /// that are neither the last of a lane's nor of a segment; and sets `sum`.
  __device__ __forceinline__ void fold(const Value (&items)[S::kRows][S::kWidth], Shared& shared,
                                       typename Range::Shared& rangeShared) {
    const int lane = laneIndex(), begin = lane * kOfLane;
    uint32_t heads = 0;  // bit of an item: a segment begins with it
    {
      using Marks = Pack<uint8_t, kOfLane>;
      Marks& place = *reinterpret_cast<Marks*>(rangeShared.marks + lane * kOfLane);
      heads = bitsOf(Marks(place));
      if (heads != 0) {
        Marks none;
        KELPIE_UNROLL
        for (int k = 0; k < kOfLane; ++k) none.item[k] = 0;
        place = none;
      }
    }
    Value folded = L::identity();
    KELPIE_UNROLL
    for (int first = 0; first < kOfLane; first += kMoved) {
      Moved pack;
      if (!kInOrder) pack = Items::load(shared, begin + first);
      KELPIE_UNROLL
      for (int k = 0; k < kMoved; ++k) {
        if (kInOrder) pack.item[k] = items[0][first + k];
        if (first + k == 0) {
          folded = pack.item[0];
        } else {
          folded = L::combine(folded, pack.item[k], heads >> (first + k) & 1);
        }
        pack.item[k] = folded;
      }
      Items::store(shared, begin + first, pack);
    }

    const uint32_t laneHeads = __ballot_sync(kFullWarp, heads != 0);
    const uint32_t upTo = laneHeads & ((2u << lane) - 1);
    const int reach = upTo != 0 ? lane - (31 - __clz(upTo)) : lane;  // lanes below that count
    KELPIE_UNROLL
    for (int d = 1; d < 32; d *= 2) {
      // Where segments are short, two steps suffice. (Asked in each step, this takes 4 % of long ones' time.)
      if (d == 4 && !__any_sync(kFullWarp, reach >= d)) break;
      const Value left = shuffleUp(folded, d);
      if (reach >= d) folded = L::combine(left, folded, false);
    }
    const Value before = shuffleUp(folded, 1);
    sum = shuffleFrom(folded, 31);
    // The only item that lacks what other lanes have: the last before the first head.
    const int last = (heads != 0 ? __ffs(heads) - 1 : kOfLane) - 1;
    if (lane > 0 && last >= 0) {
      const Value item = Items::loadOne(shared, begin + last);
      Items::storeOne(shared, begin + last, L::combine(before, item, false));
    }
  }
};

}  // namespace kelpie

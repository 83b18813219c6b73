// Reductions of segments over the tiles of a range (segment_ranges.cuh).
//
// Tiles in which no segment ends are folded by threads, without barriers, where the operator commutes. In the
// others the items are transposed through shared memory, so that every thread folds neighbours, one after the
// other; a scan over threads completes what crosses from thread to thread. The folds up to each item stay in
// shared memory, where segments pick the one of their last item: no item needs to know its segment.
//
// L as in scan.cuh, with Carry = Value and all parts segmented. kCommutes: combine works on each component by
// itself and commutes.
#pragma once

#include "look_back.cuh"
#include "segment_ranges.cuh"

namespace kelpie {

template <class S, class L, bool kNumbers = false>
struct SegmentReduce {
  using Value = typename L::Value;
  using Range = SegmentRange<S, kNumbers>;
  static constexpr int kOfThread = S::kRows * S::kWidth;  ///< neighbours that a thread folds
  static constexpr int kStride = kOfThread + S::kWidth;   ///< padded: fewer bank conflicts

  struct Shared {
    alignas(16) Value items[S::kThreads * kStride];
    Value totals[S::kWarps];
    uint32_t heads[S::kWarps];
    Value pending;  ///< the first segment that ended in the range, as far as it is known
  };
  static __device__ __forceinline__ int place(int offset) {
    return offset / kOfThread * kStride + offset % kOfThread;
  }

  Value carry;  ///< fold of the range since its last segment end, or its begin
  Value own;    ///< of this thread, beyond that, where `accumulated`
  Value sum;    ///< fold of the tile since its last segment end
  bool accumulated = false;

  __device__ __forceinline__ SegmentReduce() : carry(L::identity()), own(L::identity()), sum(L::identity()) {}

  /// Brings the fold of the threads into the carry. Contains a barrier if they have any.
  __device__ __forceinline__ void collect(Shared& shared) {
    if (!L::kCommutes || !accumulated) return;
    KELPIE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) own = L::combine(own, shuffleXor(own, mask), false);
    if (laneIndex() == 0) shared.totals[warpIndex()] = own;
    __syncthreads();
    KELPIE_UNROLL
    for (int warp = 0; warp < S::kWarps; ++warp) carry = L::combine(carry, shared.totals[warp], false);
    own = L::identity();
    accumulated = false;
  }

  /// Folds a tile and goes on behind it; items outside of it hold the identity. Where `ending`, the tile has
  /// been marked.
  template <class Segments, class Result>
  __device__ __forceinline__ void tile(const Value (&items)[S::kRows][S::kWidth], const Tile& tile,
                                       bool ending, Range& range, const Segments& segments, Shared& shared,
                                       typename Range::Shared& rangeShared, const Result& result) {
    if (L::kCommutes && !ending) {
      KELPIE_UNROLL
      for (int row = 0; row < S::kRows; ++row) {
        KELPIE_UNROLL
        for (int v = 0; v < S::kWidth; ++v) own = L::combine(own, items[row][v], false);
      }
      accumulated = true;
      range.advance(tile, 0, range.nextEnd);
      return;
    }
    collect(shared);
    __syncthreads();  // the marks are complete, results of the tile before have been read
    // Read before the next barrier: after the last one another warp may mark the next tile.
    int ends = 0, lastEnd = 0, nextEnd = range.nextEnd;
    if (ending) {
      ends = rangeShared.ends;
      lastEnd = rangeShared.lastEnd;
      nextEnd = rangeShared.nextEnd;
    }
    foldItems(items, shared, rangeShared);
    __syncthreads();
    const int base = range.element - tile.first;
    for (int k = threadIdx.x; k < ends; k += S::kThreads) {
      const int number = range.segment + k;
      const int from = k == 0 ? range.element : range.endOf(segments, number - 1);
      const int to = range.endOf(segments, number);
      Value value = L::identity();
      if (to > from) value = shared.items[place(to - 1 - base)];
      if (k == 0) value = L::combine(carry, value, false);
      if (number == 0) {
        shared.pending = value;
      } else {
        result(range.firstSegment + number, value);
      }
    }
    if (!ending) {
      carry = L::combine(carry, sum, false);
    } else {
      carry = lastEnd == range.element + tile.count ? L::identity() : sum;
    }
    range.advance(tile, ends, nextEnd);
  }

  /// Behind the last tile: the first segment that ended in the range gets what lies in lower ranges. Contains
  /// barriers.
  template <class Result>
  __device__ __forceinline__ void finish(const Range& range, int64_t order, const States<Value>& states,
                                         Shared& shared, const Result& result) {
    collect(shared);
    if (warpIndex() != 0) return;
    const Value lower = lookBack<L>(states, order, carry, range.ended());
    if (threadIdx.x == 0 && range.ended()) {
      result(range.firstSegment, L::combine(lower, shared.pending, false));
    }
  }

 private:
  /// Leaves the fold of the tile up to each item, from its segment's begin, in shared.items, except for items
  /// that are neither the last of a thread's nor of a segment; and sets `sum`. Contains a barrier.
  __device__ __forceinline__ void foldItems(const Value (&items)[S::kRows][S::kWidth], Shared& shared,
                                            typename Range::Shared& rangeShared) {
    using Neighbours = Pack<Value, S::kWidth>;
    const int lane = laneIndex();
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      Neighbours pack;
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) pack.item[v] = items[row][v];
      *reinterpret_cast<Neighbours*>(shared.items + place(S::position(row))) = pack;
    }
    __syncwarp();
    Value* const mine = shared.items + int(threadIdx.x) * kStride;
    uint32_t heads = 0;  // bit of an item: a segment begins with it
    {
      using Marks = Pack<uint8_t, kOfThread>;
      Marks& own = *reinterpret_cast<Marks*>(rangeShared.marks + int(threadIdx.x) * kOfThread);
      const Marks marks = own;
      Marks none;
      KELPIE_UNROLL
      for (int k = 0; k < kOfThread; ++k) none.item[k] = 0;
      heads = bitsOf(marks);
      if (heads != 0) own = none;
    }
    Value folded = L::identity();
    KELPIE_UNROLL
    for (int first = 0; first < kOfThread; first += S::kWidth) {
      Neighbours pack = *reinterpret_cast<const Neighbours*>(mine + first);
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) {
        const int k = first + v;
        if (k == 0) {
          folded = pack.item[0];
        } else {
          folded = L::combine(folded, pack.item[v], heads >> k & 1);
        }
        pack.item[v] = folded;
      }
      *reinterpret_cast<Neighbours*>(mine + first) = pack;
    }

    // Scan over the threads of the warp, then over warps.
    const uint32_t laneHeads = __ballot_sync(kFullWarp, heads != 0);
    const uint32_t upTo = laneHeads & ((2u << lane) - 1);
    const int reach = upTo != 0 ? lane - (31 - __clz(upTo)) : lane;  // lanes below that count
    KELPIE_UNROLL
    for (int d = 1; d < 32; d *= 2) {
      const Value left = shuffleUp(folded, d);
      if (reach >= d) folded = L::combine(left, folded, false);
    }
    Value before = shuffleUp(folded, 1);
    if (lane == 31) {
      shared.totals[warpIndex()] = folded;
      shared.heads[warpIndex()] = laneHeads != 0;
    }
    __syncthreads();
    Value lowerWarps = L::identity();
    sum = shared.totals[0];
    KELPIE_UNROLL
    for (int warp = 1; warp < S::kWarps; ++warp) {
      if (warp == warpIndex()) lowerWarps = sum;
      sum = L::combine(sum, shared.totals[warp], shared.heads[warp] != 0);
    }
    if (warpIndex() > 0) {
      before = lane == 0 ? lowerWarps : L::combine(lowerWarps, before, (laneHeads & ((1u << lane) - 1)) != 0);
    }
    // The only item that lacks what other threads have: the last before the first head.
    const int last = (heads != 0 ? __ffs(heads) - 1 : kOfThread) - 1;
    if (threadIdx.x > 0 && last >= 0) mine[last] = L::combine(before, mine[last], false);
  }
};

}  // namespace kelpie

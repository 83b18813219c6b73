// Scan of a tile, in three walks over its items. The first folds them as fast as can be, and the fold of the
// tile is published: all higher tiles wait for it. The second folds what lies before each row of lanes, while
// the fold of what lies below the tile is on its way; the third gives every item its own. In between only the
// items are kept, and one fold a row, so that tiles are long and several of them fit a multiprocessor.
//
// A level L bundles everything that one scan of the tile carries along (several scans, counts of filters,
// segmented reductions), so that a kernel pays for shuffles, barriers and waiting once:
//   Value                      what an item contributes; identity()
//   Value combine(a, b, head)  b after a; `head`: a segment begins in b: segmented parts of a do not count
//   Carry widen(Value)         the same between warps and tiles, where counts are wider; start()
//   Carry merge(a, b, head)    as combine
//   bool kSegmented            some parts are segmented
//   bool kRestarts             all parts are
//   bool kCommutes             left and right may change places
#pragma once

#include "scanner.cuh"
#include "tile.cuh"

namespace kelpie {

/// The items of a warp, folded row by row. kStops: a fold over lanes ends early where segments are short, for
/// which it has to ask; all parts are segmented.
template <class S, class L, bool kStops>
struct RowScan {
  using Value = typename L::Value;
  using Carry = typename L::Carry;

  /// Folds the items before each row, in order; gives the fold of the warp's items, and whether a segment
  /// begins among them.
  __device__ __forceinline__ Value foldRows(const Value (&own)[S::kRows][S::kWidth], uint32_t heads,
                                            bool& warpHead) {
    Value folded = L::identity();  // of the rows so far
    warpHead = false;
    restarted_ = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const uint32_t rowHeads = rowOf(heads, row);
      Value lanes = own[row][0];
      KELPIE_UNROLL
      for (int v = 1; v < S::kWidth; ++v)
        lanes = L::combine(lanes, own[row][v], L::kSegmented && (rowHeads >> v & 1));
      uint32_t marked = 0;  // lanes with a head
      if (L::kSegmented) marked = __ballot_sync(kFullWarp, rowHeads != 0);
      const uint32_t lower = (1u << laneIndex()) - 1;
      foldLanes(lanes, marked & (lower << 1 | 1));
      const bool lowerHead = L::kSegmented && (marked & lower) != 0;
      const Value left = shuffleUp(lanes, 1);
      into_[row] = laneIndex() == 0 ? folded : L::combine(folded, left, lowerHead);
      if (L::kSegmented) restarted_ |= uint32_t(warpHead || lowerHead) << row;
      folded = L::combine(folded, shuffleFrom(lanes, 31), L::kSegmented && marked != 0);
      warpHead = warpHead || marked != 0;
    }
    return folded;
  }

  /// The fold of everything before each item of a row (in its segment); `carry`: of what lies before the
  /// warp's items.
  __device__ __forceinline__ void scanFrom(const Carry& carry, int row, const Value (&own)[S::kWidth],
                                           uint32_t heads, Carry (&before)[S::kWidth]) const {
    const uint32_t rowHeads = rowOf(heads, row);
    Carry into = L::merge(carry, L::widen(into_[row]), L::kSegmented && (restarted_ >> row & 1));
    into = L::merge(L::start(), into, false);  // a sum of negative zeros is zero
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      if (L::kSegmented && (rowHeads >> v & 1)) into = L::merge(into, L::start(), true);
      before[v] = into;
      into = L::merge(into, L::widen(own[v]), false);
    }
  }

 private:
  Value into_[S::kRows];    ///< fold of the warp's items before the first of this thread's row
  uint32_t restarted_ = 0;  ///< bit of a row: a segment begins among those

  static __device__ __forceinline__ uint32_t rowOf(uint32_t heads, int row) {
    return L::kSegmented ? heads >> (row * S::kWidth) & ((1u << S::kWidth) - 1) : 0;
  }

  /// Inclusive fold over lanes. `upTo`: lanes up to this one with a head.
  static __device__ __forceinline__ void foldLanes(Value& lanes, uint32_t upTo) {
    const int lane = laneIndex();
    const int reach =
        L::kSegmented && upTo != 0 ? lane - (31 - __clz(upTo)) : lane;  // lanes below that count
    KELPIE_UNROLL
    for (int d = 1; d < 32; d *= 2) {
      if (kStops && d == 4 && !__any_sync(kFullWarp, reach >= d)) break;
      const Value left = shuffleUp(lanes, d);
      if (L::kRestarts ? reach >= d : lane >= d)
        lanes = L::combine(left, lanes, L::kSegmented && !L::kRestarts && reach < d);
    }
  }
};

template <class S, class L>
struct BlockScan : RowScan<S, L, false> {
  using Value = typename L::Value;
  using Carry = typename L::Carry;

  struct Shared {
    Value totals[S::kWarps];
    uint32_t heads[S::kWarps];
    Carry lower;
  };

  Carry lower;  ///< fold of all lower tiles
  Carry total;  ///< fold of everything up to the end of the tile
  Carry carry;  ///< fold of everything before the warp's items

  /// Folds `own` (in order; items outside of the tile hold the identity), and waits for what lies below. Bits
  /// of `heads` mark items that begin a segment. Contains barriers; `shared` must not be in use.
  __device__ __forceinline__ void run(const Value (&own)[S::kRows][S::kWidth], uint32_t heads, Shared& shared,
                                      const States<Carry>& states, int64_t tile) {
    bool warpHead = false;
    const Value folded =
        L::kCommutes ? foldTogether(own, heads, warpHead) : this->foldRows(own, heads, warpHead);
    if (laneIndex() == 0) {
      shared.totals[warpIndex()] = folded;
      shared.heads[warpIndex()] = warpHead;
    }
    __syncthreads();
    Carry sum = L::widen(shared.totals[0]);
    Carry lowerWarps = L::start();
    bool head = shared.heads[0] != 0, lowerHead = false;
    KELPIE_UNROLL
    for (int warp = 1; warp < S::kWarps; ++warp) {
      if (warp == warpIndex()) {
        lowerWarps = sum;
        lowerHead = head;
      }
      const bool next = shared.heads[warp] != 0;
      sum = L::merge(sum, L::widen(shared.totals[warp]), L::kSegmented && next);
      head = head || next;
    }
    if (threadIdx.x == 0) publish<L>(states, tile, sum, head);
    if (L::kCommutes) this->foldRows(own, heads, warpHead);
    if (threadIdx.x == 0) shared.lower = awaitPrefix<L>(states, tile);
    __syncthreads();
    lower = shared.lower;
    carry = warpIndex() == 0 ? lower : L::merge(lower, lowerWarps, L::kSegmented && lowerHead);
    total = L::merge(lower, sum, L::kSegmented && head);
  }

  /// The fold of everything before each item of a row (in its segment).
  __device__ __forceinline__ void scanRow(int row, const Value (&own)[S::kWidth], uint32_t heads,
                                          Carry (&before)[S::kWidth]) const {
    this->scanFrom(carry, row, own, heads, before);
  }

 private:
  /// The fold of the warp's items, and whether a segment begins among them: items by themselves, where order
  /// does not matter. What lies before the last head does not count.
  static __device__ __forceinline__ Value foldTogether(const Value (&own)[S::kRows][S::kWidth],
                                                       uint32_t heads, bool& warpHead) {
    constexpr int kRowItems = 32 * S::kWidth;
    int from = 0;  // of this lane's items, those from row * kRowItems + v == from on count
    if (L::kSegmented) {
      int last = 0;  // 1 + position of the last head
      if (heads != 0) {
        const int bit = 31 - __clz(heads);
        last = bit / S::kWidth * kRowItems + laneIndex() * S::kWidth + bit % S::kWidth + 1;
      }
      last = warpMaximum(last);
      warpHead = last > 0;
      from = last - 1 - laneIndex() * S::kWidth;
    }
    Value folded = L::identity();
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) {
        Value item = own[row][v];
        if (L::kSegmented && row * kRowItems + v < from) item = L::combine(item, L::identity(), true);
        folded = L::combine(folded, item, false);
      }
    }
    KELPIE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) folded = L::combine(folded, shuffleXor(folded, mask), false);
    return folded;
  }
};

}  // namespace kelpie

// Scan of a tile, in two walks over its items: first the tile is folded and its fold published; when the fold
// of what lies below is known, rows are scanned from it, one after the other.
//
// So nothing but the items themselves is kept while a tile waits: more tiles fit a multiprocessor.
//
// A level L bundles everything that one scan of the tile carries along (several scans, counts of filters,
// segmented reductions), so that a kernel pays for shuffles, barriers and waiting once:
//   Value                     what an item contributes; identity()
//   Value combine(a, b, head) b after a; `head`: a segment begins in b, so segmented parts of a do not count
//   void restart(Value&)      makes segmented parts the identity
//   Carry widen(Value)        the same between warps and tiles (counts are wider there); start(), merge(a, b,
//   head) bool kSegmented, kRestarts   some / all parts are segmented bool kCommutes            combine works
//   on each component by itself and commutes
#pragma once

#include "scanner.cuh"
#include "tile.cuh"

namespace kelpie {

template <class S, class L>
struct BlockScan {
  using Value = typename L::Value;
  using Carry = typename L::Carry;

  struct Shared {
    Value totals[S::kWarps];
    uint32_t heads[S::kWarps];
    Carry lower;
  };

  Carry lower;  ///< fold of all lower tiles
  Carry total;  ///< fold of everything up to the end of the tile
  Carry carry;  ///< fold of everything before the warp's next row

  /// Folds `own` (in order; items outside of the tile hold the identity), and waits for what lies below. Bits
  /// of `heads` mark items that begin a segment; `ends`: the tile's last segment ends with it. Contains
  /// barriers; `shared` must not be in use.
  __device__ __forceinline__ void run(const Value (&own)[S::kRows][S::kWidth], uint32_t heads, bool ends,
                                      Shared& shared, const States<Carry>& states, int64_t tile) {
    bool warpHead = false;
    const Value folded =
        L::kCommutes ? foldTogether(own, heads, warpHead) : foldInOrder(own, heads, warpHead);
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
    if (L::kSegmented && ends) {
      sum = L::merge(sum, L::start(), true);
      head = true;
    }
    if (threadIdx.x == 0) {
      if (states.tiles > 1) states.publishTile(tile, sum, head);
      shared.lower = awaitPrefix<L>(states, tile);
    }
    __syncthreads();
    lower = shared.lower;
    carry = warpIndex() == 0 ? lower : L::merge(lower, lowerWarps, L::kSegmented && lowerHead);
    total = L::merge(lower, sum, L::kSegmented && head);
  }

  /// The fold of everything before each item of a row (in its segment). To be called for all rows, in order.
  __device__ __forceinline__ void scanRow(int row, const Value (&own)[S::kWidth], uint32_t heads,
                                          Carry (&before)[S::kWidth]) {
    const int lane = laneIndex();
    const uint32_t rowHeads = rowOf(heads, row);
    Carry lanes = L::widen(own[0]);
    KELPIE_UNROLL
    for (int v = 1; v < S::kWidth; ++v)
      lanes = L::merge(lanes, L::widen(own[v]), L::kSegmented && (rowHeads >> v & 1));
    uint32_t upTo = 0;  // lanes up to this one with a head
    if (L::kSegmented) upTo = __ballot_sync(kFullWarp, rowHeads != 0) & ((2u << lane) - 1);
    scanLanes<Carry>(lanes, upTo);
    if (!L::kRestarts || upTo == 0) lanes = L::merge(carry, lanes, L::kSegmented && upTo != 0);
    Carry into = shuffleUp(lanes, 1);
    if (lane == 0) into = carry;
    carry = shuffleFrom(lanes, 31);
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      if (L::kSegmented && (rowHeads >> v & 1)) into = L::merge(into, L::start(), true);
      before[v] = into;
      into = L::merge(into, L::widen(own[v]), false);
    }
  }

 private:
  static __device__ __forceinline__ uint32_t rowOf(uint32_t heads, int row) {
    return L::kSegmented ? heads >> (row * S::kWidth) & ((1u << S::kWidth) - 1) : 0;
  }
  static __device__ __forceinline__ Value join(const Value& a, const Value& b, bool head, Value*) {
    return L::combine(a, b, head);
  }
  template <class C>
  static __device__ __forceinline__ C join(const C& a, const C& b, bool head, C*) {
    return L::merge(a, b, head);
  }
  /// Inclusive scan over lanes. `upTo`: lanes up to this one with a head.
  template <class C>
  static __device__ __forceinline__ void scanLanes(C& lanes, uint32_t upTo) {
    const int lane = laneIndex();
    const int reach =
        L::kSegmented && upTo != 0 ? lane - (31 - __clz(upTo)) : lane;  // lanes below that count
    KELPIE_UNROLL
    for (int d = 1; d < 32; d *= 2) {
      const C left = shuffleUp(lanes, d);
      if (L::kRestarts ? reach >= d : lane >= d) {
        lanes = join(left, lanes, L::kSegmented && !L::kRestarts && reach < d, static_cast<C*>(nullptr));
      }
    }
  }

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
        if (L::kSegmented && row * kRowItems + v < from) L::restart(item);
        folded = L::combine(folded, item, false);
      }
    }
    KELPIE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) folded = L::combine(folded, shuffleXor(folded, mask), false);
    return folded;
  }

  /// The same for any operator.
  static __device__ __forceinline__ Value foldInOrder(const Value (&own)[S::kRows][S::kWidth], uint32_t heads,
                                                      bool& warpHead) {
    Value folded = L::identity();
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const uint32_t rowHeads = rowOf(heads, row);
      Value lanes = own[row][0];
      KELPIE_UNROLL
      for (int v = 1; v < S::kWidth; ++v)
        lanes = L::combine(lanes, own[row][v], L::kSegmented && (rowHeads >> v & 1));
      uint32_t laneHeads = 0;
      if (L::kSegmented) laneHeads = __ballot_sync(kFullWarp, rowHeads != 0);
      scanLanes<Value>(lanes, laneHeads & ((2u << laneIndex()) - 1));
      folded = L::combine(folded, shuffleFrom(lanes, 31), L::kSegmented && laneHeads != 0);
      warpHead = warpHead || laneHeads != 0;
    }
    return folded;
  }
};

}  // namespace kelpie

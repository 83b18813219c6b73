// Scan of a tile: within rows by warp shuffles, across warps through shared memory, across tiles by
// look-back.
//
// A level L bundles everything that one scan of the tile carries along (several scans, counts of filters,
// segmented reductions), so that a kernel pays for shuffles, barriers and look-back once:
//   Value                     what an item contributes, and its prefix within a warp; identity()
//   Value combine(a, b, head) b after a; `head`: a segment begins in b, so segmented parts of a do not count
//   void restart(Value&)      makes segmented parts the identity
//   Carry widen(Value)        the same between warps and tiles (counts are wider there); start(), merge(a, b,
//   head) bool kSegmented, kRestarts   some / all parts are segmented
#pragma once

#include "look_back.cuh"
#include "tile.cuh"

namespace kelpie {

template <class S, class L>
struct BlockScan {
  using Value = typename L::Value;
  using Carry = typename L::Carry;

  struct Shared {
    Value totals[S::kWarps];
    uint32_t heads[S::kWarps];
    Carry carry;  ///< fold of all lower tiles
  };

  Value before[S::kRows][S::kWidth];  ///< fold of the warp's items before this one (from its segment)
  uint32_t restarted = 0;             ///< bit of an item: a segment begins in the warp's chunk up to it
  Carry lowerWarps;                   ///< fold of the tile's items before the warp's chunk
  Carry prefix;                       ///< fold of everything before the warp's chunk
  Carry total;                        ///< fold of everything up to the end of the tile

  /// Scans `own` (in order; items outside of the tile hold the identity). Bits of `heads` mark items that
  /// begin a segment; `ends`: the tile's last segment ends with it. Contains barriers; `shared` must not be
  /// in use.
  __device__ __forceinline__ void run(const Value (&own)[S::kRows][S::kWidth], uint32_t heads, bool ends,
                                      Shared& shared, const States<Carry>& states, int64_t tile) {
    const int lane = laneIndex();
    Value carry = L::identity();  // fold of the warp's rows so far
    bool rowsRestarted = false;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const uint32_t rowHeads = heads >> (row * S::kWidth) & ((1u << S::kWidth) - 1);
      Value lanes = own[row][0];
      KELPIE_UNROLL
      for (int v = 1; v < S::kWidth; ++v)
        lanes = L::combine(lanes, own[row][v], L::kSegmented && (rowHeads >> v & 1));
      uint32_t laneHeads = 0;
      int nearest = -64;  // nearest lane up to this one with a head
      if (L::kSegmented) {
        laneHeads = __ballot_sync(kFullWarp, rowHeads != 0);
        const uint32_t upTo = laneHeads & ((2u << lane) - 1);
        if (upTo != 0) nearest = 31 - __clz(upTo);
      }
      KELPIE_UNROLL
      for (int d = 1; d < 32; d *= 2) {
        const Value left = shuffleUp(lanes, d);
        if (lane >= d) lanes = L::combine(left, lanes, L::kSegmented && nearest > lane - d);
      }
      Value into = shuffleUp(lanes, 1);
      const bool lowerHead = L::kSegmented && (laneHeads & ((1u << lane) - 1)) != 0;
      if (lane == 0) {
        into = carry;
      } else if (row != 0) {
        into = L::combine(carry, into, lowerHead);
      }
      bool seen = rowsRestarted || lowerHead;
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) {
        if (L::kSegmented) {
          if (rowHeads >> v & 1) {
            L::restart(into);
            seen = true;
          }
          restarted |= uint32_t(seen) << (row * S::kWidth + v);
        }
        before[row][v] = into;
        into = L::combine(into, own[row][v], false);
      }
      carry = shuffleFrom(into, 31);
      rowsRestarted = rowsRestarted || laneHeads != 0;
    }
    if (lane == 0) {
      shared.totals[warpIndex()] = carry;
      shared.heads[warpIndex()] = rowsRestarted;
    }
    __syncthreads();
    Carry sum = L::widen(shared.totals[0]);
    lowerWarps = L::start();
    bool head = shared.heads[0] != 0, lowerHead = false;
    KELPIE_UNROLL
    for (int warp = 1; warp < S::kWarps; ++warp) {
      if (warp == warpIndex()) {
        lowerWarps = sum;
        lowerHead = head;
      }
      const bool warpHead = shared.heads[warp] != 0;
      sum = L::merge(sum, L::widen(shared.totals[warp]), L::kSegmented && warpHead);
      head = head || warpHead;
    }
    if (L::kSegmented && ends) {
      sum = L::merge(sum, L::start(), true);
      head = true;
    }
    if (warpIndex() == 0) {
      const Carry lower = lookBack<L>(states, tile, sum, head);
      if (lane == 0) shared.carry = lower;
    }
    __syncthreads();
    const Carry lower = shared.carry;
    prefix = warpIndex() == 0 ? lower : L::merge(lower, lowerWarps, L::kSegmented && lowerHead);
    total = L::merge(lower, sum, L::kSegmented && head);
  }

  /// Fold of everything before an item (in its segment).
  __device__ __forceinline__ Carry exclusive(int row, int v) const {
    return L::merge(prefix, L::widen(before[row][v]),
                    L::kSegmented && (restarted >> (row * S::kWidth + v) & 1));
  }
  /// ... including the item itself.
  __device__ __forceinline__ Carry inclusive(int row, int v, const Value& own) const {
    return L::merge(exclusive(row, v), L::widen(own), false);
  }
};

}  // namespace kelpie

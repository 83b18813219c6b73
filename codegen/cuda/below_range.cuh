// What lies below a range (segment_ranges.cuh): of the segment that goes on from it, what lower warps of the
// block and lower blocks have.
#pragma once

#include "look_back.cuh"

namespace kelpie {

template <class L, int kWarpsOfBlock>
struct BelowRange {
  using Value = typename L::Value;

  struct Shared {
    Value carries[kWarpsOfBlock];
    uint32_t ended[kWarpsOfBlock];
    alignas(16) Value lower;  ///< apart: it is written while others read the rest, 16 bytes at once
  };

  /// `carry`: fold of the range since its last segment end, or its begin; `ended`: there is such an end.
  /// Lower blocks count only if this one is not `alone`, and are waited for only where a segment ends in it,
  /// or where it is `needed` in any case. Contains barriers.
  static __device__ __forceinline__ Value find(const Value& carry, bool ended, bool alone, bool needed,
                                               int64_t order, const States<Value>& states, Shared& shared) {
    if (laneIndex() == 0) {
      shared.carries[warpIndex()] = carry;
      shared.ended[warpIndex()] = ended;
    }
    __syncthreads();
    Value total = shared.carries[0], lower = L::identity();
    bool head = shared.ended[0] != 0, lowerHead = false;
    KELPIE_UNROLL
    for (int warp = 1; warp < kWarpsOfBlock; ++warp) {
      if (warp == warpIndex()) {
        lower = total;
        lowerHead = head;
      }
      total = L::combine(total, shared.carries[warp], shared.ended[warp] != 0);
      head = head || shared.ended[warp] != 0;
    }
    if (warpIndex() == 0) {
      const Value lowerBlocks = alone ? L::start() : lookBack<L>(states, order, total, head, needed || head);
      if (laneIndex() == 0) shared.lower = lowerBlocks;
    }
    __syncthreads();
    return L::combine(shared.lower, lower, lowerHead);
  }
};

}  // namespace kelpie

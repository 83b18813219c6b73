// Stream compaction: the survivors of a tile are put side by side in shared memory and stored coalesced.
#pragma once

#include "tile.cuh"

namespace kelpie {

/// Stores keep-marked items to out[0..], item number rank[row][v] of the tile. `count` of them in all;
/// `buffer` holds kItems values. Contains barriers; the buffer must not be in use.
template <class S, class T>
KELPIE_DEVICE void storeCompacted(T* out, const T (&items)[S::kRows][S::kWidth], uint32_t keep,
                                  const uint32_t (&rank)[S::kRows][S::kWidth], int count, T* buffer) {
  KELPIE_UNROLL
  for (int row = 0; row < S::kRows; ++row) {
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      if (keep >> (row * S::kWidth + v) & 1) buffer[rank[row][v]] = items[row][v];
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < count; k += S::kThreads) out[k] = buffer[k];
  __syncthreads();
}

}  // namespace kelpie

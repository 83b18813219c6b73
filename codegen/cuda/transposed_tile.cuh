// Tiles of a regular space whose neighbouring *segments* read what lies side by side, as in a transposition.
//
// A thread has kRows segments that follow each other, and one position; its neighbours have the positions
// beside it. So what a thread reads for its segments lies together, what a warp stores for one of them does,
// too, and what either has of a piece of memory its block needs soon. Tiles are as wide as there are few
// segments, and as high as there are few positions.
#pragma once

#include "base.cuh"

namespace kelpie {

/// As many lanes as there are neighbours to work on, if these are fewer: a power of two.
KELPIE_DEVICE int lanesFor(int64_t neighbours) {
  int lanes = 32;
  while (lanes > 1 && lanes / 2 >= neighbours) lanes /= 2;
  return lanes;
}

/// How a regular space is cut (CudaPass::tiles does the same on the host).
template <class S>
struct TransposedTile {
  int64_t first, place;  ///< segment of row 0, and the position in all of them
  int rows;              ///< of this thread

  __device__ __forceinline__ TransposedTile(int64_t length, int64_t count) {
    int high = S::kThreads / lanesFor(length);  // threads by segments
    while (high > 1 && high / 2 * S::kRows >= count) high /= 2;
    const int wide = S::kThreads / high;
    const int64_t across = length > 0 ? (length + wide - 1) / wide : 1;  // tiles of the same segments
    const int64_t strip = blockIdx.x / across;
    place = (blockIdx.x - strip * across) * wide + threadIdx.x % wide;
    first = (strip * high + threadIdx.x / wide) * S::kRows;
    const int64_t left = place < length ? count - first : 0;
    rows = left < 0 ? 0 : left < S::kRows ? int(left) : S::kRows;
  }
};

}  // namespace kelpie

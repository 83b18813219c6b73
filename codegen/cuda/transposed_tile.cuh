// Tiles of a regular space whose neighbouring *segments* read what lies side by side, as in a transposition.
//
// A tile has kRows segments for each lane and as many positions as a warp has lanes side by side; its
// segments follow each other. So what a thread reads for its segments lies together, what a warp stores for
// one of them does, too, and what either has of a piece of memory its block needs soon. Where segments are
// shorter than a warp is wide, the rest of its lanes take further segments.
#pragma once

#include "base.cuh"

namespace kelpie {

/// As many lanes as there are neighbours to work on, if these are fewer: a power of two.
KELPIE_DEVICE int lanesFor(int64_t neighbours) {
  int lanes = 32;
  while (lanes > 1 && lanes / 2 >= neighbours) lanes /= 2;
  return lanes;
}

/// The elements of a thread: one position of kRows segments. (CudaPass::tiles cuts alike.)
template <class S>
struct TransposedTile {
  int64_t length, count;  ///< of segments
  int64_t first, place;   ///< segment of row 0, and the position

  __device__ __forceinline__ TransposedTile(int64_t lengthOfSegments, int64_t segments)
      : length(lengthOfSegments), count(segments) {
    const int lanes = lanesFor(length);
    const int64_t across = (length + lanes - 1) / lanes;  // tiles of the same segments
    const int64_t strip = blockIdx.x / across;
    place = (blockIdx.x - strip * across) * lanes + threadIdx.x % lanes;
    first = (strip * (S::kThreads / lanes) + threadIdx.x / lanes) * S::kRows;
  }
  /// Where there is none, the last: what is made of it is dropped.
  __device__ __forceinline__ int64_t segment(int row) const {
    return first + row < count ? first + row : count - 1;
  }
  __device__ __forceinline__ int64_t position() const { return place < length ? place : length - 1; }
  __device__ __forceinline__ bool contains(int row) const { return place < length && first + row < count; }
};

}  // namespace kelpie

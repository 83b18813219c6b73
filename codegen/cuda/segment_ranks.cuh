// Offsets of filtered segments, for passes that filter a segmented space and make nothing else of its
// segments.
//
// How many survivors lie before a segment depends on where it begins alone. So such a pass works on tiles of
// elements, as in a flat space, and leaves a table: which elements survive, a bit each, and how many do
// before each group of a warp's row. When it is done, a kernel over segments looks up where each begins
// (support_kernels.cuh): that many empty segments may begin at one place does not concern any tile.
#pragma once

#include "tile.cuh"

namespace kelpie {

/// kWidth: consecutive items of a lane in the tiles that fill the table, and words of a group.
template <int kWidth>
struct RankTable {
  static constexpr int kGroup = 32 * kWidth;  ///< elements
  using Marks = Pack<uint32_t, kWidth>;

  int64_t* before;  ///< survivors before each group, and before the end
  Marks* marks;     ///< bit `lane` of word v: item v of that lane survives

  /// `memory`: (groups + 2) * (8 + 4 kWidth) bytes, aligned to 16 (CudaTarget::launchPass).
  __device__ __forceinline__ RankTable(void* memory, int64_t groups)
      : before(static_cast<int64_t*>(memory)),
        marks(reinterpret_cast<Marks*>(before + (groups + 2) / 2 * 2)) {}

  /// Survivors before an element, or before the end.
  __device__ __forceinline__ int64_t rank(int64_t element) const {
    const int64_t group = element / kGroup;
    const int offset = int(element % kGroup), lane = offset / kWidth;
    const Marks own = marks[group];
    int64_t rank = before[group];
    KELPIE_UNROLL
    for (int v = 0; v < kWidth; ++v)
      rank += __popc(own.item[v] & ((1u << lane << (v < offset % kWidth ? 1 : 0)) - 1));
    return rank;
  }

  /// Enters a tile: the `marked` items of this thread, their ranks in the tile by rows, what survives in
  /// lower tiles and in this one. Called by all threads.
  template <class S>
  __device__ __forceinline__ void put(const Tile& tile, bool last, uint32_t marked,
                                      const uint32_t (&rank)[S::kRows], int64_t lower, uint32_t count) const {
    static_assert(!S::kBackward && S::kWidth == kWidth, "survivors are ranked forward");
    Marks own;
    uint32_t lowerRows = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const uint32_t ofRow = shuffleFrom(rank[row], 0);
      if (laneIndex() == row) lowerRows = ofRow;
      KELPIE_UNROLL
      for (int v = 0; v < kWidth; ++v) {
        const uint32_t word = __ballot_sync(kFullWarp, marked >> (row * kWidth + v) & 1);
        if (laneIndex() == row) own.item[v] = word;
      }
    }
    const int64_t group = tile.base / kGroup + warpIndex() * S::kRows + laneIndex();
    if (laneIndex() < S::kRows) {
      marks[group] = own;
      before[group] = lower + lowerRows;
    }
    if (!last || threadIdx.x != 0) return;
    const int64_t end = (tile.base + S::kItems) / kGroup;
    KELPIE_UNROLL
    for (int v = 0; v < kWidth; ++v) own.item[v] = 0;
    marks[end] = own;
    before[end] = lower + count;
  }
};

}  // namespace kelpie

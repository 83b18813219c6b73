// Tiles: how the elements of a block are dealt to its threads, and vector loads and stores.
//
// A tile has kItems positions. In *order* each warp owns a contiguous chunk, each row of a warp kWidth
// consecutive positions a lane: loads are coalesced and wide, and a scan along rows keeps the order without a
// transpose through shared memory. A backward kernel runs the order against memory: order position q lies at
// memory offset kItems-1-q, so that every collective is written once.
#pragma once

#include "base.cuh"

namespace kelpie {

template <int kThreadsOfBlock, int kRowsOfThread, int kItemsOfRow, bool kRunsBackward>
struct Shape {
  static constexpr int kThreads = kThreadsOfBlock;
  static constexpr int kRows = kRowsOfThread;
  static constexpr int kWidth = kItemsOfRow;  ///< consecutive items of a lane: 1, 2 or 4
  static constexpr bool kBackward = kRunsBackward;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kChunk = 32 * kRows * kWidth;  ///< positions of a warp
  static constexpr int kItems = kThreads * kRows * kWidth;
  static_assert(kRows * kWidth <= 32, "the items of a thread have one bit each in a mask");

  /// Order position of the first item of a row of this thread.
  static __device__ __forceinline__ int position(int row) {
    return warpIndex() * kChunk + row * 32 * kWidth + laneIndex() * kWidth;
  }
  /// Memory offset (in the tile) of the lowest item of the row.
  static __device__ __forceinline__ int group(int row) {
    return kBackward ? kItems - kWidth - position(row) : position(row);
  }
  /// Place of item `v` (in order) among the kWidth items in memory, and back.
  static __device__ __forceinline__ int slot(int v) { return kBackward ? kWidth - 1 - v : v; }
  static __device__ __forceinline__ int offset(int row, int v) { return group(row) + slot(v); }
};

/// The tile that a block works on. Blocks take tiles until there are none left, each when it is done with the
/// one before, so that all tiles below a tile in work are in work or done.
struct TileQueue {
  struct Shared {
    uint32_t order;
    int64_t split[2];  ///< segmented spaces: where the tile begins and ends (segments.cuh)
  };
  uint32_t next = 0;      ///< thread 0
  int64_t nextSplit = 0;  ///< threads 0 and 1

  /// Asks for a tile.
  __device__ __forceinline__ void ask(const Launch& launch) {
    if (threadIdx.x == 0) next = takeTicket(launch);
  }
  /// Makes it known to all; barriers must be before and after.
  __device__ __forceinline__ void pass(Shared& shared) const {
    if (threadIdx.x == 0) shared.order = next;
    if (threadIdx.x < 2) shared.split[threadIdx.x] = nextSplit;
  }
};

/// The elements base+first .. base+first+count-1; `base` is a multiple of the width.
struct Tile {
  int64_t base;
  int first, count;
  __device__ __forceinline__ bool contains(int offset) const {
    return unsigned(offset - first) < unsigned(count);
  }
  /// Whether any / all of `width` offsets from `group` are in the tile.
  __device__ __forceinline__ bool touches(int group, int width) const {
    return group + width > first && group < first + count;
  }
  __device__ __forceinline__ bool covers(int group, int width) const {
    return group >= first && group + width <= first + count;
  }
};

/// Tile number `tile`, in order, of a flat space of `extent` elements cut into `tiles` pieces.
template <class S>
KELPIE_DEVICE Tile flatTile(int64_t tile, int64_t tiles, int64_t extent) {
  const int64_t place = S::kBackward ? tiles - 1 - tile : tile;
  const int64_t base = place * S::kItems;
  const int64_t left = extent - base;
  return {base, 0, left < S::kItems ? int(left) : S::kItems};
}

// ---- packs: kWidth neighbours moved at once ---------------------------------------------------------------

/// The greatest power of two, up to 16, that divides the size.
constexpr int alignmentOf(int size) { return size % 16 == 0 ? 16 : size & -size; }

template <class T, int kWidth>
struct alignas(alignmentOf(sizeof(T) * kWidth)) Pack {
  T item[kWidth];
};

/// Elements base+group .. +kWidth-1 of a read-only array. Reads whole packs when any of them is in the tile:
/// allocations are padded to a multiple of 64 bytes. Others are zero.
template <class S, class T>
KELPIE_DEVICE Pack<T, S::kWidth> loadPack(const T* array, const Tile& tile, int row) {
  Pack<T, S::kWidth> pack;
  const int group = S::group(row);
  if (tile.touches(group, S::kWidth)) {
    pack = *reinterpret_cast<const Pack<T, S::kWidth>*>(array + tile.base + group);
  } else {
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) pack.item[v] = T(0);
  }
  return pack;
}

/// Stores the items of a row (in order) that are in the tile.
template <class S, class T>
KELPIE_DEVICE void storeRow(T* array, const Tile& tile, int row, const T (&items)[S::kWidth]) {
  const int group = S::group(row);
  T* const place = array + tile.base + group;
  if (tile.covers(group, S::kWidth)) {
    Pack<T, S::kWidth> pack;
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) pack.item[S::slot(v)] = items[v];
    *reinterpret_cast<Pack<T, S::kWidth>*>(place) = pack;
  } else {
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      if (tile.contains(group + S::slot(v))) place[S::slot(v)] = items[v];
    }
  }
}

}  // namespace kelpie

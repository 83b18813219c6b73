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
  static constexpr int kWidth = kItemsOfRow;  ///< consecutive items of a lane: 1, 2, 4 or 8
  static constexpr bool kBackward = kRunsBackward;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kChunk = 32 * kRows * kWidth;  ///< positions of a warp
  static constexpr int kItems = kThreads * kRows * kWidth;
  static_assert(kRows * kWidth <= 32, "the items of a thread have one bit each in a mask");
  static_assert((kWidth & (kWidth - 1)) == 0, "packs are moved at once");

  /// Order position of the first item of a row of this thread. (A tile of one warp may be one of several in
  /// its block.)
  static __device__ __forceinline__ int position(int row) {
    return (kWarps > 1 ? warpIndex() * kChunk : 0) + row * 32 * kWidth + laneIndex() * kWidth;
  }
  /// Memory offset (in the tile) of the lowest item of the row.
  static __device__ __forceinline__ int group(int row) {
    return kBackward ? kItems - kWidth - position(row) : position(row);
  }
  /// Place of item `v` (in order) among the kWidth items in memory, and back.
  static __device__ __forceinline__ int slot(int v) { return kBackward ? kWidth - 1 - v : v; }
  static __device__ __forceinline__ int offset(int row, int v) { return group(row) + slot(v); }
};

/// The elements base+first .. base+first+count-1; `base` is a multiple of the width.
struct Tile {
  int64_t base;
  int first, count;
  __device__ __forceinline__ bool contains(int offset) const {
    return unsigned(offset - first) < unsigned(count);
  }
  /// The offset in the tile that lies nearest; the tile is not empty.
  __device__ __forceinline__ int nearest(int offset) const {
    const int last = first + count - 1;
    return offset < first ? first : offset < last ? offset : last;
  }
  /// The same in a tile that begins with its base, of an offset that is not negative.
  __device__ __forceinline__ int upTo(int offset) const { return offset < count ? offset : count - 1; }
  /// Whether all of `width` offsets from `group` are in the tile.
  __device__ __forceinline__ bool covers(int group, int width) const {
    return group >= first && group + width <= first + count;
  }
};

/// Tile number `tile`, in order, of a flat space of `extent` elements cut into `tiles` pieces, of which the
/// highest may be empty.
template <class S>
KELPIE_DEVICE Tile flatTile(int64_t tile, int64_t tiles, int64_t extent) {
  const int64_t place = S::kBackward ? tiles - 1 - tile : tile;
  const int64_t base = place * S::kItems;
  const int64_t left = extent - base;
  return {base, 0, left < 0 ? 0 : left < S::kItems ? int(left) : S::kItems};
}

// ---- packs: kWidth neighbours moved at once ---------------------------------------------------------------

/// The greatest power of two, up to 16, that divides the size.
constexpr int alignmentOf(int size) { return size % 16 == 0 ? 16 : size & -size; }

template <class T, int kWidth>
struct alignas(alignmentOf(sizeof(T) * kWidth)) Pack {
  T item[kWidth];
};

/// Stores a pack by one instruction. (Of an assignment, compilers make a store for each item where branches
/// beside it store items: on an H200 that took a fourth of the speed of a scan.)
template <class T, int kWidth>
KELPIE_DEVICE void storePack(T* place, const Pack<T, kWidth>& pack) {
#if !defined(KELPIE_EMULATION)
  if (sizeof(pack) == 16) {
    Words<Pack<T, kWidth>> words;
    constexpr int kCount = sizeof(words.word) / 4;
    words.value = pack;
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(place), "r"(words.word[0]),
                 "r"(words.word[1 % kCount]), "r"(words.word[2 % kCount]), "r"(words.word[3 % kCount])
                 : "memory");
    return;
  }
#endif
  *reinterpret_cast<Pack<T, kWidth>*>(place) = pack;
}

/// Bytes, each 0 or 1, as the bits of a word.
template <int kCount>
KELPIE_DEVICE uint32_t bitsOf(const Pack<uint8_t, kCount>& bytes) {
  union {
    Pack<uint8_t, kCount> pack;
    uint32_t word[(kCount + 3) / 4];
  } view;
  view.word[0] = 0;
  view.pack = bytes;
  uint32_t bits = 0;
  // The product has byte k of the word in bit 24 + k, and nothing above bit 27.
  KELPIE_UNROLL
  for (int k = 0; k < (kCount + 3) / 4; ++k) bits |= (view.word[k] * 0x01020408u >> 24) << (4 * k);
  return bits;
}

/// The packs of this thread: neighbours of a read-only array, of a whole tile.
template <class S, class T>
KELPIE_DEVICE void loadWhole(const T* array, const Tile& tile, Pack<T, S::kWidth> (&packs)[S::kRows]) {
  KELPIE_UNROLL
  for (int row = 0; row < S::kRows; ++row)
    packs[row] = *reinterpret_cast<const Pack<T, S::kWidth>*>(array + tile.base + S::group(row));
}
/// The same of part of a tile; where items are not in it, zero, or with kNearest what the nearest one that is
/// has. Elements are loaded one by one, so that none waits for a branch.
template <class S, bool kNearest = false, class T>
KELPIE_DEVICE void loadPart(const T* array, const Tile& tile, Pack<T, S::kWidth> (&packs)[S::kRows]) {
  KELPIE_UNROLL
  for (int row = 0; row < S::kRows; ++row) {
    KELPIE_UNROLL
    for (int m = 0; m < S::kWidth; ++m) {
      const int offset = S::group(row) + m;
      const bool here = kNearest ? tile.count > 0 : tile.contains(offset);
      packs[row].item[m] = here ? array[tile.base + (kNearest ? tile.nearest(offset) : offset)] : T(0);
    }
  }
}
template <class S, bool kNearest = false, class T>
KELPIE_DEVICE void loadPacks(const T* array, const Tile& tile, Pack<T, S::kWidth> (&packs)[S::kRows]) {
  if (tile.count == S::kItems) {
    loadWhole<S>(array, tile, packs);
  } else {
    loadPart<S, kNearest>(array, tile, packs);
  }
}

/// Stores the items of a row (in order) that are in the tile; Stored may be narrower.
template <class S, class Stored, class T>
KELPIE_DEVICE void storeRow(Stored* array, const Tile& tile, int row, const T (&items)[S::kWidth]) {
  const int group = S::group(row);
  Stored* const place = array + tile.base + group;
  if (tile.covers(group, S::kWidth)) {
    Pack<Stored, S::kWidth> pack;
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) pack.item[S::slot(v)] = Stored(items[v]);
    storePack(place, pack);
  } else {
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      if (tile.contains(group + S::slot(v))) place[S::slot(v)] = Stored(items[v]);
    }
  }
}

}  // namespace kelpie

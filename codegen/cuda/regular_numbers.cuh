// Numbers of the segments of items in tiles of elements, where all segments are equally long: by arithmetic,
// with nothing to mark or to wait for. Used as SegmentNumbers (segment_numbers.cuh) is for segments given by
// offsets.
//
// Of segments of up to a tile, a product by the reciprocal of their length tells an item's; of longer ones at
// most one begins in a tile. On an H200 maps over 5*10^7 float64 that read a value of their segment took 0.94
// to 0.95 of the time with marks in shared memory where segments have 3, 8 and 60 elements, and the same
// where they have 750 and more; scans took the same.
#pragma once

#include "segments.cuh"

namespace kelpie {

template <class S>
struct RegularNumbers {
  static_assert(S::kItems <= 1 << 14, "products with reciprocals are exact for twice as many places");

  static constexpr int kNever = 0x7fffffff;  ///< an offset behind all of a tile

  int64_t first;  ///< the segment of the lowest element of the tile
  bool alone;     ///< none begins behind that: all items are of that segment

  __device__ __forceinline__ RegularNumbers(const RegularSegments& segments, const Tile& tile) {
    const int64_t length = segments.length > 0 ? segments.length : 1;  // without elements there is no tile
    first = ((tile.base | length) >> 32) == 0 ? int64_t(uint32_t(tile.base) / uint32_t(length))
                                              : tile.base / length;
    last_ = tile.count - 1;
    const int64_t into = tile.base - first * length;  // its first segment
    alone = into + tile.count <= length;
    if (length <= S::kItems) {
      length_ = uint32_t(length);
      before_ = uint32_t(into);
      reciprocal_ = ((1u << 31) + length_ - 1) / length_;
      next_ = kNever;
    } else {
      length_ = reciprocal_ = 0;
      before_ = into != 0;
      next_ = length - into <= S::kItems ? int(length - into) : kNever;
    }
  }

  /// The segments (less `first`) of the items of a row, in order; of items outside of the tile that of the
  /// last.
  __device__ __forceinline__ void row(int row, int (&number)[S::kWidth]) const {
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      const int offset = S::offset(row, v);
      number[v] = numberOf(offset < last_ ? offset : last_);
    }
  }

  /// Bits of this thread's items: a segment begins with it, in order.
  __device__ __forceinline__ uint32_t heads() const {
    uint32_t heads = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v)
        markIf(beginsAt(S::offset(row, v) + (S::kBackward ? 1 : 0)), row * S::kWidth + v, heads);
    }
    // Kept as a word: as truth values, which later code asks for, they do not fit the seven registers there
    // are for those, and ptxas gives up ("register allocation failed", CUDA 13.0).
    asm volatile("" : "+r"(heads));
    return heads;
  }

 private:
  uint32_t length_;  ///< of segments; 0: longer than a tile
  uint32_t before_;  ///< elements of the first segment that lie below the tile; of long ones whether any do
  uint32_t reciprocal_;  ///< 2^31 by the length, rounded up; 0 for long ones
  int last_;             ///< offset of the last item of the tile
  int next_;             ///< offset at which the next segment begins, if segments are longer than a tile

  __device__ __forceinline__ int numberOf(int offset) const {
    return int(__umulhi(2 * (before_ + uint32_t(offset)), reciprocal_)) + (offset >= next_ ? 1 : 0);
  }
  __device__ __forceinline__ bool beginsAt(int offset) const {
    const uint32_t place = before_ + uint32_t(offset);
    return uint32_t(numberOf(offset)) * length_ == place || offset == next_;
  }
};

}  // namespace kelpie

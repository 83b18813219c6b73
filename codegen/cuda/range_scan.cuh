// Scans of segments over the tiles of a range (segment_ranges.cuh), of which what they make is folded.
//
// A warp keeps what its segment has so far from tile to tile; only of the segment that its range begins in,
// what lies in lower ranges has to be known. So a range begins with its end: it folds its elements since the
// last segment began in it, and leaves that to those above it. Where segments are short these are few; of
// one as long as several ranges, all elements are read twice. Example: ranges of 8 elements, segments of 5,
// 6 and 13.
//
//   elements      aaaaabbb  bbbccccc  cccccccc
//   folded ahead       bbb     ccccc  cccccccc
//   known then    nothing   bbb       ccccc      of the segment that the range begins in
//
// L as in scan.cuh, all parts segmented, with Carry = Value.
#pragma once

#include "below_range.cuh"
#include "scan.cuh"
#include "segment_ranges.cuh"

namespace kelpie {

template <class S, class L, int kWarpsOfBlock>
struct RangeScan : RowScan<S, L, true> {
  using Value = typename L::Value;
  using Below = BelowRange<L, kWarpsOfBlock>;

  Value carry;  ///< of the segment, up to the tile; before `begin`: of what has been folded ahead

  __device__ __forceinline__ RangeScan() : carry(L::identity()), next_(L::identity()) {}

  /// Folds a tile of the elements since the last segment began, in order; items outside of it hold the
  /// identity.
  __device__ __forceinline__ void foldAhead(const Value (&own)[S::kRows][S::kWidth]) {
    bool head = false;
    if (!L::kCommutes) {
      carry = L::combine(carry, this->foldRows(own, 0, head), false);
      return;
    }
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      KELPIE_UNROLL
      for (int v = 0; v < S::kWidth; ++v) next_ = L::combine(next_, own[row][v], false);
    }
  }

  /// Behind these: `ended` tells whether a segment ends in the range. Contains barriers.
  __device__ __forceinline__ void begin(bool ended, int64_t order, const States<Value>& states,
                                        typename Below::Shared& shared) {
    if (L::kCommutes) {
      KELPIE_UNROLL
      for (int mask = 16; mask > 0; mask /= 2) next_ = L::combine(next_, shuffleXor(next_, mask), false);
      carry = next_;
    }
    carry = Below::find(carry, ended, false, true, order, states, shared);
  }

  /// Folds a tile in order, after which scanRow tells what lies before its items. Bits of `heads` mark items
  /// that begin a segment.
  __device__ __forceinline__ void run(const Value (&own)[S::kRows][S::kWidth], uint32_t heads) {
    bool head = false;
    const Value folded = this->foldRows(own, heads, head);
    next_ = L::combine(carry, folded, head);
  }
  __device__ __forceinline__ void scanRow(int row, const Value (&own)[S::kWidth], uint32_t heads,
                                          Value (&before)[S::kWidth]) const {
    this->scanFrom(carry, row, own, heads, before);
  }
  /// Goes on behind it; `ended`: a segment ends where it does.
  __device__ __forceinline__ void advance(bool ended) { carry = ended ? L::identity() : next_; }

 private:
  Value next_;  ///< `carry` behind the tile; before `begin`: what this lane has folded
};

}  // namespace kelpie

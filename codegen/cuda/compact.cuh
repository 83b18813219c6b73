// Stream compaction: the survivors of a tile are put side by side in shared memory and stored coalesced.
#pragma once

#include "scanner.cuh"
#include "tile.cuh"

namespace kelpie {

/// Items of a thread are values in registers, or offsets in the tile, of which values are made later.
template <class S>
struct Offsets {};
template <class T, int kRows, int kWidth>
KELPIE_DEVICE T itemOf(const T (&items)[kRows][kWidth], int row, int v) {
  return items[row][v];
}
template <class S>
KELPIE_DEVICE uint16_t itemOf(const Offsets<S>&, int row, int v) {
  static_assert(S::kItems <= 65536, "offsets have 16 bits");
  return uint16_t(S::offset(row, v));
}

/// Puts the marked items with ranks window .. window+kCapacity-1 into buffer[0..kCapacity). `rank`: of the
/// first marked item of each row of this thread, or of a later item before which none is marked.
template <class S, uint32_t kCapacity, class Items, class T>
KELPIE_DEVICE void collect(const Items& items, uint32_t marked, const uint32_t (&rank)[S::kRows],
                           uint32_t window, T* buffer) {
  KELPIE_UNROLL
  for (int row = 0; row < S::kRows; ++row) {
    uint32_t at = rank[row] - window;
    KELPIE_UNROLL
    for (int v = 0; v < S::kWidth; ++v) {
      if (!(marked >> (row * S::kWidth + v) & 1)) continue;
      if (kCapacity >= S::kItems || at < kCapacity) buffer[at] = itemOf(items, row, v);
      ++at;
    }
  }
}

/// The value of an item that is one.
struct ItsOwn {
  template <class T>
  __device__ __forceinline__ T operator()(T item) const {
    return item;
  }
};

/// Stores value(buffer[0..count)) by all threads of a block.
template <class S, class Out, class T, class Value>
KELPIE_DEVICE void storeBuffer(Out* out, const T* buffer, uint32_t count, const Value& value) {
  if constexpr (S::kItems == S::kThreads) {
    if (threadIdx.x < count) out[threadIdx.x] = value(buffer[threadIdx.x]);
  } else {
    for (uint32_t k = threadIdx.x; k < count; k += S::kThreads) out[k] = value(buffer[k]);
  }
}
/// Bytes go four at a time, wherever they begin; the buffer is aligned to 4.
template <class S, class T>
KELPIE_DEVICE void storeBuffer(T* out, const T* buffer, uint32_t count, const ItsOwn& value) {
  if constexpr (sizeof(T) == 1) {
    const uint32_t unaligned = uint32_t(-reinterpret_cast<int64_t>(out)) & 3;
    const uint32_t head = unaligned < count ? unaligned : count;
    const uint32_t words = (count - head) / 4, end = head + 4 * words;
    const uint32_t* const from = reinterpret_cast<const uint32_t*>(buffer);
    uint32_t* const to = reinterpret_cast<uint32_t*>(out + head);
    for (uint32_t k = threadIdx.x; k < words; k += S::kThreads) {
      const uint64_t next = head > 0 ? from[k + 1] : 0;
      to[k] = uint32_t((next << 32 | from[k]) >> (8 * head));
    }
    for (uint32_t k = threadIdx.x; k < head + (count - end); k += S::kThreads) {
      const uint32_t at = k < head ? k : end + (k - head);
      out[at] = buffer[at];
    }
  } else {
    storeBuffer<S, T, T, ItsOwn>(out, buffer, count, value);
  }
}

/// Stores the values of the `count` marked items of a tile to out[0..count). The first window has been
/// collected already if `collected`, and a barrier has followed. Contains barriers; the buffer is free at the
/// end.
template <class S, uint32_t kCapacity, class Out, class Items, class T, class Value = ItsOwn>
KELPIE_DEVICE void storeCompacted(Out* out, const Items& items, uint32_t marked,
                                  const uint32_t (&rank)[S::kRows], uint32_t count, T* buffer, bool collected,
                                  const Value& value = Value()) {
  if constexpr (kCapacity >= S::kItems) {  // there is one window, and items need not be kept for others
    if (!collected) {
      collect<S, kCapacity>(items, marked, rank, 0, buffer);
      __syncthreads();
    }
    storeBuffer<S>(out, buffer, count, value);
    __syncthreads();
  } else {
    for (uint32_t window = 0; window < count; window += kCapacity) {
      if (!collected) {
        collect<S, kCapacity>(items, marked, rank, window, buffer);
        __syncthreads();
      }
      collected = false;
      const uint32_t end = count - window < kCapacity ? count - window : kCapacity;
      storeBuffer<S>(out + window, buffer, end, value);
      __syncthreads();
    }
  }
}

/// The ranks of marked items in a tile and in all tiles, for levels that only count: kCounts sets of marks.
/// Two or four rows are counted in parts of one word.
template <class S, int kCounts>
struct BlockCount {
  static constexpr int kParts = 32 * S::kWidth < 256 ? 4 : 2;  ///< a row of a warp must fit one
  static constexpr int kBits = 32 / kParts;
  static constexpr uint32_t kMask = (1u << kBits) - 1;
  static constexpr int kWords = (S::kRows + kParts - 1) / kParts;

  struct Level {
    struct Carry {
      int64_t count[kCounts];
    };
    static constexpr bool kSegmented = false, kRestarts = false;
    static __device__ __forceinline__ Carry start() {
      Carry carry;
      KELPIE_UNROLL
      for (int c = 0; c < kCounts; ++c) carry.count[c] = 0;
      return carry;
    }
    static __device__ __forceinline__ Carry merge(const Carry& a, const Carry& b, bool) {
      Carry carry;
      KELPIE_UNROLL
      for (int c = 0; c < kCounts; ++c) carry.count[c] = a.count[c] + b.count[c];
      return carry;
    }
  };
  using Carry = typename Level::Carry;
  struct Shared {
    uint32_t totals[kCounts][S::kWarps];
    Carry lower;
  };

  uint32_t rank[kCounts][S::kRows];        ///< of this thread's first marked item of a row, in the tile
  uint32_t count[kCounts];                 ///< of the tile
  int64_t lower[kCounts], total[kCounts];  ///< of all lower tiles; of those and this one

  /// Ranks in the tile. Publishes the counts. Contains a barrier.
  __device__ __forceinline__ void rankItems(const uint32_t (&marked)[kCounts], Shared& shared,
                                            const States<Carry>& states, int64_t tile) {
    const int lane = laneIndex();
    KELPIE_UNROLL
    for (int c = 0; c < kCounts; ++c) {
      const uint32_t ofWarp = rankInWarp(marked[c], rank[c]);
      if (lane == 0) shared.totals[c][warpIndex()] = ofWarp;
    }
    __syncthreads();
    Carry all;
    KELPIE_UNROLL
    for (int c = 0; c < kCounts; ++c) {
      uint32_t lowerWarps = 0;
      count[c] = 0;
      KELPIE_UNROLL
      for (int warp = 0; warp < S::kWarps; ++warp) {
        if (warp == warpIndex()) lowerWarps = count[c];
        count[c] += shared.totals[c][warp];
      }
      KELPIE_UNROLL
      for (int row = 0; row < S::kRows; ++row) rank[c][row] += lowerWarps;
      all.count[c] = count[c];
    }
    if (threadIdx.x == 0 && states.tiles > 1) states.publishTile(tile, all, false);
  }

  /// Finds what lies below. Contains a barrier.
  __device__ __forceinline__ void findLower(Shared& shared, const States<Carry>& states, int64_t tile) {
    if (threadIdx.x == 0) shared.lower = awaitPrefix<Level>(states, tile);
    __syncthreads();
    KELPIE_UNROLL
    for (int c = 0; c < kCounts; ++c) {
      lower[c] = shared.lower.count[c];
      total[c] = lower[c] + count[c];
    }
  }

 private:
  /// Ranks in the warp; gives its count.
  static __device__ __forceinline__ uint32_t rankInWarp(uint32_t marked, uint32_t (&rank)[S::kRows]) {
    const int lane = laneIndex();
    uint32_t base = 0;  // of the rows so far
    KELPIE_UNROLL
    for (int k = 0; k < kWords; ++k) {
      uint32_t own = 0;
      KELPIE_UNROLL
      for (int j = 0; j < kParts; ++j) {
        const int row = kParts * k + j;
        if (row < S::kRows)
          own |= uint32_t(__popc(marked >> (row * S::kWidth) & ((1u << S::kWidth) - 1))) << (kBits * j);
      }
      uint32_t upTo = own;
      KELPIE_UNROLL
      for (int d = 1; d < 32; d *= 2) {
        const uint32_t left = __shfl_up_sync(kFullWarp, upTo, d);
        if (lane >= d) upTo += left;
      }
      const uint32_t rows = __shfl_sync(kFullWarp, upTo, 31), before = upTo - own;
      KELPIE_UNROLL
      for (int j = 0; j < kParts; ++j) {
        const int row = kParts * k + j;
        if (row >= S::kRows) continue;
        rank[row] = base + (before >> (kBits * j) & kMask);
        base += rows >> (kBits * j) & kMask;
      }
    }
    return base;
  }
};

}  // namespace kelpie

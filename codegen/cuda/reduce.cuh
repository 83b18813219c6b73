// Reductions of a whole space by commutative operators, with one fixed tree for each extent.
//
// Every thread folds its items, a block its threads, and the block that finishes last folds the blocks'
// partials in order of their number. How the space is cut does not depend on the device, so neither does the
// result. R: { Value; Value identity(); Value combine(a, b) }.
#pragma once

#include "tile.cuh"

namespace kelpie {

template <int kWarps, class R>
struct BlockReduce {
  using Value = typename R::Value;
  struct Shared {
    Value totals[kWarps];
  };

  /// The fold of all threads' values; all threads get it. Contains a barrier; another is needed before reuse.
  static __device__ __forceinline__ Value run(Value value, Shared& shared) {
    KELPIE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) value = R::combine(value, shuffleXor(value, mask));
    if (laneIndex() == 0) shared.totals[warpIndex()] = value;
    __syncthreads();
    value = shared.totals[0];
    KELPIE_UNROLL
    for (int warp = 1; warp < kWarps; ++warp) value = R::combine(value, shared.totals[warp]);
    return value;
  }

  /// The fold of partials[0..count), each thread a contiguous part. For the last block only. Contains
  /// barriers.
  static __device__ __forceinline__ Value fold(const Words<Value>* partials, int64_t count, Shared& shared) {
    const int64_t part = (count + kWarps * 32 - 1) / (kWarps * 32);
    const int64_t begin = part * threadIdx.x;
    const int64_t end = begin + part < count ? begin + part : count;
    Value value = R::identity();
    KELPIE_UNROLL_8
    for (int64_t k = begin; k < end; ++k) value = R::combine(value, loadShared(partials + k));
    __syncthreads();
    return run(value, shared);
  }

  /// Hands a value to other blocks: whole words, since they are read as such.
  static __device__ __forceinline__ void storeShared(Words<Value>* place, const Value& value) {
    Words<Value> words;
    words.value = value;
    *place = words;
  }

  /// A value another block wrote in this launch (not through the read-only cache).
  static __device__ __forceinline__ Value loadShared(const Words<Value>* place) {
    if constexpr (alignof(Value) >= 8) {
      union Wide {
        Value value;
        uint64_t word[sizeof(Value) / 8];
        __device__ Wide() : word{} {}
      } words;
      const auto* source = reinterpret_cast<const volatile uint64_t*>(place);
      KELPIE_UNROLL
      for (int k = 0; k < int(sizeof(Value) / 8); ++k) words.word[k] = source[k];
      return words.value;
    } else {
      Words<Value> words;
      const volatile uint32_t* source = place->word;
      KELPIE_UNROLL
      for (int k = 0; k < int(sizeof(words.word) / 4); ++k) words.word[k] = source[k];
      return words.value;
    }
  }
};

}  // namespace kelpie

// Reductions of a whole space by commutative operators, with one fixed tree for each extent.
//
// Every thread folds its items, a block its threads, and the block that finishes last folds the blocks'
// partials in order of their number. How the space is cut does not depend on the device, so neither does the
// result. R: { Value; Value identity(); Value combine(a, b) }.
#pragma once

#include "tile.cuh"

namespace kelpie {

/// What a value is moved in between blocks.
template <bool kWide>
struct WordOf {
  using Type = uint32_t;
};
template <>
struct WordOf<true> {
  using Type = uint64_t;
};

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

  /// Hands a value to other blocks. Whole words, since they are read as such: the compiler stores a part of
  /// one whose other part is padding, unless it may not choose.
  static __device__ __forceinline__ void storeShared(Words<Value>* place, const Value& value) {
    Bits bits;
    bits.value = value;
    auto* target = reinterpret_cast<volatile Word*>(place);
    KELPIE_UNROLL
    for (int k = 0; k < kWords; ++k) target[k] = bits.word[k];
  }

  /// A value another block wrote in this launch (not through the read-only cache).
  static __device__ __forceinline__ Value loadShared(const Words<Value>* place) {
    Bits bits;
    const auto* source = reinterpret_cast<const volatile Word*>(place);
    KELPIE_UNROLL
    for (int k = 0; k < kWords; ++k) bits.word[k] = source[k];
    return bits.value;
  }

 private:
  using Word = typename WordOf<(alignof(Value) >= 8)>::Type;
  static constexpr int kWords = (sizeof(Value) + sizeof(Word) - 1) / sizeof(Word);
  union Bits {
    Value value;
    Word word[kWords];
    __device__ Bits() : word{} {}
  };
};

}  // namespace kelpie

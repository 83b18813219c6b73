// Segments whose positions are shared out to several blocks, a chunk each: what becomes of partial results.
// Blocks with the same segments are a group; the one of a group that finishes last folds them.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "reduce.cuh"

namespace kelpie {

/// Partial results of all segments, those of a segment side by side.
template <class S, class L>
struct ChunkFold {
  using Value = typename L::Value;
  /// One value of another, as reduce.cuh wants it.
  struct Fold {
    using Value = typename L::Value;
    static __device__ __forceinline__ Value identity() { return L::identity(); }
    static __device__ __forceinline__ Value combine(const Value& a, const Value& b) {
      return L::combine(a, b, false);
    }
  };
  using Partials = BlockReduce<S::kWarps, Fold>;

  static __device__ __forceinline__ Value ofWarp(Value value) {
    KELPIE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) value = Fold::combine(value, shuffleXor(value, mask));
    return value;
  }

  static __device__ __forceinline__ void store(const Launch& launch, int64_t place, const Value& value) {
    Partials::storeShared(reinterpret_cast<Words<Value>*>(launch.values) + place, value);
  }

  /// For the last block of a group: calls result(segment, value) for each of its `count` segments.
  template <class Result>
  static __device__ __forceinline__ void fold(const Launch& launch, int64_t first, int count, int64_t chunks,
                                              const Result& result) {
    auto* partials = reinterpret_cast<Words<Value>*>(launch.values) + first * chunks;
    int lanes = 32;  // for each segment
    while (lanes > 1 && count * lanes > S::kThreads) lanes /= 2;
    for (int base = 0; base < count * lanes; base += S::kThreads) {
      const int k = (base + int(threadIdx.x)) / lanes;
      Value value = L::identity();
      if (k < count) {
        KELPIE_UNROLL_8
        for (int64_t chunk = threadIdx.x % lanes; chunk < chunks; chunk += lanes)
          value = Fold::combine(value, Partials::loadShared(partials + k * chunks + chunk));
      }
      for (int mask = lanes / 2; mask > 0; mask /= 2) value = Fold::combine(value, shuffleXor(value, mask));
      if (threadIdx.x % lanes == 0 && k < count) result(first + k, value);
    }
  }
};

}  // namespace kelpie

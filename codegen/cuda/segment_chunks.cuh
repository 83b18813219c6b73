// Segments whose positions are shared out to several blocks, a chunk each: what becomes of partial results.
// Blocks with the same segments are a group. The one that finishes last of kTogether folds what these have,
// the one that does so last of kTogether of those folds that, and so on: one block alone would have to bring
// the results of hundreds. The tree depends on the number of chunks alone.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "reduce.cuh"

namespace kelpie {

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
  static constexpr int kTogether = 24;

  static __device__ __forceinline__ Value ofWarp(Value value) {
    KELPIE_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) value = Fold::combine(value, shuffleXor(value, mask));
    return value;
  }

  /// For all threads of a block: calls result(row, value) for each of `rows` rows, with the fold of
  /// load(row, 0..number).
  template <class Load, class Result>
  static __device__ __forceinline__ void foldRows(int rows, int number, const Load& load,
                                                  const Result& result) {
    int lanes = 32;  // for each row
    while (lanes > 1 && rows * lanes > S::kThreads) lanes /= 2;
    for (int base = 0; base < rows * lanes; base += S::kThreads) {
      const int row = (base + int(threadIdx.x)) / lanes;
      Value value = L::identity();
      if (row < rows) {
        KELPIE_UNROLL_8
        for (int k = threadIdx.x % lanes; k < number; k += lanes) value = Fold::combine(value, load(row, k));
      }
      for (int mask = lanes / 2; mask > 0; mask /= 2) value = Fold::combine(value, shuffleXor(value, mask));
      if (threadIdx.x % lanes == 0 && row < rows) result(row, value);
    }
  }

  /// Partial results of the segments of a group, those of a chunk side by side.
  struct Group {
    Words<Value>* partials;
    uint32_t* counters;
    int rows;        ///< segments
    int64_t chunks;  ///< blocks; more than one

    /// Group `number`, with segments from `first` on.
    __device__ __forceinline__ Group(const Launch& launch, int64_t number, int64_t first, int segments,
                                     int64_t blocks)
        : partials(reinterpret_cast<Words<Value>*>(launch.values) + first * blocks),
          counters(launch.counters),
          rows(segments),
          chunks(blocks) {
      int64_t each = 0;  // counters of a group
      for (int64_t left = chunks; left > 1; each += left) left = (left + kTogether - 1) / kTogether;
      counters += number * each;
    }

    __device__ __forceinline__ void store(int64_t chunk, int row, const Value& value) const {
      Partials::storeShared(partials + chunk * rows + row, value);
    }

    /// When this block has stored what it has of chunk `number`: if all are there, calls result(row, value)
    /// for each segment. Contains barriers.
    template <class Result>
    __device__ __forceinline__ void finish(int64_t number, uint32_t& shared, const Result& result) const {
      uint32_t* counter = counters;
      int64_t stride = 1;  // chunks of a partial result
      for (int64_t left = chunks; left > 1;) {
        const int64_t set = number / kTogether, first = set * kTogether;
        const int together = left - first < kTogether ? int(left - first) : kTogether;
        if (!isLastOf(counter + set, uint32_t(together), shared)) return;
        left = (left + kTogether - 1) / kTogether;
        Words<Value>* const from = partials + first * stride * rows;
        foldRows(
            rows, together,
            [&](int row, int k) { return Partials::loadShared(from + k * stride * rows + row); },
            [&](int row, const Value& value) {
              if (left == 1) {
                result(row, value);
              } else {
                Partials::storeShared(from + row, value);
              }
            });
        counter += left;
        stride *= kTogether;
        number = set;
      }
    }
  };
};

}  // namespace kelpie

// Reductions of the segments of a regular space whose elements read arrays by their segment or by their
// position only: a row of such a space is made of few loads, so no element needs a thread of its own.
//
// Every thread works on kRows segments at once, since what is read by position serves all of them; on half of
// them, a fourth and so on, where there are no more. Where there are many segments, or short ones, a thread
// goes through its segments alone. Otherwise a block shares kRows segments, each thread taking every
// kThreads-th position; and where even so there were few blocks, several, each with a chunk of the positions:
// they leave partial results, which the block that finishes last folds. All of it depends on the space alone,
// so results are reproducible.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "segment_chunks.cuh"

namespace kelpie {

/// How a regular space is cut (CudaPass::tiles does the same on the host).
template <class S>
struct RowTiles {
  static constexpr int64_t kMany = 1 << 17;  ///< so many segments are threads enough
  int64_t length, count;                     ///< of segments
  int64_t groups, chunks;                    ///< blocks by segments and by positions
  bool alone;                                ///< a thread has segments of its own

  __device__ __forceinline__ RowTiles(int64_t lengthOfSegments, int64_t segments, int64_t tiles)
      : length(lengthOfSegments), count(segments), alone(length <= S::kThreads || count >= kMany) {
    const int64_t atOnce = alone ? S::kThreads * S::kRows : S::kRows;
    groups = (count + atOnce - 1) / atOnce;
    if (groups == 0) groups = 1;
    chunks = tiles / groups;
  }
};

/// So many rows at once, as a type.
template <int kNumber>
struct RowCount {
  static constexpr int kRows = kNumber;
};

/// Calls fold(p) for p = begin, begin + step ... below end, for kTogether of them at a time, whose loads are
/// on the way together: a loop that may end behind each of them waits for one after the other.
template <int kTogether, class Function>
__device__ __forceinline__ void forPositions(int64_t begin, int64_t end, int64_t step, const Function& fold) {
  int64_t p = begin;
  for (; end - p > (kTogether - 1) * step; p += kTogether * step) {
    KELPIE_UNROLL
    for (int k = 0; k < kTogether; ++k) fold(p + k * step);
  }
  for (; p < end; p += step) fold(p);
}

template <class S, class L>
struct RowReduce {
  using Value = typename L::Value;
  struct Shared {
    Value totals[S::kRows][S::kWarps];
    uint32_t finished;
  };
  using Chunks = ChunkFold<S, L>;

  const RowTiles<S> tiles;
  int64_t first;             ///< segment of row 0 of this thread
  int64_t begin, end, step;  ///< positions of this thread
  Value own[S::kRows];

  __device__ __forceinline__ RowReduce(const Launch& launch, int64_t length, int64_t count)
      : tiles(length, count, launch.tiles) {
    const int64_t group = blockIdx.x % tiles.groups;
    if (tiles.alone) {
      first = group * S::kThreads * S::kRows + threadIdx.x;
      begin = 0;
      end = length;
      step = 1;
    } else {
      first = group * S::kRows;
      const int64_t part = (length + tiles.chunks - 1) / tiles.chunks;
      const int64_t from = blockIdx.x / tiles.groups * part;
      end = from + part < length ? from + part : length;
      begin = from + threadIdx.x;
      step = S::kThreads;
    }
    if (count == 0) end = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) own[row] = L::identity();
  }

  /// Of a row; where there is none, the last one: what is made of it is dropped.
  __device__ __forceinline__ int64_t segment(int row) const {
    const int64_t s = first + (tiles.alone ? row * S::kThreads : row);
    return s < tiles.count ? s : tiles.count - 1;
  }

  /// Calls fold(RowCount<k>()) for the least k, S::kRows halved some times, that takes all rows there are.
  template <int kAtOnce = S::kRows, class Function>
  __device__ __forceinline__ void forRows(const Function& fold) const {
    if constexpr (kAtOnce > 1) {
      if (!tiles.alone && tiles.count - first <= kAtOnce / 2) return forRows<kAtOnce / 2>(fold);
    }
    fold(RowCount<kAtOnce>());
  }

  /// Calls result(segment, value) once for each segment. Contains barriers.
  template <class Result>
  __device__ __forceinline__ void finish(const Launch& launch, Shared& shared, const Result& result) {
    if (tiles.alone) {
      KELPIE_UNROLL
      for (int row = 0; row < S::kRows; ++row) {
        const int64_t s = first + row * S::kThreads;
        if (s < tiles.count) result(s, own[row]);
      }
      return;
    }
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const Value value = Chunks::ofWarp(own[row]);
      if (laneIndex() == 0) shared.totals[row][warpIndex()] = value;
    }
    __syncthreads();
    const int64_t left = tiles.count - first, chunk = blockIdx.x / tiles.groups;
    const int rows = left < S::kRows ? int(left) : S::kRows;
    const typename Chunks::Group group(launch, first / S::kRows, first, rows, tiles.chunks);
    if (int(threadIdx.x) < rows) {
      Value value = shared.totals[threadIdx.x][0];
      KELPIE_UNROLL
      for (int warp = 1; warp < S::kWarps; ++warp)
        value = Chunks::Fold::combine(value, shared.totals[threadIdx.x][warp]);
      if (tiles.chunks > 1) {
        group.store(chunk, threadIdx.x, value);
      } else {
        result(first + threadIdx.x, value);
      }
    }
    if (tiles.chunks > 1)
      group.finish(chunk, shared.finished, [&](int row, const Value& value) { result(first + row, value); });
  }
};

}  // namespace kelpie

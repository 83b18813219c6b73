// Reductions of the segments of a regular space in which neighbouring *segments* read what lies side by side:
// sums of the columns of a matrix.
//
// The lanes of a warp have neighbouring segments, kRows times as many at once, and go through their positions
// step by step; where there are fewer segments, the rest of the lanes take further positions. Where segments
// are short or many, warps have segments of their own. Otherwise those of a block share theirs, each taking
// every kWarps-th position; and where even so there were few blocks, several, each with a chunk of the
// positions: they leave partial results, which the block that finishes last folds. All of it depends on the
// space alone, so results are reproducible.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "segment_chunks.cuh"
#include "segment_rows.cuh"
#include "transposed_tile.cuh"

namespace kelpie {

/// How a regular space is cut (CudaPass::tiles does the same on the host).
template <class S>
struct ColumnTiles {
  static constexpr int64_t kMany = 528;  ///< blocks enough
  static constexpr int64_t kShort = 32;
  int64_t length, count;   ///< of segments
  int lanes;               ///< with neighbouring segments
  bool alone;              ///< a warp has segments of its own
  int64_t groups, chunks;  ///< blocks by segments and by positions

  __device__ __forceinline__ ColumnTiles(int64_t lengthOfSegments, int64_t segments, int64_t tiles)
      : length(lengthOfSegments), count(segments), lanes(lanesFor(segments)) {
    const int64_t ofWarp = lanes * S::kRows;
    alone = length <= kShort || count >= kMany * S::kWarps * ofWarp;
    const int64_t atOnce = alone ? S::kWarps * ofWarp : ofWarp;
    groups = (count + atOnce - 1) / atOnce;
    if (groups == 0) groups = 1;
    chunks = tiles / groups;
  }
};

template <class S, class L>
struct ColumnReduce {
  using Value = typename L::Value;
  using Chunks = ChunkFold<S, L>;
  struct Shared {
    Value totals[S::kWarps][32];
    uint32_t finished;
  };

  const ColumnTiles<S> tiles;
  int64_t base;              ///< segment of row 0 and lane 0
  int64_t first;             ///< segment of row 0 of this thread
  int64_t begin, end, step;  ///< positions of this thread
  Value own[S::kRows];

  __device__ __forceinline__ ColumnReduce(const Launch& launch, int64_t length, int64_t count)
      : tiles(length, count, launch.tiles) {
    const int64_t group = blockIdx.x % tiles.groups;
    const int beside = 32 / tiles.lanes;  // positions of a warp
    const int64_t ofWarp = tiles.lanes * S::kRows;
    begin = laneIndex() / tiles.lanes;
    step = beside;
    end = length;
    if (tiles.alone) {
      base = (group * S::kWarps + warpIndex()) * ofWarp;
    } else {
      base = group * ofWarp;
      step *= S::kWarps;
      const int64_t part = (length + tiles.chunks - 1) / tiles.chunks;
      const int64_t from = blockIdx.x / tiles.groups * part;
      end = from + part < length ? from + part : length;
      begin += from + warpIndex() * beside;
    }
    first = base + laneIndex() % tiles.lanes;
    if (base >= count) end = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) own[row] = L::identity();
  }

  /// Of a row; where there is none, the last one: what is made of it is dropped.
  __device__ __forceinline__ int64_t segment(int row) const {
    const int64_t s = first + row * tiles.lanes;
    return s < tiles.count ? s : tiles.count - 1;
  }

  /// Calls fold(RowCount<k>()) for the least k, S::kRows halved some times, that takes all rows there are.
  template <int kAtOnce = S::kRows, class Function>
  __device__ __forceinline__ void forRows(const Function& fold) const {
    if constexpr (kAtOnce > 1) {
      if (tiles.count - base <= kAtOnce / 2 * tiles.lanes) return forRows<kAtOnce / 2>(fold);
    }
    fold(RowCount<kAtOnce>());
  }

  /// Calls result(segment, value) once for each segment. Contains barriers.
  template <class Result>
  __device__ __forceinline__ void finish(const Launch& launch, Shared& shared, const Result& result) {
    const int lane = laneIndex();
    const int64_t left = tiles.count - base;  // segments of this warp or block, and those behind
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row)
      for (int mask = tiles.lanes; mask < 32; mask *= 2)
        own[row] = Chunks::Fold::combine(own[row], shuffleXor(own[row], mask));
    if (tiles.alone) {
      KELPIE_UNROLL
      for (int row = 0; row < S::kRows; ++row) {
        const int number = row * tiles.lanes + lane;
        if (lane < tiles.lanes && number < left) result(base + number, own[row]);
      }
      return;
    }
    const int most = tiles.lanes * S::kRows;
    const int columns = left < most ? int(left) : most;
    const int64_t chunk = blockIdx.x / tiles.groups;
    const typename Chunks::Group group(launch, base / most, base, columns, tiles.chunks);
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      if (row * tiles.lanes >= columns) break;
      if (row > 0) __syncthreads();
      shared.totals[warpIndex()][lane] = own[row];
      __syncthreads();
      const int number = row * tiles.lanes + lane;
      if (warpIndex() > 0 || lane >= tiles.lanes || number >= columns) continue;
      Value value = shared.totals[0][lane];
      KELPIE_UNROLL
      for (int warp = 1; warp < S::kWarps; ++warp)
        value = Chunks::Fold::combine(value, shared.totals[warp][lane]);
      if (tiles.chunks > 1) {
        group.store(chunk, number, value);
      } else {
        result(base + number, value);
      }
    }
    if (tiles.chunks > 1)
      group.finish(chunk, shared.finished,
                   [&](int number, const Value& value) { result(base + number, value); });
  }
};

}  // namespace kelpie

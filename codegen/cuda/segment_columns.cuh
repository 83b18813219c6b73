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
// Segments that are numbered by two indices, outer * inner + place, as those of a product of matrices
// (codegen/regular_reads.h): a thread has kRows of the outer ones and one place, so what is read by place and
// position serves all of them.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "segment_chunks.cuh"
#include "segment_rows.cuh"
#include "transposed_tile.cuh"

namespace kelpie {

/// How a regular space is cut (CudaPass::tiles does the same on the host).
template <class S, bool kTwoIndices>
struct ColumnTiles {
  static constexpr int64_t kMany = 528;  ///< blocks enough
  static constexpr int64_t kShort = 32;
  int64_t length, count;   ///< of segments
  int64_t inner, outers;   ///< of two indices: how many there are
  int lanes;               ///< with neighbouring segments
  int64_t across;          ///< of two indices: groups of places
  int64_t sets;            ///< groups of segments that a warp or a block has
  bool alone;              ///< a warp
  int64_t groups, chunks;  ///< blocks by segments and by positions

  __device__ __forceinline__ ColumnTiles(int64_t lengthOfSegments, int64_t segments, int64_t places,
                                         int64_t tiles)
      : length(lengthOfSegments), count(segments), inner(places), outers(0), across(0) {
    lanes = lanesFor(kTwoIndices ? inner : count);
    if (kTwoIndices) {
      across = (inner + lanes - 1) / lanes;
      outers = inner > 0 ? count / inner : 0;
      sets = across * ((outers + S::kRows - 1) / S::kRows);
    } else {
      sets = (count + lanes * S::kRows - 1) / (lanes * S::kRows);
    }
    alone = length <= kShort || sets >= kMany * S::kWarps;
    groups = alone ? (sets + S::kWarps - 1) / S::kWarps : sets;
    if (groups == 0) groups = 1;
    chunks = tiles / groups;
  }
};

template <class S, class L, bool kTwoIndices>
struct ColumnReduce {
  using Value = typename L::Value;
  using Chunks = ChunkFold<S, L>;
  struct Shared {
    Value totals[S::kWarps][32];
    uint32_t finished;
  };

  const ColumnTiles<S, kTwoIndices> tiles;
  int64_t set;               ///< of this warp or block
  int64_t base;              ///< segment of row 0 and lane 0; of two indices: its place
  int64_t firstOuter;        ///< of two indices: that of row 0
  int64_t begin, end, step;  ///< positions of this thread
  Value own[S::kRows];

  __device__ __forceinline__ ColumnReduce(const Launch& launch, int64_t length, int64_t count, int64_t inner)
      : tiles(length, count, inner, launch.tiles), firstOuter(0) {
    const int64_t group = blockIdx.x % tiles.groups;
    const int beside = 32 / tiles.lanes;  // positions of a warp
    begin = laneIndex() / tiles.lanes;
    step = beside;
    end = length;
    set = group;
    if (tiles.alone) {
      set = group * S::kWarps + warpIndex();
    } else {
      step *= S::kWarps;
      const int64_t part = (length + tiles.chunks - 1) / tiles.chunks;
      const int64_t from = blockIdx.x / tiles.groups * part;
      end = from + part < length ? from + part : length;
      begin += from + warpIndex() * beside;
    }
    if (set >= tiles.sets) end = 0;
    if (kTwoIndices) {
      const int64_t high = tiles.across > 0 ? set / tiles.across : 0;
      firstOuter = high * S::kRows;
      base = (set - high * tiles.across) * tiles.lanes;
    } else {
      base = set * tiles.lanes * S::kRows;
    }
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) own[row] = L::identity();
  }

  // Of a row; where there is none, of the last one: what is made of it is dropped.
  __device__ __forceinline__ int64_t place() const {
    const int64_t at = base + laneIndex() % tiles.lanes;
    return at < tiles.inner ? at : tiles.inner - 1;
  }
  __device__ __forceinline__ int64_t outer(int row) const {
    return firstOuter + row < tiles.outers ? firstOuter + row : tiles.outers - 1;
  }
  __device__ __forceinline__ int64_t segment(int row) const {
    if (kTwoIndices) return outer(row) * tiles.inner + place();
    const int64_t s = base + row * tiles.lanes + laneIndex() % tiles.lanes;
    return s < tiles.count ? s : tiles.count - 1;
  }

  /// Calls fold(RowCount<k>()) for the least k, S::kRows halved some times, that takes all rows there are.
  template <int kAtOnce = S::kRows, class Function>
  __device__ __forceinline__ void forRows(const Function& fold) const {
    if constexpr (kAtOnce > 1) {
      const int64_t left =
          kTwoIndices ? tiles.outers - firstOuter : (tiles.count - base - 1) / tiles.lanes + 1;
      if (left <= kAtOnce / 2) return forRows<kAtOnce / 2>(fold);
    }
    fold(RowCount<kAtOnce>());
  }

  /// Calls result(segment, value) for value number `number` of the set, row by row, if there is one.
  template <class Result>
  __device__ __forceinline__ void tell(int number, const Value& value, const Result& result) const {
    if (kTwoIndices) {
      const int64_t at = base + number % tiles.lanes, high = firstOuter + number / tiles.lanes;
      if (at < tiles.inner && high < tiles.outers) result(high * tiles.inner + at, value);
    } else {
      if (base + number < tiles.count) result(base + number, value);
    }
  }

  /// Calls result(segment, value) once for each segment. Contains barriers.
  template <class Result>
  __device__ __forceinline__ void finish(const Launch& launch, Shared& shared, const Result& result) {
    const int lane = laneIndex(), most = tiles.lanes * S::kRows;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row)
      for (int mask = tiles.lanes; mask < 32; mask *= 2)
        own[row] = Chunks::Fold::combine(own[row], shuffleXor(own[row], mask));
    if (tiles.alone) {
      KELPIE_UNROLL
      for (int row = 0; row < S::kRows; ++row)
        if (lane < tiles.lanes && set < tiles.sets) tell(row * tiles.lanes + lane, own[row], result);
      return;
    }
    const int64_t chunk = blockIdx.x / tiles.groups;
    const typename Chunks::Group group(launch, set, set * most, most, tiles.chunks);
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      if (row > 0) __syncthreads();
      shared.totals[warpIndex()][lane] = own[row];
      __syncthreads();
      if (warpIndex() > 0 || lane >= tiles.lanes) continue;
      Value value = shared.totals[0][lane];
      KELPIE_UNROLL
      for (int warp = 1; warp < S::kWarps; ++warp)
        value = Chunks::Fold::combine(value, shared.totals[warp][lane]);
      if (tiles.chunks > 1) {
        group.store(chunk, row * tiles.lanes + lane, value);
      } else {
        tell(row * tiles.lanes + lane, value, result);
      }
    }
    if (tiles.chunks > 1)
      group.finish(chunk, shared.finished,
                   [&](int number, const Value& value) { tell(number, value, result); });
  }
};

}  // namespace kelpie

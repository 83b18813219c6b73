// Reductions of a regular space whose segments are numbered by two indices, outer * inner + place, and whose
// elements are made of what is loaded by outer index and position, and by place and position (Product in
// codegen/regular_reads.h): products of matrices, distances of all pairs.
//
// A block has a tile of such segments, kOuters by kPlaces, and a thread kRows by kWidth of them, kSide apart.
// For kDepth positions at a time the block brings what all of the tile needs into shared memory, where each
// value serves a row or a column of the tile; the values of the next positions are on their way meanwhile.
// Where there are few tiles, several blocks share one, each with a chunk of the positions: they leave partial
// results, which the block that finishes last folds. All of it depends on the space alone, so results are
// reproducible.
//
// A tile of which half of the outer indices or of the places suffice is folded by half of a thread's rows or
// columns: correlations of 24 series fill a seventh of a tile of 64 by 64, and more than half of its quarter.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "segment_chunks.cuh"

namespace kelpie {

/// How a regular space is cut (CudaPass::tiles does the same on the host).
template <class S>
struct ProductTiles {
  static constexpr int kSide = 16;  ///< threads side by side, with neighbouring places
  static constexpr int kHigh = S::kThreads / kSide;
  static constexpr int kOuters = kHigh * S::kRows, kPlaces = kSide * S::kWidth;
  static constexpr int kDepth = 16;
  /// Values that a thread brings for kDepth positions.
  static constexpr int kOfOuters = kOuters * kDepth / S::kThreads, kOfPlaces = kPlaces * kDepth / S::kThreads;
  static_assert(S::kThreads % kSide == 0 && kOfPlaces * S::kThreads == kPlaces * kDepth);

  int64_t length, inner, outers;
  int64_t across;        ///< tiles side by side
  int64_t sets, chunks;  ///< tiles, and blocks of each

  __device__ __forceinline__ ProductTiles(int64_t lengthOfSegments, int64_t segments, int64_t places,
                                          int64_t tiles)
      : length(lengthOfSegments), inner(places), outers(segments / places) {
    across = (inner + kPlaces - 1) / kPlaces;
    sets = across * ((outers + kOuters - 1) / kOuters);
    chunks = tiles / sets;
  }
};

/// So many of the rows or columns of a thread.
template <int kCount>
struct Count {
  static constexpr int value = kCount;
};

template <class S, class L>
struct ProductReduce {
  using Value = typename L::Value;
  using Chunks = ChunkFold<S, L>;
  using Tiles = ProductTiles<S>;
  struct Shared {
    uint32_t finished;
  };
  static constexpr int kHalfRows = (S::kRows + 1) / 2, kHalfColumns = (S::kWidth + 1) / 2;

  const Tiles tiles;
  int64_t set;
  int64_t firstOuter, firstPlace;  ///< of the tile
  int64_t begin, end;              ///< positions of this block
  bool fewOuters, fewPlaces;       ///< half of the tile has them all
  Value own[S::kRows][S::kWidth];

  __device__ __forceinline__ ProductReduce(const Launch& launch, int64_t length, int64_t count, int64_t inner)
      : tiles(length, count, inner, launch.tiles), set(blockIdx.x % tiles.sets) {
    firstOuter = set / tiles.across * Tiles::kOuters;
    firstPlace = set % tiles.across * Tiles::kPlaces;
    const int64_t part = (length + tiles.chunks - 1) / tiles.chunks;
    begin = blockIdx.x / tiles.sets * part;
    end = begin + part < length ? begin + part : length;
    fewOuters = tiles.outers - firstOuter <= kHalfRows * Tiles::kHigh;
    fewPlaces = tiles.inner - firstPlace <= kHalfColumns * Tiles::kSide;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      KELPIE_UNROLL
      for (int column = 0; column < S::kWidth; ++column) own[row][column] = L::identity();
    }
  }

  /// Of the values of a tile, number `item`: its position, and its index. Neighbouring items are neighbours
  /// in memory.
  template <bool kByPosition, int kIndices>
  static __device__ __forceinline__ int depthOf(int item) {
    return kByPosition ? item % Tiles::kDepth : item / kIndices;
  }
  template <bool kByPosition, int kIndices>
  static __device__ __forceinline__ int indexOf(int item) {
    return kByPosition ? item / Tiles::kDepth : item % kIndices;
  }

  // Behind the last one, the last one: what is made of it is dropped.
  __device__ __forceinline__ int64_t outer(int number) const {
    const int64_t at = firstOuter + number;
    return at < tiles.outers ? at : tiles.outers - 1;
  }
  __device__ __forceinline__ int64_t place(int number) const {
    const int64_t at = firstPlace + number;
    return at < tiles.inner ? at : tiles.inner - 1;
  }
  __device__ __forceinline__ int64_t position(int64_t at) const { return at < end ? at : end - 1; }

  /// Numbers of the outer indices and the places of this thread.
  static __device__ __forceinline__ int rowOf(int row) {
    return int(threadIdx.x) / Tiles::kSide + row * Tiles::kHigh;
  }
  static __device__ __forceinline__ int columnOf(int column) {
    return int(threadIdx.x) % Tiles::kSide + column * Tiles::kSide;
  }

  /// Calls fold(rows, columns, k), the former two Counts, for those of kDepth positions that there are from
  /// `first` on.
  template <class Fold>
  __device__ __forceinline__ void forDepth(int64_t first, const Fold& fold) const {
    constexpr Count<S::kRows> kAllRows{};
    constexpr Count<S::kWidth> kAllColumns{};
    constexpr Count<kHalfRows> kFewRows{};
    constexpr Count<kHalfColumns> kFewColumns{};
    const int64_t left = end - first;
    const int count = left < Tiles::kDepth ? int(left) : Tiles::kDepth;
    if (fewOuters || fewPlaces) {
      if (!fewPlaces) {
        KELPIE_UNROLL_4
        for (int k = 0; k < count; ++k) fold(kFewRows, kAllColumns, k);
      } else if (!fewOuters) {
        KELPIE_UNROLL_4
        for (int k = 0; k < count; ++k) fold(kAllRows, kFewColumns, k);
      } else {
        KELPIE_UNROLL_8
        for (int k = 0; k < count; ++k) fold(kFewRows, kFewColumns, k);
      }
    } else if (count == Tiles::kDepth) {
      KELPIE_UNROLL
      for (int k = 0; k < Tiles::kDepth; ++k) fold(kAllRows, kAllColumns, k);
    } else {
      KELPIE_NO_UNROLL
      for (int k = 0; k < count; ++k) fold(kAllRows, kAllColumns, k);
    }
  }

  /// Calls result(segment, value) for value number `number` of the tile, if there is one.
  template <class Result>
  __device__ __forceinline__ void tell(int number, const Value& value, const Result& result) const {
    const int64_t high = firstOuter + number / Tiles::kPlaces, at = firstPlace + number % Tiles::kPlaces;
    if (high < tiles.outers && at < tiles.inner) result(high * tiles.inner + at, value);
  }

  /// Calls result(segment, value) once for each segment. Contains barriers.
  template <class Result>
  __device__ __forceinline__ void finish(const Launch& launch, Shared& shared, const Result& result) const {
    constexpr int kAll = Tiles::kOuters * Tiles::kPlaces;
    if (tiles.chunks == 1) {
      KELPIE_UNROLL
      for (int row = 0; row < S::kRows; ++row) {
        KELPIE_UNROLL
        for (int column = 0; column < S::kWidth; ++column)
          tell(rowOf(row) * Tiles::kPlaces + columnOf(column), own[row][column], result);
      }
      return;
    }
    const int64_t chunk = blockIdx.x / tiles.sets;
    const typename Chunks::Group group(launch, set, set * kAll, kAll, tiles.chunks);
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      KELPIE_UNROLL
      for (int column = 0; column < S::kWidth; ++column)
        group.store(chunk, rowOf(row) * Tiles::kPlaces + columnOf(column), own[row][column]);
    }
    group.finish(chunk, shared.finished,
                 [&](int number, const Value& value) { tell(number, value, result); });
  }
};

}  // namespace kelpie

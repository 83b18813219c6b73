// Reductions of short segments of a regular space that are numbered by two indices, outer * inner + place, and
// read arrays by one of these at a time: products of matrices with few columns, distances between points of few
// dimensions.
//
// A thread has one place and kRows of the outer indices, so what is read by place serves all of them. The lanes
// of a warp have neighbouring places; where there are fewer, the rest of the lanes have further outer indices,
// in each row those that are neighbours, and results lie side by side. With 3 places and kRows = 8:
//
//     lane        0  1  2  3  4  5  6 ... 31
//     place       0  1  2  -  0  1  2      -
//     row 0       0  0  0     1  1  1      7       outer index
//     row 1       8  8  8     9  9  9     15
//
// Nothing is shared and nothing is left for others, so a thread does hardly more than its sums.
//
// L as in segment_reduce.cuh.
#pragma once

#include "segment_rows.cuh"
#include "transposed_tile.cuh"

namespace kelpie {

/// CudaPass::tiles cuts a space so on the host.
template <class S, class L>
struct ShortReduce {
  using Value = typename L::Value;
  struct Shared {};

  int64_t inner, outers;     ///< how many there are
  int lanes, beside;         ///< of a warp: neighbouring places, and outer indices in a row
  int64_t firstPlace;        ///< of this thread; there may be none
  int64_t firstOuter;        ///< that of row 0
  int64_t begin, end, step;  ///< positions of this thread
  Value own[S::kRows];

  __device__ __forceinline__ ShortReduce(const Launch&, int64_t length, int64_t count, int64_t places)
      : inner(places), outers(places > 0 ? count / places : 0), begin(0), end(length), step(1) {
    lanes = lanesFor(inner);
    beside = 32 / lanes;
    const int64_t set = int64_t(blockIdx.x) * S::kWarps + warpIndex();  // of this warp
    const int64_t across = (inner + lanes - 1) / lanes, high = across > 1 ? set / across : set;
    firstPlace = (set - high * across) * lanes + laneIndex() % lanes;
    firstOuter = high * S::kRows * beside + laneIndex() / lanes;
    if (firstOuter >= outers || firstPlace >= inner) end = 0;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) own[row] = L::identity();
  }

  // Of a row; where there is none, of the last one: what is made of it is dropped.
  __device__ __forceinline__ int64_t place() const { return firstPlace; }
  __device__ __forceinline__ int64_t outer(int row) const {
    const int64_t at = firstOuter + row * beside;
    return at < outers ? at : outers - 1;
  }
  __device__ __forceinline__ int64_t segment(int row) const { return outer(row) * inner + firstPlace; }

  template <class Function>
  __device__ __forceinline__ void forRows(const Function& fold) const {
    fold(RowCount<S::kRows>());
  }

  /// Calls result(segment, value) once for each segment.
  template <class Result>
  __device__ __forceinline__ void finish(const Launch&, Shared&, const Result& result) {
    if (firstPlace >= inner) return;
    KELPIE_UNROLL
    for (int row = 0; row < S::kRows; ++row) {
      const int64_t at = firstOuter + row * beside;
      if (at < outers) result(at * inner + firstPlace, own[row]);
    }
  }
};

}  // namespace kelpie

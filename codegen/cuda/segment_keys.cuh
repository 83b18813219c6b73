// Reductions of the segments of a regular space in which a key says to which segment an element belongs
// (codegen/keyed_segments.h): every position is looked at once, whatever the number of segments.
//
// A block has kKeys segments and a chunk of the positions, of which each thread takes every kThreads-th. Each
// of its warps has a table with a place for each segment; of fewer segments, several, of which lanes take
// turns. A thread keeps what it folds for as long as its elements belong to one segment, so crowds in one
// cost nothing. Then it goes to the table; lanes that go to one place do so one after the other, in order.
// Tables are folded by segment, and partial results of several chunks as segment_chunks.cuh does. All of it
// depends on the space and the keys alone, so results are reproducible.
//
// L as in segment_reduce.cuh; its operator commutes, and the identity may be left out.
#pragma once

#include "segment_chunks.cuh"

namespace kelpie {

template <class S, class L, int kKeys>
struct KeyReduce {
  using Value = typename L::Value;
  using Chunks = ChunkFold<S, L>;
  struct Shared {
    Value tables[S::kWarps][kKeys];
    uint32_t finished;
  };

  Shared& shared;
  const int64_t count;           ///< of segments
  const int64_t groups, chunks;  ///< blocks by segments and by positions
  const int64_t first;           ///< segment of this block
  int rows;                      ///< its segments
  int places;                    ///< of each in the table of a warp; a power of two
  int64_t begin, end;            ///< its positions
  Value own;                     ///< what this thread has folded
  int ownRow = -1;               ///< ... and of which segment of the block; -1: nothing

  __device__ __forceinline__ KeyReduce(const Launch& launch, int64_t length, int64_t segments,
                                       Shared& ownShared)
      : shared(ownShared),
        count(segments),
        groups(segments > kKeys ? (segments + kKeys - 1) / kKeys : 1),
        chunks(launch.tiles / groups),
        first(blockIdx.x % groups * kKeys) {
    rows = count - first < kKeys ? int(count - first) : kKeys;
    places = 1;
    while (places < 32 && 2 * places * rows <= kKeys) places *= 2;
    const int64_t part = (length + chunks - 1) / chunks;
    begin = blockIdx.x / groups * part;
    end = begin + part < length ? begin + part : length;
    if (count == 0) end = begin;
    for (int k = laneIndex(); k < rows * places; k += 32) shared.tables[warpIndex()][k] = L::identity();
    __syncwarp();
  }

  /// Item `k` of this thread of those at `base`; one of its neighbours, if there is none.
  __device__ __forceinline__ int64_t position(int64_t base, int k) const {
    const int64_t p = base + k * S::kThreads + threadIdx.x;
    return p < end ? p : end - 1;
  }
  __device__ __forceinline__ bool has(int64_t base, int k) const {
    return base + k * S::kThreads + threadIdx.x < end;
  }
  /// The segment of this block that a key names; -1: none.
  __device__ __forceinline__ int rowOf(int64_t key) const {
    const uint64_t row = uint64_t(key) - uint64_t(first);
    return row < uint64_t(rows) ? int(row) : -1;
  }
  /// ... or its lower bits.
  __device__ __forceinline__ int rowOf(int32_t key) const {
    const uint32_t row = uint32_t(key) - uint32_t(first);
    return row < uint32_t(rows) ? int(row) : -1;
  }

  /// Folds the item of each lane. All lanes of a warp come together.
  __device__ __forceinline__ void add(int row, const Value& item) {
    leave(row >= 0 && row != ownRow);
    if (row < 0) return;
    own = row == ownRow ? L::combine(own, item, false) : L::combine(L::identity(), item, false);
    ownRow = row;
  }

  /// Calls result(segment, value) once for each segment. Contains barriers.
  template <class Result>
  __device__ __forceinline__ void finish(const Launch& launch, const Result& result) {
    leave(true);
    __syncthreads();
    for (int row = warpIndex(); row < rows; row += S::kWarps) {
      Value value = L::identity();
      for (int k = laneIndex(); k < S::kWarps * places; k += 32)
        value = L::combine(value, shared.tables[k / places][row * places + k % places], false);
      value = Chunks::ofWarp(value);
      if (laneIndex() != 0) continue;
      if (chunks == 1) {
        result(first + row, value);
      } else {
        Chunks::store(launch, (first + row) * chunks + blockIdx.x / groups, value);
      }
    }
    if (chunks > 1 && isLastOf(launch.counters + first / kKeys, uint32_t(chunks), shared.finished))
      Chunks::fold(launch, first, rows, chunks, result);
  }

 private:
  /// Of lanes that leave their segments, what they have goes to the table.
  __device__ __forceinline__ void leave(bool leaves) {
    leaves = leaves && ownRow >= 0;
    if (__ballot_sync(kFullWarp, leaves) == 0) return;
    const int place = leaves ? ownRow * places + (laneIndex() & (places - 1)) : -1;
    const uint32_t lower = (1u << laneIndex()) - 1;
    const uint32_t peers = __match_any_sync(kFullWarp, uint32_t(place));
    const int turn = leaves ? __popc(peers & lower) : -1;
    const int turns = warpMaximum(turn);
    for (int k = 0; k <= turns; ++k) {
      if (turn == k) {
        Value& sum = shared.tables[warpIndex()][place];
        sum = L::combine(sum, own, false);
      }
      __syncwarp();
    }
  }
};

}  // namespace kelpie

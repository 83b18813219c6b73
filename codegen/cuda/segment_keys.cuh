// Reductions of the segments of a regular space in which a key says to which segment an element belongs
// (codegen/keyed_segments.h): every position is looked at once, whatever the number of segments.
//
// A block has kKeys segments and a chunk of the positions, of which each thread takes every kThreads-th. Each
// of its warps has a table with a place for each segment; of fewer segments, several, side by side, each for
// some lanes: of few, one for each lane, so that nobody is in anybody's way. Lanes that share places take
// turns; where they would be many, those whose elements come to one place first fold these, in a tree. Tables
// are folded by segment, and partial results of several chunks as segment_chunks.cuh does. All of it depends
// on the space and the keys alone, so results are reproducible.
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
  const int64_t groups, chunks;  ///< blocks by segments and by positions
  const int64_t first;           ///< segment of this block
  int rows;                      ///< its segments
  int places;                    ///< of each in the table of a warp; a power of two
  uint32_t sharing;              ///< lanes that have the same places as this one
  int64_t begin, end;            ///< its positions

  __device__ __forceinline__ KeyReduce(const Launch& launch, int64_t length, int64_t count, Shared& ownShared)
      : shared(ownShared),
        groups(count > kKeys ? (count + kKeys - 1) / kKeys : 1),
        chunks(launch.tiles / groups),
        first(blockIdx.x % groups * kKeys) {
    rows = count - first < kKeys ? int(count - first) : kKeys;
    places = 1;
    while (places < 32 && 2 * places * rows <= kKeys) places *= 2;
    sharing = 1u << (laneIndex() & (places - 1));
    for (int distance = places; distance < 32; distance *= 2) sharing |= sharing << distance;
    const int64_t part = (length + chunks - 1) / chunks;
    begin = blockIdx.x / groups * part;
    end = begin + part < length ? begin + part : length;
    if (count == 0) end = begin;
    for (int k = laneIndex(); k < rows * places; k += 32) shared.tables[warpIndex()][k] = L::identity();
    __syncwarp();
  }

  /// Rounds of S::kItems begin one before there are any items: it only brings the keys of the first.
  __device__ __forceinline__ int64_t start() const { return begin < end ? begin - S::kItems : end; }
  /// Item `k` of this thread of those at `base`; one of its neighbours, if there is none.
  __device__ __forceinline__ int64_t position(int64_t base, int k) const {
    const int64_t p = base + k * S::kThreads + threadIdx.x;
    return p < end ? p : end - 1;
  }
  __device__ __forceinline__ bool has(int64_t base, int k) const {
    return uint64_t(base + k * S::kThreads + threadIdx.x - begin) < uint64_t(end - begin);
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

  /// Folds the items of each lane; of none, where a row is negative. All lanes of a warp come together.
  __device__ __forceinline__ void add(int (&row)[S::kRows], Value (&item)[S::kRows]) {
    if (places < kFew) {  // what a lane can fold by itself spares the others
      KELPIE_UNROLL
      for (int k = 1; k < S::kRows; ++k) {
        if (row[k] < 0 || row[k] != row[k - 1]) continue;
        item[k] = L::combine(item[k - 1], item[k], false);
        row[k - 1] = -1;
      }
    }
    KELPIE_UNROLL
    for (int k = 0; k < S::kRows; ++k) add(row[k], item[k]);
  }

  /// Calls result(segment, value) once for each segment. Contains barriers.
  template <class Result>
  __device__ __forceinline__ void finish(const Launch& launch, const Result& result) {
    __syncthreads();
    const typename Chunks::Group group(launch, first / kKeys, first, rows, chunks);
    const int64_t chunk = blockIdx.x / groups;
    Chunks::foldRows(
        rows, S::kWarps * places,
        [&](int row, int k) { return shared.tables[k / places][row * places + k % places]; },
        [&](int row, const Value& value) {
          if (chunks == 1) {
            result(first + row, value);
          } else {
            group.store(chunk, row, value);
          }
        });
    if (chunks > 1)
      group.finish(chunk, shared.finished, [&](int row, const Value& value) { result(first + row, value); });
  }

 private:
  __device__ __forceinline__ void add(int row, Value& item) {
    if (places == 32) {
      put(row, item);
    } else if (places >= kFew) {
      for (int turn = 0; turn < 32; turn += places) {
        put((laneIndex() & -places) == turn ? row : -1, item);
        __syncwarp();
      }
    } else if (const uint32_t lanes = __ballot_sync(kFullWarp, row >= 0)) {
      put(foldPeers(lanes, row, item) ? row : -1, item);
      __syncwarp();
    }
  }

  /// So many places of a segment are few: lanes fold first. Counts of 10^7 keys take 35 us on an H200 where
  /// no lane shares its places; of 32 segments, where two lanes do, 42 in turns and 67 when they fold first;
  /// of 150 segments, where eight do, a call takes 112 in turns and 89 when they fold first.
  static constexpr int kFew = 8;

  /// At the place of this lane.
  __device__ __forceinline__ void put(int row, const Value& item) const {
    if (row < 0) return;
    Value& sum = shared.tables[warpIndex()][row * places + (laneIndex() & (places - 1))];
    sum = L::combine(sum, item, false);
  }

  /// Leaves the fold of the items of all `lanes` that come to one place with the first of them, and tells
  /// which lanes are that. A step halves how many there are of each place.
  __device__ __forceinline__ bool foldPeers(uint32_t lanes, int row, Value& item) const {
    uint32_t peers = sharing & lanes;
    KELPIE_UNROLL
    for (int bit = 0; 1 << bit < kKeys; ++bit) {
      const auto set = uint32_t(int32_t(uint32_t(row) << (31 - bit)) >> 31);  // all bits, or none
      peers &= ~(__ballot_sync(kFullWarp, set != 0) ^ set);
    }
    const uint32_t lower = (1u << laneIndex()) - 1;
    int rank = __popc(peers & lower);
    const bool leads = rank == 0;
    uint32_t others = row >= 0 ? peers & ~lower & ~(1u << laneIndex()) : 0;  // that follow, and are left
    while (__ballot_sync(kFullWarp, others != 0) != 0) {
      const Value next = shuffleFrom(item, others != 0 ? __ffs(others) - 1 : laneIndex());
      if (others != 0) item = L::combine(item, next, false);
      others &= __ballot_sync(kFullWarp, rank % 2 == 0);
      rank /= 2;
    }
    return leads;
  }
};

}  // namespace kelpie

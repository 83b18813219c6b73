// The kernels that the host launches beside generated ones; a module of their own.
#pragma once

#include "records.cuh"
#include "segment_heads.cuh"
#include "segment_ranks.cuh"
#include "segments.cuh"

/// Which segments begin in the tiles of a space (segment_heads.cuh); tiles + 1 threads. `isShort`: offsets
/// are stored in 32 bits.
extern "C" __global__ void kelpie_starts(const void* offsets, int64_t isShort, int64_t segments,
                                         int64_t extent, int64_t items, int64_t tiles, int64_t* starts) {
  kelpie::followEarlierLaunches();
  if (isShort) {
    const kelpie::OffsetSegments<uint32_t> all{static_cast<const uint32_t*>(offsets), segments};
    kelpie::findStarts(all, extent, items, tiles, starts);
  } else {
    const kelpie::OffsetSegments<int64_t> all{static_cast<const int64_t*>(offsets), segments};
    kelpie::findStarts(all, extent, items, tiles, starts);
  }
}

/// Segments that were filtered, as offsets (null: as one length), and where the offsets of what is left go.
struct RankedSegments {
  const void* offsets;
  int64_t isShort;
  int64_t length, count;
  void* kept;
  int64_t keptIsShort;
};

/// offsets of what survives of segments (segment_ranks.cuh); kSegmentsOfThread for each thread.
template <int kWidth>
KELPIE_DEVICE void rankBegins(const kelpie::Launch& launch, const RankedSegments& segments, int64_t groups,
                              void* table) {
  constexpr int kSegmentsOfThread = 4;  // loads in flight
  if (kelpie::failedBefore(launch)) return;
  const kelpie::RankTable<kWidth> ranks(table, groups);
  const int64_t first = int64_t(blockIdx.x) * blockDim.x * kSegmentsOfThread + threadIdx.x;
  int64_t begin[kSegmentsOfThread];
  KELPIE_UNROLL
  for (int k = 0; k < kSegmentsOfThread; ++k) {
    const int64_t s = first + k * blockDim.x;
    begin[k] = s > segments.count            ? 0
               : segments.offsets == nullptr ? s * segments.length
               : segments.isShort            ? int64_t(static_cast<const uint32_t*>(segments.offsets)[s])
                                             : static_cast<const int64_t*>(segments.offsets)[s];
  }
  KELPIE_UNROLL
  for (int k = 0; k < kSegmentsOfThread; ++k) begin[k] = ranks.rank(begin[k]);
  KELPIE_UNROLL
  for (int k = 0; k < kSegmentsOfThread; ++k) {
    const int64_t s = first + k * blockDim.x;
    if (s > segments.count) continue;
    if (segments.keptIsShort) {
      static_cast<uint32_t*>(segments.kept)[s] = uint32_t(begin[k]);
    } else {
      static_cast<int64_t*>(segments.kept)[s] = begin[k];
    }
  }
}
extern "C" __global__ void kelpie_rank1(const kelpie::Launch launch, const RankedSegments segments,
                                        int64_t groups, void* table) {
  kelpie::followEarlierLaunches();
  rankBegins<1>(launch, segments, groups, table);
}
extern "C" __global__ void kelpie_rank2(const kelpie::Launch launch, const RankedSegments segments,
                                        int64_t groups, void* table) {
  kelpie::followEarlierLaunches();
  rankBegins<2>(launch, segments, groups, table);
}
extern "C" __global__ void kelpie_rank4(const kelpie::Launch launch, const RankedSegments segments,
                                        int64_t groups, void* table) {
  kelpie::followEarlierLaunches();
  rankBegins<4>(launch, segments, groups, table);
}

template <class To, class From>
KELPIE_DEVICE void convertAll(const From* from, To* to, int64_t count) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += step) to[k] = To(from[k]);
}
/// A short array (codegen/short_arrays.h) as one of Int64, and the other way.
extern "C" __global__ void kelpie_widen(const uint32_t* from, int64_t* to, int64_t count) {
  kelpie::followEarlierLaunches();
  convertAll(from, to, count);
}
extern "C" __global__ void kelpie_shorten(const int64_t* from, uint32_t* to, int64_t count) {
  kelpie::followEarlierLaunches();
  convertAll(from, to, count);
}

/// Puts columns of 8 bytes side by side (records.cuh). A thread has one pair of a record at a time, so that
/// neighbours store neighbours.
struct RecordColumns {
  const uint64_t* column[8];
};
template <int kPairs>
KELPIE_DEVICE void interleave(const RecordColumns& columns, int64_t count, int64_t width, uint64_t* out) {
  struct alignas(16) Pair {
    uint64_t word[2];
  };
  constexpr int kTogether = 4;  // whose loads are on the way at once
  const int64_t step = int64_t(gridDim.x) * blockDim.x, all = count * kPairs;
  for (int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < all; at += kTogether * step) {
    Pair pairs[kTogether];
    KELPIE_UNROLL
    for (int u = 0; u < kTogether; ++u) {
      const int64_t place = at + u * step, row = place / kPairs, column = place % kPairs * 2;
      if (place >= all) break;
      pairs[u].word[0] = columns.column[column][row];
      pairs[u].word[1] = column + 1 < width ? columns.column[column + 1][row] : 0;
    }
    KELPIE_UNROLL
    for (int u = 0; u < kTogether; ++u)
      if (at + u * step < all) reinterpret_cast<Pair*>(out)[at + u * step] = pairs[u];
  }
}
KELPIE_DEVICE void interleave(const RecordColumns& columns, int64_t count, int64_t width, uint64_t* out) {
  switch ((width + 1) / 2) {
    case 1:
      return interleave<1>(columns, count, width, out);
    case 2:
      return interleave<2>(columns, count, width, out);
    case 3:
      return interleave<3>(columns, count, width, out);
    default:
      return interleave<4>(columns, count, width, out);
  }
}
extern "C" __global__ void kelpie_interleave(const RecordColumns columns, int64_t count, int64_t width,
                                             uint64_t* out) {
  kelpie::followEarlierLaunches();
  interleave(columns, count, width, out);
}

/// Places that elements gather at, in the order of elements, in 4 or 8 bytes each; `count` is at least 1.
struct GatheredPlaces {
  const void* places;
  int64_t bytes, count;
  int64_t window;  ///< elements that gather while a piece of memory stays in L2, at most
};

/// Whether they lie so far apart that no cache keeps what an element leaves of a piece of memory until
/// another one comes: by a sample, which is the same for all blocks. A warp looks at a window of elements,
/// which is scattered if it goes over eight times as many places and most neighbours load different pieces.
template <class T>
KELPIE_DEVICE bool isScattered(const GatheredPlaces& gathered) {
  constexpr int64_t kTimesAsMany = 8;
  constexpr int64_t kInPiece = 4;                  // of 8 bytes
  constexpr int kSamplesOfLane = 4, kWindows = 8;  // warps of the block
  constexpr auto kGreatest = int64_t(~uint64_t{0} >> 1);
  struct Votes {
    uint32_t scattered[kWindows];
  };
  KELPIE_SHARED(Votes, votes);
  const auto* places = static_cast<const T*>(gathered.places);
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int64_t count = gathered.count, window = count < gathered.window ? count : gathered.window;
  const int64_t first = (count - window) / kWindows * warp;
  int64_t least = kGreatest, greatest = -kGreatest;
  int apart = 0;
  KELPIE_UNROLL
  for (int k = 0; k < kSamplesOfLane; ++k) {
    const int64_t at = first + (lane * kSamplesOfLane + k) * (window / (32 * kSamplesOfLane));
    const auto place = int64_t(places[at]), next = int64_t(places[at + 1 < count ? at + 1 : at]);
    least = place < least ? place : least;
    greatest = place > greatest ? place : greatest;
    apart += next - place >= kInPiece || place - next >= kInPiece;
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    const int64_t otherLeast = kelpie::shuffleXor(least, mask),
                  otherGreatest = kelpie::shuffleXor(greatest, mask);
    least = otherLeast < least ? otherLeast : least;
    greatest = otherGreatest > greatest ? otherGreatest : greatest;
    apart += kelpie::shuffleXor(apart, mask);
  }
  if (lane == 0)
    votes.scattered[warp] = apart > 16 * kSamplesOfLane && (greatest - least) / kTimesAsMany >= window;
  __syncthreads();
  uint32_t scattered = 0;
  for (int k = 0; k < kWindows; ++k) scattered += votes.scattered[k];
  return scattered > kWindows / 2;
}

/// Records behind a header, which tells whether there are any: if that is worth it. 256 threads a block.
extern "C" __global__ void kelpie_interleave_scattered(const kelpie::Launch launch,
                                                       const GatheredPlaces gathered,
                                                       const RecordColumns columns, int64_t count,
                                                       int64_t width, kelpie::RecordsHeader* header) {
  kelpie::followEarlierLaunches();
  if (kelpie::failedBefore(launch)) return;  // so will who gathers, whatever the header says
  const bool scattered =
      gathered.bytes == 8 ? isScattered<int64_t>(gathered) : isScattered<uint32_t>(gathered);
  if (blockIdx.x == 0 && threadIdx.x == 0) header->scattered = scattered;
  if (scattered) interleave(columns, count, width, reinterpret_cast<uint64_t*>(header + 1));
}

/// Sets `count` elements, before a permute that may leave some unwritten; `out` is aligned to 16 bytes.
template <class T>
KELPIE_DEVICE void fillWith(T* out, int64_t count, T value) {
  struct alignas(16) Chunk {
    T item[16 / sizeof(T)];
  };
  constexpr int kItems = 16 / sizeof(T);
  Chunk chunk;
  for (int k = 0; k < kItems; ++k) chunk.item[k] = value;
  const int64_t step = int64_t(gridDim.x) * blockDim.x, chunks = count / kItems;
  const int64_t thread = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t k = thread; k < chunks; k += step) reinterpret_cast<Chunk*>(out)[k] = chunk;
  if (thread < count % kItems) out[chunks * kItems + thread] = value;
}
extern "C" __global__ void kelpie_fill1(uint8_t* out, int64_t count, uint64_t bits) {
  kelpie::followEarlierLaunches();
  fillWith(out, count, uint8_t(bits));
}
extern "C" __global__ void kelpie_fill4(uint32_t* out, int64_t count, uint64_t bits) {
  kelpie::followEarlierLaunches();
  fillWith(out, count, uint32_t(bits));
}
extern "C" __global__ void kelpie_fill8(uint64_t* out, int64_t count, uint64_t bits) {
  kelpie::followEarlierLaunches();
  fillWith(out, count, bits);
}

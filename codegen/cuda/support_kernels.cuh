// The kernels that the host launches beside generated ones; a module of their own.
#pragma once

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

/// Puts columns of 8 bytes side by side (records.cuh).
struct RecordColumns {
  const uint64_t* column[8];
};
extern "C" __global__ void kelpie_interleave(const RecordColumns columns, int64_t count, int64_t width,
                                             int64_t stride, uint64_t* out) {
  kelpie::followEarlierLaunches();
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += step)
    for (int64_t c = 0; c < width; ++c) out[k * stride + c] = columns.column[c][k];
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

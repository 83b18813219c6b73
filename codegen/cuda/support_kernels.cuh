// The kernels that the host launches beside generated ones; a module of their own.
#pragma once

#include "segment_heads.cuh"
#include "segment_ranks.cuh"
#include "segments.cuh"

/// Which segments begin in the tiles of a space (segment_heads.cuh); tiles + 1 threads.
extern "C" __global__ void kelpie_starts(const int64_t* offsets, int64_t segments, int64_t extent,
                                         int64_t items, int64_t tiles, int64_t* starts) {
  kelpie::followEarlierLaunches();
  kelpie::findStarts(kelpie::OffsetSegments{offsets, segments}, extent, items, tiles, starts);
}

/// offsets of what survives of segments (segment_ranks.cuh), which are given by their offsets or, where those
/// are null, their length; kSegmentsOfThread for each thread.
template <int kWidth>
KELPIE_DEVICE void rankBegins(const kelpie::Launch& launch, const int64_t* __restrict__ offsets,
                              int64_t length, int64_t segments, int64_t groups, void* table,
                              int64_t* __restrict__ kept) {
  constexpr int kSegmentsOfThread = 4;  // loads in flight
  if (kelpie::failedBefore(launch)) return;
  const kelpie::RankTable<kWidth> ranks(table, groups);
  const int64_t first = int64_t(blockIdx.x) * blockDim.x * kSegmentsOfThread + threadIdx.x;
  int64_t begin[kSegmentsOfThread];
  KELPIE_UNROLL
  for (int k = 0; k < kSegmentsOfThread; ++k) {
    const int64_t s = first + k * blockDim.x;
    begin[k] = s > segments ? 0 : offsets != nullptr ? offsets[s] : s * length;
  }
  KELPIE_UNROLL
  for (int k = 0; k < kSegmentsOfThread; ++k) begin[k] = ranks.rank(begin[k]);
  KELPIE_UNROLL
  for (int k = 0; k < kSegmentsOfThread; ++k) {
    const int64_t s = first + k * blockDim.x;
    if (s <= segments) kept[s] = begin[k];
  }
}
extern "C" __global__ void kelpie_rank1(const kelpie::Launch launch, const int64_t* offsets, int64_t length,
                                        int64_t segments, int64_t groups, void* table, int64_t* kept) {
  kelpie::followEarlierLaunches();
  rankBegins<1>(launch, offsets, length, segments, groups, table, kept);
}
extern "C" __global__ void kelpie_rank2(const kelpie::Launch launch, const int64_t* offsets, int64_t length,
                                        int64_t segments, int64_t groups, void* table, int64_t* kept) {
  kelpie::followEarlierLaunches();
  rankBegins<2>(launch, offsets, length, segments, groups, table, kept);
}
extern "C" __global__ void kelpie_rank4(const kelpie::Launch launch, const int64_t* offsets, int64_t length,
                                        int64_t segments, int64_t groups, void* table, int64_t* kept) {
  kelpie::followEarlierLaunches();
  rankBegins<4>(launch, offsets, length, segments, groups, table, kept);
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

// The last of several writers to each place of an array (a Permute that is neither unique nor agreeing),
// where there are many. Writes to places that are far from each other each move a piece of memory to the
// cache of all cores and back. So writers whose places are near each other are brought together first, in
// bins, and blocks find out in their shared memory who is the last at each place of a bin.
//
//   count     how many writers each bin has
//   plan      where bins begin, and their chunks: what a block looks at
//   collect   tiles of writers are put into bins, in no order: the greatest wins
//   resolve   a block for each chunk and each part of its bin's places. Of a bin with one chunk it stores all
//             places; those of crowded bins were filled before, and blocks agree about them in memory.
//
// Example, bins of 4 places: places 5 0 6 5 -> bins {1@0} {0@1 2@2 3@1} -> writers 1 - - - | - 3 2 -.
//
// On an H200 2^26 writers at random places take 1.03 ms, where one write for each took 5.1; in order 0.76 and
// 0.52; all at one place 0.85 and 7.0 (h200-2026-11-30-permutes.txt).
#include <cub/block/block_scan.cuh>

#include "runtime/cuda/last_writers.h"

namespace {

constexpr uint32_t kNowhere = KELPIE_WRITES_NOWHERE, kAllLanes = 0xffffffffu;
constexpr int kMostBins = 2048, kFewBins = 128;
/// A bin has 2^kLeastShift places or more, so that few are not spread over many; up to 2^kMostOfBlock of them
/// are one part. Of bins with several, parts of 2^kPart let three blocks share a multiprocessor.
constexpr int kLeastShift = 13, kMostOfBlock = 15, kPart = 14;
constexpr int64_t kChunk = 1 << 17;  ///< writers of a chunk at most

struct Job {
  const uint32_t* places;
  int64_t elements;
  const int64_t* counted;
  int64_t* writers;
  int64_t target;
  bool onto;
  int64_t fill;
  const unsigned long long* error;
  int bins, shift, part;  ///< 2^shift places of a bin, 2^part of a part
  /// Of a bin each; `begins` and `chunks` have one more.
  uint32_t *counts, *begins, *cursors, *chunks;
  uint64_t* collected;  ///< a place, and above it the writer

  __device__ bool failed() const { return *error != 0; }
  __device__ int64_t number() const { return counted ? *counted : elements; }
  __device__ uint32_t binOf(uint32_t place) const { return place < target ? place >> shift : kNowhere; }
  __device__ bool isCrowded(int bin) const { return chunks[bin + 1] - chunks[bin] > 1; }
  int parts() const { return 1 << (shift - part); }
};

/// Adds one to the counter of each lane's bin; what it was before, for this lane. Neighbours often write to
/// one bin, and would take turns.
__device__ uint32_t countOne(uint32_t* counters, uint32_t bin) {
  int together = 0;
  __match_all_sync(kAllLanes, bin, &together);
  if (bin == kNowhere) return 0;
  if (!together) return atomicAdd(&counters[bin], 1u);
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t before = lane == 0 ? atomicAdd(&counters[bin], 32u) : 0;
  return __shfl_sync(kAllLanes, before, 0) + lane;
}

// ---- count ----

constexpr int kCounters = 256, kCountedItems = 16, kCountedTile = kCounters * kCountedItems;

__global__ void __launch_bounds__(kCounters) count(const Job job) {
  __shared__ uint32_t counts[kMostBins];
  if (job.failed()) return;
  for (int b = threadIdx.x; b < job.bins; b += kCounters) counts[b] = 0;
  __syncthreads();
  const int64_t n = job.number(), step = int64_t(gridDim.x) * kCountedTile;
  for (int64_t begin = int64_t(blockIdx.x) * kCountedTile; begin < n; begin += step) {
    uint32_t place[kCountedItems];
#pragma unroll
    for (int k = 0; k < kCountedItems; ++k) {
      const int64_t i = begin + k * kCounters + threadIdx.x;
      place[k] = i < n ? job.places[i] : kNowhere;
    }
#pragma unroll
    for (int k = 0; k < kCountedItems; ++k) countOne(counts, job.binOf(place[k]));
  }
  __syncthreads();
  for (int b = threadIdx.x; b < job.bins; b += kCounters)
    if (counts[b] != 0) atomicAdd(&job.counts[b], counts[b]);
}

// ---- plan ----

constexpr int kPlanners = 1024, kPlannedBins = kMostBins / kPlanners;

__global__ void __launch_bounds__(kPlanners) plan(const Job job) {
  using Scan = cub::BlockScan<uint32_t, kPlanners>;
  __shared__ typename Scan::TempStorage storage;
  if (job.failed()) return;
  uint32_t writers[kPlannedBins], chunks[kPlannedBins], total = 0;
  const int first = threadIdx.x * kPlannedBins;
  for (int k = 0; k < kPlannedBins; ++k) {
    const bool is = first + k < job.bins;
    writers[k] = is ? job.counts[first + k] : 0;
    chunks[k] = is ? max(1u, static_cast<uint32_t>((writers[k] + kChunk - 1) / kChunk)) : 0;
  }
  Scan(storage).ExclusiveSum(writers, writers, total);
  if (threadIdx.x == 0) job.begins[job.bins] = total;
  __syncthreads();
  Scan(storage).ExclusiveSum(chunks, chunks, total);
  if (threadIdx.x == 0) job.chunks[job.bins] = total;
  for (int k = 0; k < kPlannedBins && first + k < job.bins; ++k) {
    job.begins[first + k] = job.cursors[first + k] = writers[k];
    job.chunks[first + k] = chunks[k];
  }
}

// ---- collect ----

constexpr int kCollectors = 1024, kCollected = 16, kTile = kCollectors * kCollected;

struct CollectMemory {
  uint64_t writers[kTile];
  cub::BlockScan<uint32_t, kCollectors>::TempStorage storage;
  uint32_t ofBins[2 * kMostBins];  ///< only as many as there are
};
size_t collectBytes(int bins) {
  return sizeof(CollectMemory) - 2 * sizeof(uint32_t) * static_cast<size_t>(kMostBins - bins);
}

/// Where bins have several chunks.
__device__ void fillCrowded(const Job& job) {
  if (job.onto) return;
  for (int b = blockIdx.x; b < job.bins; b += gridDim.x) {
    if (!job.isCrowded(b)) continue;
    const int64_t from = int64_t(b) << job.shift, to = min(job.target, from + (int64_t{1} << job.shift));
    for (int64_t p = from + threadIdx.x; p < to; p += kCollectors) job.writers[p] = job.fill;
  }
}

__global__ void __launch_bounds__(kCollectors) collect(const Job job) {
  extern __shared__ __align__(16) char memory[];
  if (job.failed()) return;
  fillCrowded(job);
  const int64_t n = job.number(), begin = int64_t(blockIdx.x) * kTile;
  if (begin >= n) return;
  CollectMemory& shared = *reinterpret_cast<CollectMemory*>(memory);
  uint32_t* const begins = shared.ofBins;            // in the tile; first how many it has
  uint32_t* const moves = shared.ofBins + job.bins;  // from there to where they go
  for (int b = threadIdx.x; b < job.bins; b += kCollectors) begins[b] = 0;
  uint32_t place[kCollected], rank[kCollected];
#pragma unroll
  for (int k = 0; k < kCollected; ++k) {
    const int64_t i = begin + k * kCollectors + threadIdx.x;
    place[k] = i < n ? job.places[i] : kNowhere;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kCollected; ++k) rank[k] = countOne(begins, job.binOf(place[k]));
  __syncthreads();
  constexpr int kBins = kMostBins / kCollectors;  // of a thread, of which it has `each`
  uint32_t counts[kBins], before[kBins], total = 0;
  const int each = (job.bins + kCollectors - 1) / kCollectors, first = threadIdx.x * each;
#pragma unroll
  for (int k = 0; k < kBins; ++k) counts[k] = k < each && first + k < job.bins ? begins[first + k] : 0;
  cub::BlockScan<uint32_t, kCollectors>(shared.storage).ExclusiveSum(counts, before, total);
#pragma unroll
  for (int k = 0; k < kBins; ++k) {
    if (k >= each || first + k >= job.bins) continue;
    begins[first + k] = before[k];
    if (counts[k] != 0) moves[first + k] = atomicAdd(&job.cursors[first + k], counts[k]) - before[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kCollected; ++k) {
    const uint32_t bin = job.binOf(place[k]);
    const uint64_t writer = begin + k * kCollectors + threadIdx.x;
    if (bin != kNowhere) shared.writers[begins[bin] + rank[k]] = writer << 32 | place[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kCollected; ++k) {
    const uint32_t at = k * kCollectors + threadIdx.x;
    if (at >= total) break;
    const uint64_t writer = shared.writers[at];
    job.collected[moves[job.binOf(static_cast<uint32_t>(writer))] + at] = writer;
  }
}

// ---- resolve ----

constexpr int kResolvers = 512;

__global__ void __launch_bounds__(kResolvers) resolve(const Job job, int parts) {
  extern __shared__ uint32_t last[];  // of each place of the part, 1 + the last writer
  if (job.failed()) return;
  const uint32_t chunk = blockIdx.x / parts, part = blockIdx.x % parts;
  if (chunk >= job.chunks[job.bins]) return;
  int bin = 0;
  for (int above = job.bins; above - bin > 1;) {
    const int middle = (bin + above) / 2;
    (job.chunks[middle] <= chunk ? bin : above) = middle;
  }
  const int64_t first = (int64_t(bin) << job.shift) + (int64_t(part) << job.part);
  const auto places = static_cast<int>(min(max(job.target - first, int64_t{0}), int64_t{1} << job.part));
  for (int p = threadIdx.x; p < places; p += kResolvers) last[p] = 0;
  __syncthreads();
  const int64_t from = job.begins[bin] + (chunk - job.chunks[bin]) * kChunk;
  const int64_t to = min(int64_t(job.begins[bin + 1]), from + kChunk);
  constexpr int kItems = 8;
  for (int64_t k = from + threadIdx.x; k < to; k += kItems * kResolvers) {
    uint64_t writer[kItems];
#pragma unroll
    for (int j = 0; j < kItems; ++j)
      if (k + j * kResolvers < to) writer[j] = job.collected[k + j * kResolvers];
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (k + j * kResolvers >= to) break;
      const int64_t place = static_cast<uint32_t>(writer[j]) - first;
      if (place >= 0 && place < places) atomicMax(&last[place], static_cast<uint32_t>(writer[j] >> 32) + 1);
    }
  }
  __syncthreads();
  const bool crowded = job.isCrowded(bin);
  for (int p = threadIdx.x; p < places; p += kResolvers) {
    const int64_t writer = int64_t(last[p]) - 1;
    int64_t& place = job.writers[first + p];
    if (crowded) {
      if (writer >= 0) atomicMax(reinterpret_cast<long long*>(&place), static_cast<long long>(writer));
    } else if (!job.onto) {
      place = writer >= 0 ? writer : job.fill;
    } else if (writer >= 0 && writer > place) {
      place = writer;
    }
  }
}

// ---- what the host does ----

struct Arena {
  char* memory;
  uint64_t used = 0;
  template <class T>
  T* take(int64_t count) {
    T* result = reinterpret_cast<T*>(memory + used);
    used += (static_cast<uint64_t>(count) * sizeof(T) + 15) / 16 * 16;
    return result;
  }
};

void chooseBins(Job& job) {
  job.shift = kMostOfBlock;
  while (job.shift > kLeastShift && (job.target - 1) >> job.shift < kFewBins) --job.shift;
  while ((job.target - 1) >> job.shift >= kMostBins) ++job.shift;
  job.part = job.shift > kMostOfBlock ? kPart : job.shift;
  job.bins = static_cast<int>((job.target - 1) >> job.shift) + 1;
}

/// For whatever launches: several requests may be asked about before the first of them is launched. Also
/// loads code, which the first launch would wait for.
cudaError_t allowSharedMemory() {
  cudaFuncAttributes attributes;
  cudaError_t error = cudaFuncGetAttributes(&attributes, count);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, plan);
  const auto allow = [&](auto kernel, size_t bytes) {
    if (error == cudaSuccess)
      error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  };
  allow(collect, collectBytes(kMostBins));
  allow(resolve, sizeof(uint32_t) << kMostOfBlock);
  if (error != cudaSuccess) cudaGetLastError();  // nobody else is to find it
  return error;
}

unsigned blocksFor(int64_t elements, int64_t each) {
  return static_cast<unsigned>((elements + each - 1) / each);
}

}  // namespace

extern "C" int kelpie_last_writers(const uint32_t* places, int64_t elements, const int64_t* counted,
                                   int64_t* writers, int64_t target, int onto, int64_t fill,
                                   const void* error, void* scratch, uint64_t* scratchBytes, void* stream) {
  Job job{};
  job.places = places;
  job.elements = elements;
  job.counted = counted;
  job.writers = writers;
  job.target = target;
  job.onto = onto != 0;
  job.fill = fill;
  job.error = static_cast<const unsigned long long*>(error);
  chooseBins(job);
  Arena arena{static_cast<char*>(scratch)};
  job.counts = arena.take<uint32_t>(job.bins);
  job.begins = arena.take<uint32_t>(job.bins + 1);
  job.cursors = arena.take<uint32_t>(job.bins);
  job.chunks = arena.take<uint32_t>(job.bins + 1);
  job.collected = arena.take<uint64_t>(elements);
  const size_t ofCollect = collectBytes(job.bins), ofResolve = sizeof(uint32_t) << job.part;
  if (!scratch) {
    *scratchBytes = arena.used;
    return allowSharedMemory();
  }
  auto* const s = static_cast<cudaStream_t>(stream);
  const cudaError_t e = cudaMemsetAsync(job.counts, 0, sizeof(uint32_t) * static_cast<size_t>(job.bins), s);
  if (e != cudaSuccess) return e;
  constexpr unsigned kMostCountingBlocks = 1056;
  count<<<min(blocksFor(elements, kCountedTile), kMostCountingBlocks), kCounters, 0, s>>>(job);
  plan<<<1, kPlanners, 0, s>>>(job);
  collect<<<blocksFor(elements, kTile), kCollectors, ofCollect, s>>>(job);
  const auto chunks = static_cast<unsigned>(job.bins + elements / kChunk);
  resolve<<<chunks * job.parts(), kResolvers, ofResolve, s>>>(job, job.parts());
  return cudaGetLastError();
}

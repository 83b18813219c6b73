// lcu::Grade by CUB: a stable radix sort by key, then, with several segments, a stable one by segment. Two
// sorts of the whole take the same time whatever the lengths of the segments are. Of long arrays only the
// bits are sorted by in which keys differ; where these are few, keys take less memory, too.
#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "runtime/cuda/grade_cub.h"

namespace {

/// Keys as unsigned integers in the same order.
__device__ uint32_t ordered(uint8_t x) { return x; }
__device__ uint32_t ordered(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000u; }
__device__ uint64_t ordered(int64_t x) { return static_cast<uint64_t>(x) ^ 0x8000000000000000ull; }
__device__ uint32_t ordered(float x) {
  if (x != x) return 0xffffffffu;
  const uint32_t bits = __float_as_uint(x == 0.0f ? 0.0f : x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ uint64_t ordered(double x) {
  if (x != x) return 0xffffffffffffffffull;
  const uint64_t bits = static_cast<uint64_t>(__double_as_longlong(x == 0.0 ? 0.0 : x));
  return bits & 0x8000000000000000ull ? ~bits : bits | 0x8000000000000000ull;
}

struct Segments {
  const int64_t* offsets;
  int64_t length, count;
  __device__ int64_t of(int64_t element) const {
    if (!offsets) return length > 0 ? element / length : 0;
    int64_t low = 0, high = count;  // the last segment that begins at or before the element
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (offsets[middle] <= element ? low : high) = middle;
    }
    return low;
  }
  __device__ int64_t begin(int64_t segment) const { return offsets ? offsets[segment] : segment * length; }
};

/// The keys that `ordered` gave.
__device__ uint8_t unordered(uint32_t x, uint8_t) { return static_cast<uint8_t>(x); }
__device__ int32_t unordered(uint32_t x, int32_t) { return static_cast<int32_t>(x ^ 0x80000000u); }
__device__ int64_t unordered(uint64_t x, int64_t) { return static_cast<int64_t>(x ^ 0x8000000000000000ull); }

constexpr int kThreads = 256;
unsigned blocksFor(int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

/// Collects in *bits those in which keys differ.
template <class Key>
__global__ void differing(const Key* keys, int64_t n, unsigned long long* bits) {
  const auto first = ordered(keys[0]);
  auto mine = first ^ first;
  for (int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x; k < n; k += int64_t(gridDim.x) * kThreads)
    mine |= ordered(keys[k]) ^ first;
  const auto wide = static_cast<unsigned long long>(mine);
  const unsigned low = __reduce_or_sync(0xffffffffu, static_cast<unsigned>(wide));
  const unsigned high = __reduce_or_sync(0xffffffffu, static_cast<unsigned>(wide >> 32));
  if (threadIdx.x % 32 == 0) atomicOr(bits, static_cast<unsigned long long>(high) << 32 | low);
}

/// The bits low..high-1 of keys, of which the others are alike; and positions.
template <class Key, class Sorted>
__global__ void prepare(const Key* keys, Sorted* out, uint32_t* positions, int64_t n, int low) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= n) return;
  out[k] = static_cast<Sorted>(ordered(keys[k]) >> low);
  positions[k] = static_cast<uint32_t>(k);
}
__global__ void segmentsOf(const uint32_t* positions, uint32_t* segments, int64_t n, Segments all) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k < n) segments[k] = static_cast<uint32_t>(all.of(positions[k]));
}
__global__ void finish(const uint32_t* positions, int64_t* order, int64_t n, Segments all, bool segmented) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= n) return;
  // Element number k of the result belongs to the segment that position k belongs to.
  order[k] = positions[k] - (segmented ? all.begin(all.of(positions[k])) : 0);
}
/// What `prepare` made of keys, as keys again: the other bits are those of any key.
template <class Key, class Sorted>
__global__ void restore(const Sorted* in, const Key* keys, Key* out, int64_t n, int low,
                        unsigned long long bits) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= n) return;
  auto common = ordered(keys[0]);
  common &= ~static_cast<decltype(common)>(bits);
  out[k] = unordered(common | static_cast<decltype(common)>(in[k]) << low, Key());
}

size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Scratch memory from its beginning; without any, only how much there should be.
struct Arena {
  char* begin;
  size_t total = 0;
  template <class T>
  T* take(size_t count) {
    T* place = begin ? reinterpret_cast<T*>(begin + total) : nullptr;
    total += padded(count * sizeof(T));
    return place;
  }
};

/// Bits low..high-1 of keys are to be sorted by; keys differ in `mask` at most.
struct Bits {
  int low, high;
  unsigned long long mask;
};
template <class Key>
cudaError_t look(const Key* keys, int64_t n, unsigned long long* place, Bits& bits, cudaStream_t stream) {
  cudaError_t error = cudaMemsetAsync(place, 0, sizeof *place, stream);
  if (error != cudaSuccess) return error;
  const unsigned blocks = blocksFor(n) < 1024 ? blocksFor(n) : 1024;
  differing<<<blocks, kThreads, 0, stream>>>(keys, n, place);
  error = cudaMemcpyAsync(&bits.mask, place, sizeof bits.mask, cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess) return error;
  if (bits.mask == 0) bits.mask = 1;
  while ((bits.mask >> bits.low & 1) == 0) ++bits.low;
  while (bits.high > bits.low + 1 && (bits.mask >> (bits.high - 1) & 1) == 0) --bits.high;
  return cudaSuccess;
}

struct Grading {
  int64_t* order;
  void* sorted;
  int64_t n;
  Segments all;
  bool segmented;
  int segmentBits;
  cudaStream_t stream;
};

/// Sorts pairs of keys, as `Sorted`, and positions.
template <class Sorted, class Key>
cudaError_t gradePairs(const Key* keys, const Grading& g, const Bits& bits, Arena& arena) {
  const auto n = static_cast<size_t>(g.n);
  auto* keysA = arena.take<Sorted>(n);
  auto* keysB = arena.take<Sorted>(n);
  auto* positionsA = arena.take<uint32_t>(n);
  auto* positionsB = arena.take<uint32_t>(n);
  auto* segmentsA = arena.take<uint32_t>(g.segmented ? n : 0);
  auto* segmentsB = arena.take<uint32_t>(g.segmented ? n : 0);
  cub::DoubleBuffer<Sorted> keyBuffer(keysA, keysB);
  cub::DoubleBuffer<uint32_t> positionBuffer(positionsA, positionsB);
  cub::DoubleBuffer<uint32_t> segmentBuffer(segmentsA, segmentsB);
  const auto count = static_cast<int>(g.n);
  const bool sortsSegments = g.segmented && g.segmentBits > 0;
  size_t bytes = 0, segmentBytes = 0;
  cudaError_t error = cub::DeviceRadixSort::SortPairs(nullptr, bytes, keyBuffer, positionBuffer, count, 0,
                                                      bits.high - bits.low, g.stream);
  if (error == cudaSuccess && sortsSegments) {
    error = cub::DeviceRadixSort::SortPairs(nullptr, segmentBytes, segmentBuffer, positionBuffer, count, 0,
                                            g.segmentBits, g.stream);
  }
  if (error != cudaSuccess) return error;
  void* scratch = arena.take<char>(bytes > segmentBytes ? bytes : segmentBytes);
  if (!arena.begin) return cudaSuccess;

  const unsigned blocks = blocksFor(g.n);
  prepare<<<blocks, kThreads, 0, g.stream>>>(keys, keysA, positionsA, g.n, bits.low);
  error = cub::DeviceRadixSort::SortPairs(scratch, bytes, keyBuffer, positionBuffer, count, 0,
                                          bits.high - bits.low, g.stream);
  if (error != cudaSuccess) return error;
  if (sortsSegments) {
    segmentsOf<<<blocks, kThreads, 0, g.stream>>>(positionBuffer.Current(), segmentBuffer.Current(), g.n,
                                                  g.all);
    error = cub::DeviceRadixSort::SortPairs(scratch, segmentBytes, segmentBuffer, positionBuffer, count, 0,
                                            g.segmentBits, g.stream);
    if (error != cudaSuccess) return error;
  }
  if (g.order) {
    finish<<<blocks, kThreads, 0, g.stream>>>(positionBuffer.Current(), g.order, g.n, g.all, g.segmented);
  }
  if constexpr (std::is_integral_v<Key>) {
    if (g.sorted) {
      restore<<<blocks, kThreads, 0, g.stream>>>(keyBuffer.Current(), keys, static_cast<Key*>(g.sorted), g.n,
                                                 bits.low, bits.mask);
    }
  }
  return cudaGetLastError();
}

/// Sorts keys alone.
template <class Key>
cudaError_t sortKeys(const Key* keys, const Grading& g, const Bits& bits, Arena& arena) {
  size_t bytes = 0;
  auto* sorted = static_cast<Key*>(g.sorted);
  const auto count = static_cast<int>(g.n);
  cudaError_t error =
      cub::DeviceRadixSort::SortKeys(nullptr, bytes, keys, sorted, count, bits.low, bits.high, g.stream);
  if (error != cudaSuccess) return error;
  void* scratch = arena.take<char>(bytes);
  if (!arena.begin) return cudaSuccess;
  return cub::DeviceRadixSort::SortKeys(scratch, bytes, keys, sorted, count, bits.low, bits.high, g.stream);
}

template <class Key>
int grade(const Key* keys, const Grading& g, void* scratch, uint64_t* scratchBytes) {
  using Ordered = decltype(ordered(Key()));
  Arena arena{static_cast<char*>(scratch)};
  auto* place = arena.take<unsigned long long>(1);
  Bits bits{0, 8 * static_cast<int>(sizeof(Key)), ~0ull};
  if (scratch && g.n >= KELPIE_CUB_LOOKS) {
    const cudaError_t error = look(keys, g.n, place, bits, g.stream);
    if (error != cudaSuccess) return error;
  }
  const auto run = [&](const Bits& by, Arena& memory) {
    if constexpr (std::is_integral_v<Key>) {
      if (!g.order) return sortKeys(keys, g, by, memory);
    }
    if (by.high - by.low <= 32) return gradePairs<uint32_t>(keys, g, by, memory);
    return gradePairs<Ordered>(keys, g, by, memory);
  };
  if (scratch) return run(bits, arena);
  Arena few = arena;
  cudaError_t error = run(bits, arena);
  if (error == cudaSuccess) error = run(Bits{0, bits.high < 32 ? bits.high : 32, 0}, few);
  *scratchBytes = arena.total > few.total ? arena.total : few.total;
  return error;
}

int gradeKind(int kind, const void* keys, const Grading& g, void* scratch, uint64_t* scratchBytes) {
  switch (kind) {
    case 1:
      return grade(static_cast<const uint8_t*>(keys), g, scratch, scratchBytes);
    case 2:
      return grade(static_cast<const int32_t*>(keys), g, scratch, scratchBytes);
    case 3:
      return grade(static_cast<const int64_t*>(keys), g, scratch, scratchBytes);
    case 4:
      return grade(static_cast<const float*>(keys), g, scratch, scratchBytes);
    case 5:
      return grade(static_cast<const double*>(keys), g, scratch, scratchBytes);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace

extern "C" int kelpie_cub_grade(int kind, const void* keys, int64_t* order, void* sorted, int64_t elements,
                                int64_t segments, const int64_t* offsets, int64_t length, void* scratch,
                                uint64_t* scratchBytes, void* stream) {
  Grading g{order,
            sorted,
            elements,
            Segments{offsets, length, segments},
            offsets != nullptr || length > 0,
            0,
            static_cast<cudaStream_t>(stream)};
  while (g.segmentBits < 32 && (segments - 1) >> g.segmentBits != 0) ++g.segmentBits;
  const int error = gradeKind(kind, keys, g, scratch, scratchBytes);
  // The runtime would keep it, and give it as that of a later call.
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

// lcu::Grade by CUB: a stable radix sort by key, then, with several segments, a stable one by segment. Two
// sorts of the whole take the same time whatever the lengths of the segments are.
#include <cub/device/device_radix_sort.cuh>

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

template <class Key, class Ordered>
__global__ void prepare(const Key* keys, Ordered* out, uint32_t* positions, int64_t n) {
  const int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= n) return;
  out[k] = ordered(keys[k]);
  positions[k] = static_cast<uint32_t>(k);
}
__global__ void segmentsOf(const uint32_t* positions, uint32_t* segments, int64_t n, Segments all) {
  const int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < n) segments[k] = static_cast<uint32_t>(all.of(positions[k]));
}
__global__ void finish(const uint32_t* positions, int64_t* order, int64_t n, Segments all, bool segmented) {
  const int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= n) return;
  // Element number k of the result belongs to the segment that position k belongs to.
  order[k] = positions[k] - (segmented ? all.begin(all.of(positions[k])) : 0);
}

size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class Key, class Ordered>
int grade(const Key* keys, int64_t* order, int64_t n, const Segments& all, void* scratch,
          uint64_t* scratchBytes, cudaStream_t stream) {
  const bool segmented = all.offsets != nullptr || all.length > 0;
  int segmentBits = 0;
  while (segmentBits < 32 && (all.count - 1) >> segmentBits != 0) ++segmentBits;
  const auto count = static_cast<int>(n);

  char* next = static_cast<char*>(scratch);
  size_t total = 0;
  auto take = [&](size_t bytes) {
    char* place = next ? next + total : nullptr;
    total += padded(bytes);
    return place;
  };
  auto* keysA = reinterpret_cast<Ordered*>(take(n * sizeof(Ordered)));
  auto* keysB = reinterpret_cast<Ordered*>(take(n * sizeof(Ordered)));
  auto* positionsA = reinterpret_cast<uint32_t*>(take(n * sizeof(uint32_t)));
  auto* positionsB = reinterpret_cast<uint32_t*>(take(n * sizeof(uint32_t)));
  auto* segmentsA = reinterpret_cast<uint32_t*>(take(segmented ? n * sizeof(uint32_t) : 0));
  auto* segmentsB = reinterpret_cast<uint32_t*>(take(segmented ? n * sizeof(uint32_t) : 0));

  cub::DoubleBuffer<Ordered> keyBuffer(keysA, keysB);
  cub::DoubleBuffer<uint32_t> positionBuffer(positionsA, positionsB);
  cub::DoubleBuffer<uint32_t> segmentBuffer(segmentsA, segmentsB);
  size_t sortBytes = 0, segmentSortBytes = 0;
  const int keyBits = 8 * static_cast<int>(sizeof(Key));
  cudaError_t error = cub::DeviceRadixSort::SortPairs(nullptr, sortBytes, keyBuffer, positionBuffer, count, 0,
                                                      keyBits, stream);
  if (error == cudaSuccess && segmented) {
    error = cub::DeviceRadixSort::SortPairs(nullptr, segmentSortBytes, segmentBuffer, positionBuffer, count,
                                            0, segmentBits > 0 ? segmentBits : 1, stream);
  }
  if (error != cudaSuccess) return error;
  void* sortScratch = take(sortBytes > segmentSortBytes ? sortBytes : segmentSortBytes);
  if (!scratch) {
    *scratchBytes = total;
    return 0;
  }

  const auto blocks = static_cast<unsigned>((n + 255) / 256);
  prepare<<<blocks, 256, 0, stream>>>(keys, keysA, positionsA, n);
  error = cub::DeviceRadixSort::SortPairs(sortScratch, sortBytes, keyBuffer, positionBuffer, count, 0,
                                          keyBits, stream);
  if (error != cudaSuccess) return error;
  if (segmented && segmentBits > 0) {
    segmentsOf<<<blocks, 256, 0, stream>>>(positionBuffer.Current(), segmentBuffer.Current(), n, all);
    error = cub::DeviceRadixSort::SortPairs(sortScratch, segmentSortBytes, segmentBuffer, positionBuffer,
                                            count, 0, segmentBits, stream);
    if (error != cudaSuccess) return error;
  }
  finish<<<blocks, 256, 0, stream>>>(positionBuffer.Current(), order, n, all, segmented);
  return cudaGetLastError();
}

}  // namespace

extern "C" int kelpie_cub_grade(int kind, const void* keys, int64_t* order, int64_t elements,
                                int64_t segments, const int64_t* offsets, int64_t length, void* scratch,
                                uint64_t* scratchBytes, void* stream) {
  const Segments all{offsets, length, segments};
  auto* s = static_cast<cudaStream_t>(stream);
  switch (kind) {
    case 1:
      return grade<uint8_t, uint32_t>(static_cast<const uint8_t*>(keys), order, elements, all, scratch,
                                      scratchBytes, s);
    case 2:
      return grade<int32_t, uint32_t>(static_cast<const int32_t*>(keys), order, elements, all, scratch,
                                      scratchBytes, s);
    case 3:
      return grade<int64_t, uint64_t>(static_cast<const int64_t*>(keys), order, elements, all, scratch,
                                      scratchBytes, s);
    case 4:
      return grade<float, uint32_t>(static_cast<const float*>(keys), order, elements, all, scratch,
                                    scratchBytes, s);
    case 5:
      return grade<double, uint64_t>(static_cast<const double*>(keys), order, elements, all, scratch,
                                     scratchBytes, s);
    default:
      return cudaErrorInvalidValue;
  }
}

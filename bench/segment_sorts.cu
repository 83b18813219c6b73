// Ranking and sorting within segments: Kelpie's (runtime/cuda/grade_cub.cu) beside CUB's segmented sort of
// the same keys, with their places or without, as an expert would call it, of 2^26 elements or fewer, for
// segments of all lengths. Prints a line for each: milliseconds from the call until the order, or the sorted
// integers, are there, medians.
//
//   segment_sorts
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cmath>
#include <cub/device/device_segmented_sort.cuh>
#include <random>

#include "bench/programs/peer.cuh"
#include "runtime/cuda/grade_cub.h"

namespace {

/// How long segments are.
enum class Lengths { Regular, Uniform, Skewed };

std::vector<int64_t> offsetsOf(Lengths lengths, int64_t mean, int64_t n) {
  std::mt19937_64 random(7);
  std::vector<int64_t> offsets{0};
  while (offsets.back() < n) {
    const double u = static_cast<double>(random() >> 11) / 9007199254740992.0;
    int64_t length = mean;
    if (lengths == Lengths::Uniform)
      length = static_cast<int64_t>(random() % static_cast<uint64_t>(2 * mean + 1));
    if (lengths == Lengths::Skewed)
      length = std::min<int64_t>(static_cast<int64_t>(0.3 * mean / (u + 1e-7)), 2'000'000);
    offsets.push_back(std::min(n, offsets.back() + length));
  }
  return offsets;
}

__global__ void makeFloats(double* keys, int64_t n) {
  const int64_t k = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (k < n) keys[k] = fraction(k) + static_cast<double>(below(-1 - k, 1 << 20)) / (1ll << 50);
}
__global__ void makeInts(int64_t* keys, int64_t n) {
  const int64_t k = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (k < n) keys[k] = below(k, 1000);
}
__global__ void makePlaces(uint32_t* places, const int64_t* offsets, int64_t segments) {
  for (int64_t s = int64_t(blockIdx.x) * 8 + threadIdx.x / 32; s < segments; s += int64_t(gridDim.x) * 8)
    for (int64_t k = offsets[s] + threadIdx.x % 32; k < offsets[s + 1]; k += 32)
      places[k] = static_cast<uint32_t>(k - offsets[s]);
}
__global__ void compare(const int64_t* a, const uint32_t* b, int64_t n, int* differ) {
  const int64_t k = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (k < n && a[k] != b[k]) *differ = 1;
}

__global__ void compareKeys(const int64_t* a, const int64_t* b, int64_t n, int* differ) {
  const int64_t k = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (k < n && a[k] != b[k]) *differ = 1;
}

template <class Key>
void measure(const char* name, Lengths lengths, int64_t mean, int64_t n, int kind) {
  if (lengths == Lengths::Regular) n = n / mean * mean;
  const std::vector<int64_t> host = offsetsOf(lengths, mean, n);
  const auto segments = static_cast<int64_t>(host.size()) - 1;
  Array<int64_t> offsets(host), order(n);
  Array<Key> keys(n), sorted(n);
  Array<uint32_t> places(n), found(n);
  const auto blocks = static_cast<unsigned>((n + 255) / 256);
  if constexpr (std::is_floating_point_v<Key>) {
    makeFloats<<<blocks, 256>>>(keys, n);
  } else {
    makeInts<<<blocks, 256>>>(keys, n);
  }
  makePlaces<<<4096, 256>>>(places, offsets, segments);
  CHECK(cudaDeviceSynchronize());

  const bool regular = lengths == Lengths::Regular;
  Temporary ours, theirs;
  const auto kelpieMilliseconds = [&](int64_t* places, Key* values) {
    return medianMilliseconds([&] {
      ours.run([&](void* memory, size_t& bytes) {
        uint64_t needed = bytes;
        int waits = 0;
        const int error = kelpie_cub_grade(kind, keys.get(), places, values, nullptr, n, segments,
                                           regular ? nullptr : offsets.get(), regular ? mean : 0, nullptr,
                                           memory, &needed, nullptr, &waits);
        bytes = needed;
        return static_cast<cudaError_t>(error);
      });
    });
  };
  const auto print = [&](const char* what, double kelpie, double cub, bool differ) {
    std::printf("%-8s %-7s %-5s mean %7ld n %9ld  kelpie %8.3f ms  cub %8.3f ms  cub/kelpie %6.2f  %s\n",
                name, kind == 5 ? "float64" : "int64", what, static_cast<long>(mean), static_cast<long>(n),
                kelpie, cub, cub / kelpie, differ ? "DIFFER" : "agree");
    std::fflush(stdout);
  };
  const double kelpie = kelpieMilliseconds(order.get(), nullptr);
  const double cub = medianMilliseconds([&] {
    theirs.run([&](void* memory, size_t& bytes) {
      return cub::DeviceSegmentedSort::StableSortPairs(memory, bytes, keys.get(), sorted.get(), places.get(),
                                                       found.get(), n, segments, offsets.get(),
                                                       offsets.get() + 1);
    });
  });
  Array<int> differ(std::vector<int>{0});
  compare<<<blocks, 256>>>(order, found, n, differ);
  print("order", kelpie, cub, differ.host()[0] != 0);
  if constexpr (std::is_integral_v<Key>) {
    Array<Key> mine(n);
    const double kelpieKeys = kelpieMilliseconds(nullptr, mine.get());
    const double cubKeys = medianMilliseconds([&] {
      theirs.run([&](void* memory, size_t& bytes) {
        return cub::DeviceSegmentedSort::SortKeys(memory, bytes, keys.get(), sorted.get(), n, segments,
                                                  offsets.get(), offsets.get() + 1);
      });
    });
    compareKeys<<<blocks, 256>>>(mine, sorted, n, differ);
    print("keys", kelpieKeys, cubKeys, differ.host()[0] != 0);
  }
}

void measureBoth(const char* name, Lengths lengths, int64_t mean, int64_t n) {
  measure<double>(name, lengths, mean, n, 5);
  measure<int64_t>(name, lengths, mean, n, 3);
}

}  // namespace

int main() {
  constexpr int64_t kMany = 1 << 26;
  for (const int64_t mean : {1, 4, 10, 30, 100, 1000, 4000, 100'000})
    measureBoth("uniform", Lengths::Uniform, mean, kMany);
  for (const int64_t mean : {10, 100, 1000, 5000}) measureBoth("regular", Lengths::Regular, mean, kMany);
  measureBoth("skewed", Lengths::Skewed, 8, kMany);
  for (const int64_t n : {1000, 30'000, 1'000'000})
    for (const int64_t mean : {10, 30, 300}) measureBoth("uniform", Lengths::Uniform, mean, n);
  for (const int64_t n : {30'000, 1'000'000}) measureBoth("skewed", Lengths::Skewed, 8, n);
}

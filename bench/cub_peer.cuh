// What peers with CUB have in common: memory on the device, times, lines of results.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <functional>
#include <string>
#include <vector>

#include "segment_lengths.h"

namespace kelpie::bench {

constexpr int kRepeats = 9;

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <class T>
struct Device {
  T* data = nullptr;
  explicit Device(size_t count) {
    check(cudaMalloc(&data, std::max<size_t>(count, 16) * sizeof(T)), "cudaMalloc");
  }
  ~Device() { cudaFree(data); }
  Device(const Device&) = delete;
  void put(const std::vector<T>& values) {
    check(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
};

inline const cudaStream_t kStream = cudaStreamPerThread;  // one that can be captured

/// Of one call at a time.
inline double median(const std::function<void()>& job) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  job();
  job();
  std::vector<float> times;
  for (int k = 0; k < kRepeats; ++k) {
    cudaEventRecord(begin, kStream);
    job();
    cudaEventRecord(end, kStream);
    check(cudaEventSynchronize(end), "running");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    times.push_back(ms);
  }
  check(cudaGetLastError(), "launching");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

inline void report(const std::string& job, const char* who, double ms, double bytes) {
  std::printf("{\"job\": \"%s\", \"who\": \"%s\", \"ms\": %.5f, \"bytes\": %.0f}\n", job.c_str(), who, ms,
              bytes);
  std::fflush(stdout);
}

/// A CUB algorithm with its temporary storage.
struct Cub {
  std::function<cudaError_t(void*, size_t&)> call;
  void* storage = nullptr;
  size_t bytes = 0;
  explicit Cub(std::function<cudaError_t(void*, size_t&)> f) : call(std::move(f)) {
    check(call(nullptr, bytes), "CUB");
    check(cudaMalloc(&storage, bytes + 16), "cudaMalloc");
  }
  ~Cub() { cudaFree(storage); }
  void operator()() { check(call(storage, bytes), "CUB"); }
};

using Call = std::function<cudaError_t(void*, size_t&)>;

inline void run(const std::string& job, const char* who, double bytes, const Call& call) {
  Cub algorithm(call);
  report(job, who, median([&] { algorithm(); }), bytes);
}

/// Of a distribution of lengths, with the number of the segment of each element, which algorithms by key
/// need.
struct Segments {
  int64_t count;
  Device<int64_t> offsets;
  Device<int32_t> keys;
  double ends;  ///< bytes of offsets, as Kelpie stores them
  Segments(const char* kind, int64_t n) : Segments(offsetsOf<int64_t>(kind, n), n) {}
  Segments(const std::vector<int64_t>& begins, int64_t n)
      : count(static_cast<int64_t>(begins.size()) - 1),
        offsets(begins.size()),
        keys(static_cast<size_t>(n)),
        ends(4.0 * static_cast<double>(count)) {
    std::vector<int32_t> numbers(static_cast<size_t>(n));
    for (int64_t k = 0; k < count; ++k)
      std::fill(numbers.begin() + begins[static_cast<size_t>(k)],
                numbers.begin() + begins[static_cast<size_t>(k) + 1], static_cast<int32_t>(k));
    offsets.put(begins);
    keys.put(numbers);
  }
};

/// Sums of segments by DeviceSegmentedReduce and by key. `in`, `out`: iterators; `out` has room for n.
template <class In, class Out, class Plus, class T>
void sumSegments(const std::string& job, const Segments& segments, int64_t n, double bytes, In in, Out out,
                 Plus plus, T zero) {
  Device<int32_t> unique(static_cast<size_t>(n));
  Device<int64_t> runs(1);
  run(job, "cub", bytes, [&](void* s, size_t& b) {
    return cub::DeviceSegmentedReduce::Reduce(s, b, in, out, segments.count, segments.offsets.data,
                                              segments.offsets.data + 1, plus, zero, kStream);
  });
  run(job, "cub by key", bytes, [&](void* s, size_t& b) {
    return cub::DeviceReduce::ReduceByKey(s, b, segments.keys.data, unique.data, in, out, runs.data, plus, n,
                                          kStream);
  });
}

}  // namespace kelpie::bench

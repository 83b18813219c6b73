// What the peers of the programs in this folder share: data as bench/programs/common.nesl makes it, memory,
// time.
//
// A peer is called with the same numbers as the NESL functions that make its data, and prints for each job a
// line of JSON: its name, the median time in milliseconds from the host's call until the result is there, and
// the digest that the program computes of its result.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

inline void check(cudaError_t error, const char* what, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call, __FILE__, __LINE__)

__host__ __device__ inline uint64_t mixed(int64_t i) {
  const uint64_t mask = (uint64_t{1} << 62) - 1;
  const uint64_t a = ((uint64_t(i) + 1) * 1181783497276652981u) & mask;
  const uint64_t b = ((a ^ (a >> 29)) * 2549297995355413927u) & mask;
  return b ^ (b >> 32);
}
__host__ __device__ inline int64_t below(int64_t i, int64_t n) { return int64_t(mixed(i) % uint64_t(n)); }
__host__ __device__ inline double fraction(int64_t i) {
  return double(mixed(i) % 1073741824u) / 1073741824.0;
}

/// An array on the device.
template <class T>
class Array {
 public:
  explicit Array(size_t count = 0) : count_(count) {
    CHECK(cudaMalloc(&data_, std::max<size_t>(count, 1) * sizeof(T)));
  }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    CHECK(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  operator T*() { return data_; }
  T* get() { return data_; }
  size_t size() const { return count_; }
  std::vector<T> host(size_t count) const {
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  std::vector<T> host() const { return host(count_); }

 private:
  T* data_ = nullptr;
  size_t count_;
};

/// Temporary memory of CUB, asked for once. `call(memory, bytes)` is made twice the first time.
class Temporary {
 public:
  ~Temporary() { cudaFree(memory_); }
  template <class Call>
  void run(const Call& call) {
    size_t bytes = 0;
    CHECK(call(nullptr, bytes));
    if (bytes > bytes_) {
      cudaFree(memory_);
      CHECK(cudaMalloc(&memory_, bytes));
      bytes_ = bytes;
    }
    CHECK(call(memory_, bytes));
  }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

template <class Body>
__global__ void forEachKernel(int64_t count, Body body) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += step) body(k);
}
template <class Body>
void forEach(int64_t count, const Body& body) {
  if (count == 0) return;
  forEachKernel<<<unsigned(std::min<int64_t>((count + 255) / 256, 132 * 16)), 256>>>(count, body);
}

inline double medianMilliseconds(const std::function<void()>& job) {
  std::vector<double> times;
  double total = 0;
  for (int k = 0; k < 3 || (k < 1000 && (k < 12 || total < 500)); ++k) {
    const auto begin = std::chrono::steady_clock::now();
    job();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    const double time =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (k < 2) continue;  // warm
    times.push_back(time);
    total += time;
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

inline void report(const std::string& job, double milliseconds, double digest) {
  std::printf("{\"job\": \"%s\", \"ms\": %.6f, \"digest\": %.17g}\n", job.c_str(), milliseconds, digest);
  std::fflush(stdout);
}

inline double digest(const std::vector<int64_t>& a) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] % 1009) * (int64_t(i) % 1013);
  return double(sum);
}

inline int64_t argument(int argc, char** argv, int k) {
  if (k >= argc) {
    std::fprintf(stderr, "%s: too few arguments\n", argv[0]);
    std::exit(2);
  }
  return std::atoll(argv[k]);
}

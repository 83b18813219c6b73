// What divisions and square roots of floats cost on a GPU where what they are of is zero: as the compiler has
// them, and with a number that is not zero instead (k_quotient in codegen/cuda/base.cuh) or a branch.
// Nothing is read from the command line; prints one line for each type, form and share of zeros.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr int64_t kElements = int64_t{1} << 25;
constexpr int kThreads = 256, kOperations = 8, kRuns = 9;

template <class T>
__device__ T divisible();  ///< whose quotient is infinite for no divisor but zero
template <>
__device__ float divisible<float>() {
  return 0x1p-22f;
}
template <>
__device__ double divisible<double>() {
  return 0x1p-51;
}

struct Division {
  static constexpr const char* kName = "a / b";
  template <class T>
  static __device__ T of(T a, T b) {
    return a / b;
  }
};
struct Replaced {
  static constexpr const char* kName = "a / b, another number for zero";
  template <class T>
  static __device__ T of(T a, T b) {
    const bool zero = a == T(0);
    const T quotient = (zero ? divisible<T>() : a) / b;
    return quotient * (zero ? a : T(1));
  }
};
struct Branch {
  static constexpr const char* kName = "a / b, a branch for zero";
  template <class T>
  static __device__ T of(T a, T b) {
    if (a == T(0)) return b == T(0) || b != b ? T(0) / T(0) * b : a * copysign(T(1), b);
    return a / b;
  }
};
struct Root {
  static constexpr const char* kName = "sqrt(a)";
  template <class T>
  static __device__ T of(T a, T b) {
    return sqrt(a) + b;
  }
};
struct ReplacedRoot {
  static constexpr const char* kName = "sqrt(a), another number for zero";
  template <class T>
  static __device__ T of(T a, T b) {
    const bool zero = a == T(0);
    const T root = sqrt(zero ? T(1) : a);
    return (zero ? a : root) + b;
  }
};

template <class T, class Form>
__global__ void compute(const T* a, const T* b, T* result) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  T sum = 0, divisor = b[i];
#pragma unroll
  for (int k = 0; k < kOperations; ++k) {
    sum += Form::of(a[i] * T(k + 1), divisor);
    divisor += T(1);
  }
  result[i] = sum;
}

/// One of `every` elements is zero; none, where that is 0.
template <class T>
__global__ void fill(T* a, T* b, uint32_t every) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  const uint32_t random = static_cast<uint32_t>(i) * 2654435761u;
  const bool zero = every > 0 && random % every == 0;
  a[i] = zero ? T(0) : T(random >> 8) / T(1 << 20) + T(0.001);
  b[i] = T(1 + (random & 255));
}

template <class T, class Form>
void measure() {
  constexpr auto kBlocks = static_cast<unsigned>(kElements / kThreads);
  T *a, *b, *result;
  for (T** array : {&a, &b, &result}) cudaMalloc(array, kElements * sizeof(T));
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (const uint32_t every : {0u, 64u, 1u}) {
    fill<<<kBlocks, kThreads>>>(a, b, every);
    std::vector<float> times(kRuns);
    for (float& time : times) {
      cudaEventRecord(begin);
      compute<T, Form><<<kBlocks, kThreads>>>(a, b, result);
      cudaEventRecord(end);
      cudaEventSynchronize(end);
      cudaEventElapsedTime(&time, begin, end);
    }
    std::sort(times.begin(), times.end());
    const char* zeros = every == 0 ? "none zero" : every == 1 ? "all zero" : "one of 64 zero";
    std::printf("float%zu  %-34s %-15s %.4f ms\n", 8 * sizeof(T), Form::kName, zeros, times[kRuns / 2]);
  }
  for (T* array : {a, b, result}) cudaFree(array);
}

template <class T>
void measureAll() {
  measure<T, Division>();
  measure<T, Replaced>();
  measure<T, Branch>();
  measure<T, Root>();
  measure<T, ReplacedRoot>();
}

}  // namespace

int main() {
  measureAll<float>();
  measureAll<double>();
  const cudaError_t failure = cudaGetLastError();
  if (failure != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(failure));
  return failure == cudaSuccess ? 0 : 1;
}

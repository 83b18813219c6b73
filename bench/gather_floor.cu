// What a product with a sparse matrix cannot do without: reading 2^25 columns and numbers in order, and a
// vector at the columns, which are random. Prints milliseconds for ways to tell the caches what is read once
// and what again, and for vectors of several sizes.
//
//   gather_floor
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int64_t kNonzeros = int64_t{1} << 25;
constexpr int kMostColumns = 1 << 22;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "gather_floor: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

__device__ uint64_t mixed(uint64_t number) {
  uint64_t h = (number + 77) * 0x9e3779b97f4a7c15ull;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9ull;
  return h ^ h >> 32;
}
__global__ void fillNumbers(float* xs, int64_t n) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    xs[i] = float(mixed(i) % 9) - 4;
}
__global__ void fillColumns(int* columns, int64_t n, int size) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    columns[i] = int(mixed(i) % size);
}

enum class Stream { Plain, PassesL1, PassesBoth };
enum class Gather { Plain, PassesL1, StaysInL1, StaysInL2, StaysInBoth };

template <Stream kStream>
__device__ uint4 stream(const void* place) {
  uint4 q;
  if (kStream == Stream::Plain) {
    q = __ldg(static_cast<const uint4*>(place));
  } else if (kStream == Stream::PassesL1) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3},[%4];"
                 : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w)
                 : "l"(place));
  } else {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0,%1,%2,%3},[%4],%5;"
                 : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w)
                 : "l"(place), "l"(policy));
  }
  return q;
}
template <Gather kGather>
__device__ float gather(const float* place) {
  float f;
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  if (kGather == Gather::Plain) f = __ldg(place);
  if (kGather == Gather::PassesL1)
    asm volatile("ld.global.nc.L1::no_allocate.f32 %0,[%1];" : "=f"(f) : "l"(place));
  if (kGather == Gather::StaysInL1)
    asm volatile("ld.global.nc.L1::evict_last.f32 %0,[%1];" : "=f"(f) : "l"(place));
  if (kGather == Gather::StaysInL2)
    asm volatile("ld.global.nc.L2::cache_hint.f32 %0,[%1],%2;" : "=f"(f) : "l"(place), "l"(policy));
  if (kGather == Gather::StaysInBoth)
    asm volatile("ld.global.nc.L1::evict_last.L2::cache_hint.f32 %0,[%1],%2;"
                 : "=f"(f)
                 : "l"(place), "l"(policy));
  return f;
}

/// Four products a thread; nobody wants their sum.
template <Stream kStream, Gather kGather>
__global__ void __launch_bounds__(256, 8) products(const float* __restrict__ v, const float* __restrict__ xs,
                                                   const int* __restrict__ columns, float* out) {
  const int64_t at = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * 4;
  const uint4 c = stream<kStream>(columns + at), x = stream<kStream>(xs + at);
  const float sum =
      __uint_as_float(x.x) * gather<kGather>(v + c.x) + __uint_as_float(x.y) * gather<kGather>(v + c.y) +
      __uint_as_float(x.z) * gather<kGather>(v + c.z) + __uint_as_float(x.w) * gather<kGather>(v + c.w);
  if (sum == 12345.678f) *out = sum;
}

/// The same by blocks that stay and share what they keep of the vector: of each cluster, block k has the
/// pieces of 32 numbers k, k + blocks, ... in its shared memory, as many as `kept` numbers take. What is not
/// kept comes from memory.
template <int kUnrolled>
__global__ void __launch_bounds__(1024, 1)
    sharedProducts(const float* __restrict__ v, const float* __restrict__ xs, const int* __restrict__ columns,
                   float* out, int clusterBits, unsigned kept) {
  extern __shared__ float mine[];
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const unsigned blocks = 1u << clusterBits;
  for (unsigned place = threadIdx.x; place < kept >> clusterBits; place += blockDim.x)
    mine[place] = v[((place >> 5 << clusterBits | rank) << 5) | (place & 31)];
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  const unsigned base = unsigned(__cvta_generic_to_shared(mine));
  float sum = 0;
  const int64_t step = int64_t(gridDim.x) * blockDim.x * 4 * kUnrolled;
  for (int64_t first = int64_t(blockIdx.x) * blockDim.x * 4 * kUnrolled; first < kNonzeros; first += step) {
    uint4 c[kUnrolled], x[kUnrolled];
#pragma unroll
    for (int k = 0; k < kUnrolled; ++k) {
      const int64_t at = first + (int64_t(k) * blockDim.x + threadIdx.x) * 4;
      c[k] = at < kNonzeros ? stream<Stream::PassesL1>(columns + at) : uint4{};
      x[k] = at < kNonzeros ? stream<Stream::PassesL1>(xs + at) : uint4{};
    }
    const auto fetch = [&](unsigned at) {
      float f;
      const unsigned local = base + ((at >> 5 >> clusterBits << 5 | (at & 31)) << 2);
      asm volatile(
          "{.reg .pred p; .reg .u32 a; setp.lt.u32 p, %1, %2; mapa.shared::cluster.u32 a, %3, %4;"
          "@p ld.shared::cluster.f32 %0, [a]; @!p ld.global.nc.f32 %0, [%5];}"
          : "=f"(f)
          : "r"(at), "r"(kept), "r"(local), "r"(at >> 5 & (blocks - 1)), "l"(v + at));
      return f;
    };
    float got[kUnrolled][4];
#pragma unroll
    for (int k = 0; k < kUnrolled; ++k) {
      got[k][0] = fetch(c[k].x), got[k][1] = fetch(c[k].y);
      got[k][2] = fetch(c[k].z), got[k][3] = fetch(c[k].w);
    }
#pragma unroll
    for (int k = 0; k < kUnrolled; ++k)
      sum += __uint_as_float(x[k].x) * got[k][0] + __uint_as_float(x[k].y) * got[k][1] +
             __uint_as_float(x[k].z) * got[k][2] + __uint_as_float(x[k].w) * got[k][3];
  }
  if (sum == 12345.678f) *out = sum;
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ unsigned sharedAddress(const void* place) { return unsigned(__cvta_generic_to_shared(place)); }
__device__ unsigned addressIn(unsigned block, unsigned address) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}
__device__ void copyTo(unsigned block, void* to, const void* from, unsigned bytes, const uint64_t* arrived) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          addressIn(block, sharedAddress(to))),
      "r"(sharedAddress(from)), "r"(bytes), "r"(addressIn(block, sharedAddress(arrived)))
      : "memory");
}
__device__ void initialise(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(barrier)) : "memory");
}
__device__ void expect(uint64_t* barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ void await(uint64_t* barrier, unsigned parity) {
  asm volatile(
      "{.reg .pred p; AGAIN_%=: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;"
      "@!p bra AGAIN_%=;}" ::"r"(sharedAddress(barrier)),
      "r"(parity)
      : "memory");
}
__device__ void showToCopies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void meetCluster() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/// The same by letters: of each cluster, block k keeps the numbers k, k + blocks, ... A block sorts the
/// columns of 4096 products by who keeps them, sends each block its list, 2 bytes a column, and gets the
/// numbers back, 4 bytes each, side by side; both travel from shared memory to shared memory. What is not
/// kept, or does not fit a list, comes from memory meanwhile. Two groups of threads take turns.
constexpr unsigned kBlocks = 16, kGroups = 2, kThreads = 512, kOfThread = 8;
__global__ void __launch_bounds__(kGroups* kThreads, 1)
    exchangedProducts(const float* __restrict__ v, const float* __restrict__ xs,
                      const int* __restrict__ columns, float* out, unsigned kept, unsigned mostInList) {
  extern __shared__ __align__(16) char memory[];
  __shared__ uint64_t listsCame[kGroups][kBlocks], numbersCame[kGroups];
  __shared__ unsigned counts[kGroups][2][kBlocks];
  const unsigned group = threadIdx.x / kThreads, thread = threadIdx.x % kThreads;
  const unsigned lane = threadIdx.x % 32, warp = thread / 32;  // which serves block `warp`
  const unsigned all = kBlocks * mostInList;
  auto* const mine = reinterpret_cast<float*>(memory);
  float* const numbers = mine + kept / kBlocks + group * all * 3;
  float* const answers = numbers + all;
  auto* const lists = reinterpret_cast<uint16_t*>(answers + all);
  uint16_t* const questions = lists + all;
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  for (unsigned k = threadIdx.x; k < kept / kBlocks; k += kGroups * kThreads) mine[k] = v[k * kBlocks + rank];
  for (unsigned k = thread; k < all; k += kThreads) lists[k] = 0;  // what is behind a list is looked up, too
  if (thread < kBlocks) counts[group][0][thread] = 0;
  if (thread == 0) {
    for (uint64_t& barrier : listsCame[group]) initialise(&barrier);
    initialise(&numbersCame[group]);
  }
  __syncthreads();
  meetCluster();
  float sum = 0;
  constexpr int64_t kOfGroup = kThreads * kOfThread;
  const int64_t step = int64_t(gridDim.x) * kGroups * kOfGroup;
  const int64_t rounds = (kNonzeros + step - 1) / step;
  uint4 c[kOfThread / 4], x[kOfThread / 4];
  const auto load = [&](int64_t round) {
#pragma unroll
    for (unsigned k = 0; k < kOfThread / 4; ++k) {
      const int64_t at =
          round * step + (int64_t(blockIdx.x) * kGroups + group) * kOfGroup + (k * kThreads + thread) * 4;
      c[k] = at < kNonzeros ? stream<Stream::PassesL1>(columns + at) : uint4{~0u, ~0u, ~0u, ~0u};
      x[k] = at < kNonzeros ? stream<Stream::PassesL1>(xs + at) : uint4{};
    }
  };
  load(0);
  for (int64_t round = 0; round < rounds; ++round) {
    const unsigned parity = round & 1;
    if (thread < kBlocks) counts[group][parity ^ 1][thread] = 0;
    unsigned place[kOfThread];
    float got[kOfThread], factor[kOfThread];
#pragma unroll
    for (unsigned k = 0; k < kOfThread; ++k) {
      const uint4 four = c[k / 4], times = x[k / 4];
      const unsigned column = k % 4 == 0 ? four.x : k % 4 == 1 ? four.y : k % 4 == 2 ? four.z : four.w;
      factor[k] = __uint_as_float(k % 4 == 0   ? times.x
                                  : k % 4 == 1 ? times.y
                                  : k % 4 == 2 ? times.z
                                               : times.w);
      place[k] = ~0u;
      got[k] = 0;
      if (column < kept) {
        const unsigned owner = column % kBlocks, number = atomicAdd(&counts[group][parity][owner], 1u);
        if (number < mostInList) {
          place[k] = owner * mostInList + number;
          lists[place[k]] = uint16_t(column / kBlocks);
        }
      }
      if (place[k] == ~0u && column != ~0u) got[k] = __ldg(v + column);
    }
    showToCopies();
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(kThreads) : "memory");
    if (thread < kBlocks)
      copyTo(thread, questions + rank * mostInList, lists + thread * mostInList, mostInList * 2,
             &listsCame[group][rank]);
    if (lane == 0) expect(&listsCame[group][warp], mostInList * 2);
    if (thread == 32) expect(&numbersCame[group], all * 4);
    if (round + 1 < rounds) load(round + 1);
    await(&listsCame[group][warp], parity);
    for (unsigned k = warp * mostInList + lane * 4; k < (warp + 1) * mostInList; k += 128) {
      const uint2 q = *reinterpret_cast<const uint2*>(questions + k);
      *reinterpret_cast<float4*>(answers + k) =
          float4{mine[q.x & 0xffff], mine[q.x >> 16], mine[q.y & 0xffff], mine[q.y >> 16]};
    }
    showToCopies();
    __syncwarp();
    if (lane == 0)
      copyTo(warp, numbers + rank * mostInList, answers + warp * mostInList, mostInList * 4,
             &numbersCame[group]);
    await(&numbersCame[group], parity);
#pragma unroll
    for (unsigned k = 0; k < kOfThread; ++k)
      sum += factor[k] * (place[k] == ~0u ? got[k] : numbers[place[k]]);
  }
  if (sum == 12345.678f) *out = sum;
  meetCluster();
}

/// Milliseconds of a launch, the median.
template <class Launch>
float median(const Launch& launch) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int k = 0; k < 11; ++k) {
    constexpr int kLaunches = 4;
    cudaEventRecord(begin);
    for (int j = 0; j < kLaunches; ++j) launch();
    cudaEventRecord(end);
    check(cudaEventSynchronize(end));
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (k > 1) times.push_back(ms / kLaunches);
  }
  check(cudaGetLastError());
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Bench {
  float *v, *xs, *out;
  int* columns;

  template <Stream kStream, Gather kGather>
  void run(const char* what, bool mostlyL1 = false) const {
    auto* const kernel = products<kStream, kGather>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, mostlyL1 ? 0 : -1));
    const float ms = median([&] { kernel<<<kNonzeros / 1024, 256>>>(v, xs, columns, out); });
    std::printf("%-64s %.4f ms\n", what, ms);
  }

  /// Clusters of 2^clusterBits blocks keep `kept` numbers of a vector of `size`, if they can.
  template <int kUnrolled>
  void runShared(int clusterBits, int64_t size, int64_t kept) const {
    constexpr int threads = 1024;
    auto* const kernel = sharedProducts<kUnrolled>;
    const int clusterBlocks = 1 << clusterBits;
    const int64_t most = int64_t{226} * 1024 / 4 / 32 * 32 * clusterBlocks;
    kept = std::min(std::min(kept, most), size);
    const int bytes = int(kept >> clusterBits) * 4;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 * 1024));
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchConfig_t config{};
    config.blockDim = threads;
    config.gridDim = 132 / clusterBlocks * clusterBlocks;
    config.dynamicSmemBytes = bytes;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {unsigned(clusterBlocks), 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    if (clusters == 0) {
      std::printf("clusters of %d do not fit\n", clusterBlocks);
      return;
    }
    config.gridDim = clusters * clusterBlocks;
    const float ms = median([&] {
      check(cudaLaunchKernelEx(&config, kernel, static_cast<const float*>(v), static_cast<const float*>(xs),
                               static_cast<const int*>(columns), out, clusterBits, unsigned(kept)));
    });
    std::printf("%7ld of %7ld kept by %2d clusters of %2d, %4d threads, %d loads     %.4f ms\n", long(kept),
                long(size), clusters, clusterBlocks, threads, 4 * kUnrolled, ms);
  }

  void runExchanged(int64_t size, int64_t ofBlock) const {
    const auto kept = unsigned(std::min<int64_t>(size, ofBlock * kBlocks));
    const double mean = double(kThreads) * kOfThread * kept / size / kBlocks;
    const unsigned mostInList = unsigned(mean + 3 * std::sqrt(mean) + 7) / 8 * 8;
    const size_t bytes = size_t(kept / kBlocks) * 4 + size_t(kGroups) * kBlocks * mostInList * 12;
    if (bytes > 226 * 1024) return;
    check(cudaFuncSetAttribute(exchangedProducts, cudaFuncAttributeMaxDynamicSharedMemorySize, 226 * 1024));
    check(cudaFuncSetAttribute(exchangedProducts, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchConfig_t config{};
    config.blockDim = kGroups * kThreads;
    config.gridDim = kBlocks;
    config.dynamicSmemBytes = bytes;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {kBlocks, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, exchangedProducts, &config) != cudaSuccess || clusters == 0)
      return;
    config.gridDim = clusters * kBlocks;
    const float ms = median([&] {
      check(cudaLaunchKernelEx(&config, exchangedProducts, static_cast<const float*>(v),
                               static_cast<const float*>(xs), static_cast<const int*>(columns), out, kept,
                               mostInList));
    });
    std::printf("%7u of %7ld kept by %2d clusters of %2u, exchanged %26s %.4f ms\n", kept, long(size),
                clusters, kBlocks, "", ms);
  }
};

}  // namespace

int main() {
  Bench bench{};
  check(cudaMalloc(&bench.v, kMostColumns * sizeof(float)));
  check(cudaMalloc(&bench.xs, kNonzeros * sizeof(float)));
  check(cudaMalloc(&bench.columns, kNonzeros * sizeof(int)));
  check(cudaMalloc(&bench.out, sizeof(float)));
  fillNumbers<<<1024, 256>>>(bench.v, kMostColumns);
  fillNumbers<<<1024, 256>>>(bench.xs, kNonzeros);
  fillColumns<<<1024, 256>>>(bench.columns, kNonzeros, 1 << 20);
  bench.run<Stream::Plain, Gather::Plain>("2^20 columns");
  bench.run<Stream::PassesL1, Gather::Plain>("... streams pass by L1");
  bench.run<Stream::PassesL1, Gather::Plain>("... and L1 is as large as can be", true);
  bench.run<Stream::PassesL1, Gather::PassesL1>("... gathers pass by L1, too");
  bench.run<Stream::PassesL1, Gather::StaysInL1>("... gathers stay in L1", true);
  bench.run<Stream::PassesBoth, Gather::Plain>("... streams leave L2 first");
  bench.run<Stream::PassesBoth, Gather::StaysInL2>("... and gathers stay in L2");
  bench.run<Stream::PassesBoth, Gather::StaysInBoth>("... and in L1", true);
  for (int exponent = 10; exponent <= 22; exponent += 2) {
    fillColumns<<<1024, 256>>>(bench.columns, kNonzeros, 1 << exponent);
    char what[32];
    std::snprintf(what, sizeof what, "2^%d columns, streams pass by L1", exponent);
    bench.run<Stream::PassesL1, Gather::Plain>(what);
  }
  fillColumns<<<1024, 256>>>(bench.columns, kNonzeros, 1 << 20);
  for (int bits = 0; bits <= 4; ++bits)
    for (int kilobytes = 0; kilobytes <= 224; kilobytes += 16)
      bench.runShared<1>(bits, 1 << 20, int64_t{kilobytes} * 256 << bits);
  for (int kilobytes = 64; kilobytes <= 160; kilobytes += 16)
    bench.runExchanged(1 << 20, int64_t{kilobytes} * 256);
  return 0;
}

// Peers of Kelpie's GPU code, written as an expert would with CUB; times as lines of JSON.
//
//   gpu_peers [log2 of the number of elements, 27]
//   gpu_peers sweep [log2 of the greatest number of elements, 30]
//
// Every job runs `kRepeats` times after warming up; the median is reported. Inputs are larger than the cache.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/std/functional>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cub_peer.cuh"

namespace {

using namespace kelpie::bench;

/// Of many calls one after the other, per call, between two waits of the host, as gpu_bench measures.
struct BackToBack {
  double called;   ///< as a program calls them
  double asGraph;  ///< 32 of them recorded as a graph, which is launched again and again
};
BackToBack backToBack(const std::function<void()>& job) {
  constexpr int kCalls = 256, kOfGraph = 32, kBatches = 5;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  job();
  check(cudaStreamBeginCapture(kStream, cudaStreamCaptureModeThreadLocal), "capturing");
  for (int k = 0; k < kOfGraph; ++k) job();
  check(cudaStreamEndCapture(kStream, &graph), "capturing");
  check(cudaGraphInstantiate(&executable, graph, 0), "instantiating");
  const auto batches = [](int calls, const auto& call) {
    std::vector<double> times;
    for (int batch = 0; batch <= kBatches; ++batch) {  // the first one warms up
      check(cudaDeviceSynchronize(), "running");
      const auto begin = std::chrono::steady_clock::now();
      for (int k = 0; k < calls; ++k) call();
      check(cudaDeviceSynchronize(), "running");
      const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
      if (batch > 0) times.push_back(time.count() / kCalls);
    }
    std::sort(times.begin(), times.end());
    return times[kBatches / 2];
  };
  const double called = batches(kCalls, job);
  const double asGraph =
      batches(kCalls / kOfGraph, [&] { check(cudaGraphLaunch(executable, kStream), "launching"); });
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  return {called, asGraph};
}

using Plus = ::cuda::std::plus<>;  // which CUB is tuned for
struct Positive {
  __device__ bool operator()(float x) const { return x > 0; }
};

// ---- the sweep of gpu_bench.cpp ---------------------------------------------------------------------------

__device__ int64_t mixed(int64_t number) { return number * -7046029254386353131ll >> 33 & 0x3fffffff; }
__global__ void sweepValues(float* xs, int64_t n) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    xs[i] = float(mixed(i) & 255) - 127.5f;
}
__global__ void sweepOffsets(int64_t* offsets, int64_t segments, int64_t share, int64_t mean) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t j = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; j <= segments * share; j += step) {
    const int64_t k = (j + share - 1) / share;
    offsets[j] = k * mean + (k == 0 || k == segments ? 0 : mixed(k) % mean);
  }
}
/// The number of the segment of each element.
__global__ void sweepKeys(int32_t* keys, const int64_t* offsets, int64_t segments, int64_t n) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    int64_t low = 0, high = segments;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (offsets[middle + 1] <= i) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    keys[i] = int32_t(low);
  }
}

/// Sums, scans and filters of 2^10 and more elements; sums of segments by DeviceSegmentedReduce (where it
/// takes no seconds) and, where none is empty, by key; scans of segments by key. Keys are made beforehand.
void sweep(int greatest) {
  const int64_t most = int64_t{1} << greatest, kSlow = 1 << 22;
  Device<float> in(most), out(most);
  Device<int32_t> keys(most), unique(most);
  Device<int64_t> offsets(2 * most + 1), runs(1);
  for (int exponent : {10, 12, 14, 16, 18, 20, 22, 24, 27, 30}) {
    if (exponent > greatest) break;
    const int64_t n = int64_t{1} << exponent;
    const double all = 4.0 * static_cast<double>(n);
    const std::string size = "_" + std::to_string(exponent);
    sweepValues<<<1024, 256>>>(in.data, n);
    const auto copy = [&] { cudaMemcpyAsync(out.data, in.data, 4 * n, cudaMemcpyDeviceToDevice, kStream); };
    const auto time = [&](const std::string& job, const std::string& who, double bytes,
                          const std::function<void()>& call) {
      if (exponent >= 24) return report(job, who.c_str(), median(call), bytes);
      const BackToBack times = backToBack(call);
      report(job, who.c_str(), times.called, bytes);
      report(job, (who + ", graph").c_str(), times.asGraph, bytes);
    };
    time("sweep_copy" + size, "cudaMemcpy", 2 * all, copy);
    const auto run = [&](const std::string& job, const char* who, double bytes,
                         const std::function<cudaError_t(void*, size_t&)>& call) {
      Cub algorithm(call);
      time("sweep_" + job, who, bytes, [&] { algorithm(); });
    };
    run("sum" + size, "cub", all,
        [&](void* s, size_t& b) { return cub::DeviceReduce::Sum(s, b, in.data, out.data, n, kStream); });
    run("scan" + size, "cub", 2 * all, [&](void* s, size_t& b) {
      return cub::DeviceScan::ExclusiveSum(s, b, in.data, out.data, n, kStream);
    });
    run("filter" + size, "cub", 1.5 * all, [&](void* s, size_t& b) {
      return cub::DeviceSelect::If(s, b, in.data, out.data, runs.data, n, Positive(), kStream);
    });
    for (int length = 0; length <= exponent; length += 2) {
      for (int64_t share : {1, 2}) {
        const int64_t segments = n >> length, m = segments * share;
        sweepOffsets<<<1024, 256>>>(offsets.data, segments, share, int64_t{1} << length);
        const std::string name = size + "_" + std::to_string(length) + (share > 1 ? "_empties" : "");
        const double ends = 8.0 * static_cast<double>(m);
        if (m <= (exponent < 24 ? kSlow >> 6 : kSlow)) {
          run("sum" + name, "cub", all + 1.5 * ends, [&](void* s, size_t& b) {
            return cub::DeviceSegmentedReduce::Sum(s, b, in.data, out.data, m, offsets.data, offsets.data + 1,
                                                   kStream);
          });
        }
        sweepKeys<<<4096, 256>>>(keys.data, offsets.data, m, n);
        if (share == 1) {
          run("sum" + name, "cub by key", all + 1.5 * ends, [&](void* s, size_t& b) {
            return cub::DeviceReduce::ReduceByKey(s, b, keys.data, unique.data, in.data, out.data, runs.data,
                                                  Plus(), n, kStream);
          });
        }
        run("scan" + name, "cub by key", 2 * all + ends, [&](void* s, size_t& b) {
          return cub::DeviceScan::ExclusiveSumByKey(s, b, keys.data, in.data, out.data, n,
                                                    ::cuda::std::equal_to<>(), kStream);
        });
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "sweep") {
    sweep(argc > 2 ? std::atoi(argv[2]) : 30);
    return 0;
  }
  const int64_t n = int64_t{1} << (argc > 1 ? std::atoi(argv[1]) : 27);
  const double all = 4.0 * static_cast<double>(n);
  std::vector<float> host(static_cast<size_t>(n));
  std::mt19937 random(2);
  for (float& x : host) x = static_cast<float>(random()) / 2147483648.0f - 1.0f;
  Device<float> in(static_cast<size_t>(n)), out(static_cast<size_t>(n));
  in.put(host);

  report("copy", "cudaMemcpy",
         median([&] { cudaMemcpyAsync(out.data, in.data, all, cudaMemcpyDeviceToDevice, kStream); }),
         2 * all);
  {
    Cub sum([&](void* s, size_t& b) { return cub::DeviceReduce::Sum(s, b, in.data, out.data, n, kStream); });
    report("sum", "cub", median([&] { sum(); }), all);
    Cub small(
        [&](void* s, size_t& b) { return cub::DeviceReduce::Sum(s, b, in.data, out.data, 1024, kStream); });
    report("sum_1024", "cub", median([&] { small(); }), 4096);
  }
  {
    Cub scan([&](void* s, size_t& b) {
      return cub::DeviceScan::ExclusiveSum(s, b, in.data, out.data, n, kStream);
    });
    report("scan", "cub", median([&] { scan(); }), 2 * all);
  }
  {
    Device<int64_t> count(1);
    Cub filter([&](void* s, size_t& b) {
      return cub::DeviceSelect::If(s, b, in.data, out.data, count.data, n, Positive(), kStream);
    });
    report("filter", "cub", median([&] { filter(); }), 1.5 * all);
  }
  for (const char* kind : {"8", "1024", "1048576", "zipf", "half_giant"}) {
    const Segments segments(kind, n);
    const auto m = static_cast<double>(segments.count);
    Device<cub::KeyValuePair<int, float>> places(static_cast<size_t>(segments.count));
    sumSegments(std::string("segmented_sum_") + kind, segments, n, all + 8 * m, in.data, out.data, Plus(),
                0.0f);
    run(std::string("segmented_first_greatest_") + kind, "cub", all + 16 * m, [&](void* s, size_t& b) {
      return cub::DeviceSegmentedReduce::ArgMax(s, b, in.data, places.data, segments.count,
                                                segments.offsets.data, segments.offsets.data + 1, kStream);
    });
    run(std::string("segmented_scan_") + kind, "cub by key", 2 * all + 4 * m, [&](void* s, size_t& b) {
      return cub::DeviceScan::ExclusiveSumByKey(s, b, segments.keys.data, in.data, out.data, n,
                                                ::cuda::std::equal_to<>(), kStream);
    });
  }
  return 0;
}

// Peer of breadth_first_search.nesl: level by level; the edges of a frontier are shared out evenly by a scan
// of its degrees and searches in it, vertices are claimed by compare-and-swap, one wait of the host for each
// level.
//
//   breadth_first_search_peer random N M | rmat SCALE M | grid SIDE
#include "graph_peer.cuh"

constexpr int kThreads = 256, kItems = 8, kTile = kThreads * kItems;

/// The last k with offsets[k] <= position, from begin on.
__device__ int64_t segmentOf(const int64_t* offsets, int64_t begin, int64_t end, int64_t position) {
  while (end - begin > 1) {
    const int64_t middle = begin + (end - begin) / 2;
    if (offsets[middle] <= position) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  return begin;
}

__global__ void degreesOf(const int64_t* frontier, int64_t count, const int64_t* offsets, int64_t* degrees) {
  for (int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; k <= count;
       k += int64_t(gridDim.x) * blockDim.x)
    degrees[k] = k < count ? offsets[frontier[k] + 1] - offsets[frontier[k]] : 0;
}

__global__ void expand(const int64_t* frontier, int64_t count, const int64_t* starts, const int64_t* offsets,
                       const int64_t* neighbours, int64_t* distance, int64_t depth, int64_t* next,
                       unsigned long long* nextCount) {
  const int64_t edges = starts[count];
  __shared__ int64_t range[2];
  for (int64_t begin = int64_t(blockIdx.x) * kTile; begin < edges; begin += int64_t(gridDim.x) * kTile) {
    const int64_t end = min(begin + kTile, edges);
    if (threadIdx.x < 2) range[threadIdx.x] = segmentOf(starts, 0, count, threadIdx.x ? end - 1 : begin);
    __syncthreads();
    for (int64_t e = begin + threadIdx.x; e < begin + kTile; e += kThreads) {
      bool claimed = false;
      int64_t w = 0;
      if (e < end) {
        const int64_t k = segmentOf(starts, range[0], range[1] + 1, e);
        w = neighbours[offsets[frontier[k]] + e - starts[k]];
        claimed = distance[w] < 0 && atomicCAS(reinterpret_cast<unsigned long long*>(distance + w), ~0ull,
                                               static_cast<unsigned long long>(depth)) == ~0ull;
      }
      const unsigned votes = __ballot_sync(~0u, claimed);
      const int lane = threadIdx.x & 31;
      unsigned long long place = 0;
      if (lane == 0 && votes != 0)
        place = atomicAdd(nextCount, static_cast<unsigned long long>(__popc(votes)));
      place = __shfl_sync(~0u, place, 0);
      if (claimed) next[place + __popc(votes & ((1u << lane) - 1))] = w;
    }
    __syncthreads();
  }
}

int main(int argc, char** argv) {
  const Ends ends = bothWays(endsOf(argc, argv));
  const Adjacency graph = adjacency(ends);
  const int64_t n = ends.n;
  Array<int64_t> offsets(graph.offsets), neighbours(graph.neighbours), distance(n);
  Array<int64_t> frontier(n), next(n), degrees(n + 1), starts(n + 1);
  Array<unsigned long long> nextCount(1);
  unsigned long long* counted;
  CHECK(cudaMallocHost(&counted, sizeof *counted));
  Temporary temporary;
  const double time = medianMilliseconds([&] {
    int64_t *now = frontier, *then = next;
    CHECK(cudaMemsetAsync(distance, 0xff, size_t(n) * sizeof(int64_t)));
    CHECK(cudaMemsetAsync(distance, 0, sizeof(int64_t)));
    CHECK(cudaMemsetAsync(now, 0, sizeof(int64_t)));
    int64_t count = 1;
    for (int64_t depth = 1; count > 0; ++depth) {
      CHECK(cudaMemsetAsync(nextCount, 0, sizeof *counted));
      degreesOf<<<unsigned(std::min<int64_t>(count / 256 + 1, 132 * 8)), 256>>>(now, count, offsets, degrees);
      temporary.run([&](void* memory, size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(memory, bytes, degrees.get(), starts.get(), count + 1);
      });
      expand<<<132 * 8, kThreads>>>(now, count, starts, offsets, neighbours, distance, depth, then,
                                    nextCount);
      CHECK(cudaMemcpyAsync(counted, nextCount, sizeof *counted, cudaMemcpyDeviceToHost));
      CHECK(cudaStreamSynchronize(nullptr));
      count = int64_t(*counted);
      std::swap(now, then);
    }
  });
  report("breadth_first_search", time, digest(distance.host()));
}

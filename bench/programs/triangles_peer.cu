// Peer of triangles.nesl: a warp for each edge searches the neighbours of one end, the shorter list, in those
// of the other.
//
//   triangles_peer random N M | rmat SCALE M
#include "graph_peer.cuh"

__global__ void count(int64_t edges, const int64_t* from, const int64_t* to, const int64_t* offsets,
                      unsigned long long* triangles) {
  const int lane = threadIdx.x & 31;
  const int64_t warps = int64_t(gridDim.x) * blockDim.x / 32;
  unsigned long long found = 0;
  for (int64_t e = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32; e < edges; e += warps) {
    int64_t shortBegin = offsets[from[e]], shortEnd = offsets[from[e] + 1];
    int64_t longBegin = offsets[to[e]], longEnd = offsets[to[e] + 1];
    if (shortEnd - shortBegin > longEnd - longBegin) {
      const int64_t begin = shortBegin, end = shortEnd;
      shortBegin = longBegin;
      shortEnd = longEnd;
      longBegin = begin;
      longEnd = end;
    }
    for (int64_t k = shortBegin + lane; k < shortEnd; k += 32) {
      const int64_t w = to[k];
      int64_t begin = longBegin, end = longEnd;
      while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        const int64_t x = to[middle];
        if (x == w) {
          ++found;
          break;
        }
        if (x < w) {
          begin = middle + 1;
        } else {
          end = middle;
        }
      }
    }
  }
  for (int distance = 16; distance > 0; distance /= 2) found += __shfl_xor_sync(~0u, found, distance);
  if (lane == 0 && found > 0) atomicAdd(triangles, found);
}

int main(int argc, char** argv) {
  const Ends ends = endsOf(argc, argv);
  std::vector<int64_t> keys;
  for (size_t k = 0; k < ends.from.size(); ++k)
    if (ends.from[k] != ends.to[k])
      keys.push_back(std::min(ends.from[k], ends.to[k]) * ends.n + std::max(ends.from[k], ends.to[k]));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  Ends upward{ends.n, {}, {}};
  for (int64_t key : keys) {
    upward.from.push_back(key / ends.n);
    upward.to.push_back(key % ends.n);
  }
  const Adjacency graph = adjacency(upward);
  Array<int64_t> from(upward.from), to(graph.neighbours), offsets(graph.offsets);
  Array<unsigned long long> triangles(1);
  const double time = medianMilliseconds([&] {
    CHECK(cudaMemsetAsync(triangles, 0, sizeof(unsigned long long)));
    count<<<132 * 16, 256>>>(int64_t(keys.size()), from, to, offsets, triangles);
  });
  report("triangles", time, double(triangles.host()[0]));
}

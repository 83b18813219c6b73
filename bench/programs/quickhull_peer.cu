// Peer of quickhull.nesl. Every point has the number of its edge of the hull so far; a level finds the
// farthest point of each edge by atomic maxima (in shared memory while the edges are few), splits the edges,
// renumbers the points and drops those inside. Distances are compared by their bits, which order positive
// floats.
//
//   quickhull_peer disc|circle|kuzmin N
#include <cmath>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include "peer.cuh"

struct Point {
  double x, y;
};
struct Tagged {
  Point p;
  int64_t edge;
};
struct Edge {
  Point a, b;
};

__host__ __device__ double cross(Point o, Point p, Point q) {
  return (p.x - o.x) * (q.y - o.y) - (p.y - o.y) * (q.x - o.x);
}

constexpr int kFew = 1024;

/// The greatest distance of a point from each edge.
__global__ void farthest(const Tagged* points, int64_t n, const Edge* edges, int64_t count,
                         unsigned long long* greatest) {
  __shared__ unsigned long long local[kFew];
  const bool few = count <= kFew;
  if (few) {
    for (int k = threadIdx.x; k < count; k += blockDim.x) local[k] = 0;
    __syncthreads();
  }
  for (int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += int64_t(gridDim.x) * blockDim.x) {
    const Tagged t = points[k];
    const double d = cross(edges[t.edge].a, edges[t.edge].b, t.p);
    if (d <= 0) continue;
    const auto bits = static_cast<unsigned long long>(__double_as_longlong(d));
    unsigned long long* place = few ? local + t.edge : greatest + t.edge;
    if (*place < bits) atomicMax(place, bits);
  }
  if (!few) return;
  __syncthreads();
  for (int k = threadIdx.x; k < count; k += blockDim.x)
    if (local[k] != 0) atomicMax(greatest + k, local[k]);
}

/// Of several points at that distance, the one that comes first.
__global__ void corners(const Tagged* points, int64_t n, const Edge* edges,
                        const unsigned long long* greatest, unsigned long long* corner) {
  for (int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += int64_t(gridDim.x) * blockDim.x) {
    const Tagged t = points[k];
    const double d = cross(edges[t.edge].a, edges[t.edge].b, t.p);
    if (d > 0 && static_cast<unsigned long long>(__double_as_longlong(d)) == greatest[t.edge])
      atomicMin(corner + t.edge, static_cast<unsigned long long>(k));
  }
}

__global__ void splitEdges(const Edge* edges, int64_t count, const Tagged* points,
                           const unsigned long long* corner, const int64_t* first, Edge* next) {
  const int64_t e = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= count) return;
  if (corner[e] == ~0ull) {
    next[first[e]] = edges[e];
    return;
  }
  const Point far = points[corner[e]].p;
  next[first[e]] = Edge{edges[e].a, far};
  next[first[e] + 1] = Edge{far, edges[e].b};
}

__global__ void lengths(const unsigned long long* corner, int64_t count, int64_t* length) {
  const int64_t e = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e <= count) length[e] = e == count ? 0 : corner[e] == ~0ull ? 1 : 2;
}

/// Points outside of one of the two edges that theirs became; no edge: -1.
__global__ void renumber(Tagged* points, int64_t n, const unsigned long long* corner, const int64_t* first,
                         const Edge* next) {
  for (int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += int64_t(gridDim.x) * blockDim.x) {
    const Tagged t = points[k];
    int64_t edge = -1;
    if (corner[t.edge] != ~0ull) {
      const int64_t f = first[t.edge];
      if (cross(next[f].a, next[f].b, t.p) > 0) {
        edge = f;
      } else if (cross(next[f + 1].a, next[f + 1].b, t.p) > 0) {
        edge = f + 1;
      }
    }
    points[k].edge = edge;
  }
}

struct HasEdge {
  __host__ __device__ bool operator()(const Tagged& t) const { return t.edge >= 0; }
};
struct West {
  __host__ __device__ Point operator()(const Point& a, const Point& b) const { return b.x < a.x ? b : a; }
};
struct East {
  __host__ __device__ Point operator()(const Point& a, const Point& b) const { return b.x > a.x ? b : a; }
};

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  const int which = kind == "disc" ? 0 : kind == "circle" ? 1 : 2;
  const int64_t n = argument(argc, argv, 2);
  Array<Point> points(n), ends(2);
  Point* data = points;
  forEach(n, [=] __device__(int64_t i) {
    const double u = 1.0 - fraction(2 * i);
    const double r = which == 0 ? sqrt(fraction(2 * i)) : which == 1 ? 1.0 : sqrt(1.0 / (u * u) - 1.0);
    const double angle = 2.0 * 3.141592653589793 * fraction(which == 1 ? i : 2 * i + 1);
    data[i] = Point{r * cos(angle), r * sin(angle)};
  });
  Array<Tagged> tagged(n), others(n);
  Array<Edge> edges(n + 2), nextEdges(n + 2);
  Array<unsigned long long> greatest(n + 2), corner(n + 2);
  Array<int64_t> length(n + 3), first(n + 3), selected(1);
  int64_t* counted;
  CHECK(cudaMallocHost(&counted, 2 * sizeof(int64_t)));
  Point* host;
  CHECK(cudaMallocHost(&host, 2 * sizeof(Point)));
  Temporary temporary;
  int64_t count = 0;
  const auto blocks = [](int64_t work) { return unsigned(std::min<int64_t>(work / 256 + 1, 132 * 8)); };
  const double time = medianMilliseconds([&] {
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceReduce::Reduce(memory, bytes, points.get(), ends.get(), n, West(), Point{1e300, 0});
    });
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceReduce::Reduce(memory, bytes, points.get(), ends.get() + 1, n, East(),
                                       Point{-1e300, 0});
    });
    CHECK(cudaMemcpyAsync(host, ends, 2 * sizeof(Point), cudaMemcpyDeviceToHost));
    CHECK(cudaStreamSynchronize(nullptr));
    const Edge start[] = {{host[0], host[1]}, {host[1], host[0]}};
    Tagged *now = tagged, *then = others;
    Edge *edgesNow = edges, *edgesThen = nextEdges;
    CHECK(cudaMemcpyAsync(edgesNow, start, sizeof start, cudaMemcpyHostToDevice));
    const Edge line = start[0];
    forEach(n, [=] __device__(int64_t k) {
      now[k] = Tagged{data[k], cross(line.a, line.b, data[k]) > 0 ? 0 : 1};
    });
    count = 2;
    for (int64_t left = n; left > 0;) {
      CHECK(cudaMemsetAsync(greatest, 0, size_t(count) * 8));
      CHECK(cudaMemsetAsync(corner, 0xff, size_t(count) * 8));
      farthest<<<blocks(left), 256>>>(now, left, edgesNow, count, greatest);
      corners<<<blocks(left), 256>>>(now, left, edgesNow, greatest, corner);
      lengths<<<unsigned(count / 256 + 1), 256>>>(corner, count, length);
      temporary.run([&](void* memory, size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(memory, bytes, length.get(), first.get(), count + 1);
      });
      splitEdges<<<unsigned(count / 256 + 1), 256>>>(edgesNow, count, now, corner, first, edgesThen);
      renumber<<<blocks(left), 256>>>(now, left, corner, first, edgesThen);
      temporary.run([&](void* memory, size_t& bytes) {
        return cub::DeviceSelect::If(memory, bytes, now, then, selected.get(), left, HasEdge());
      });
      CHECK(cudaMemcpyAsync(counted, first.get() + count, sizeof(int64_t), cudaMemcpyDeviceToHost));
      CHECK(cudaMemcpyAsync(counted + 1, selected, sizeof(int64_t), cudaMemcpyDeviceToHost));
      CHECK(cudaStreamSynchronize(nullptr));
      count = counted[0];
      left = counted[1];
      std::swap(now, then);
      std::swap(edgesNow, edgesThen);
    }
    if (edgesNow != edges.get())
      CHECK(cudaMemcpyAsync(edges, edgesNow, size_t(count) * sizeof(Edge), cudaMemcpyDeviceToDevice));
  });
  double sum = 0;
  for (const Edge& e : edges.host(size_t(count))) sum += std::abs(e.a.x) + std::abs(e.a.y);
  std::printf("{\"job\": \"corners\", \"digest\": %lld}\n", static_cast<long long>(count));
  report("quickhull", time, sum);
}

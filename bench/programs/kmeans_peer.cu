// Peer of kmeans.nesl: each warp has its own sums in shared memory; ten steps without the host.
//
//   kmeans_peer input N K
#include "peer.cuh"

constexpr int kMostCentres = 64, kThreads = 256, kWarps = kThreads / 32;

struct Sums {
  double x, y;
  unsigned long long count;
};

__global__ void assign(int64_t n, const double2* points, int k, const double2* centres, Sums* sums) {
  __shared__ double2 local[kMostCentres];
  __shared__ Sums mine[kWarps][kMostCentres];
  for (int c = threadIdx.x; c < k; c += kThreads) local[c] = centres[c];
  for (int c = threadIdx.x; c < kWarps * kMostCentres; c += kThreads) mine[0][c] = Sums{0, 0, 0};
  __syncthreads();
  Sums* own = mine[threadIdx.x / 32];
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < n; i += int64_t(gridDim.x) * kThreads) {
    const double2 p = points[i];
    int nearest = 0;
    double least = 1e300;
    for (int c = 0; c < k; ++c) {
      const double dx = p.x - local[c].x, dy = p.y - local[c].y;
      const double distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        nearest = c;
      }
    }
    atomicAdd(&own[nearest].x, p.x);
    atomicAdd(&own[nearest].y, p.y);
    atomicAdd(&own[nearest].count, 1ull);
  }
  __syncthreads();
  for (int c = threadIdx.x; c < k; c += kThreads) {
    Sums all{0, 0, 0};
    for (int w = 0; w < kWarps; ++w) {
      all.x += mine[w][c].x;
      all.y += mine[w][c].y;
      all.count += mine[w][c].count;
    }
    atomicAdd(&sums[c].x, all.x);
    atomicAdd(&sums[c].y, all.y);
    atomicAdd(&sums[c].count, all.count);
  }
}

__global__ void move(int k, Sums* sums, double2* centres) {
  const int c = threadIdx.x;
  if (c >= k) return;
  const double count = double(max(1ull, sums[c].count));
  centres[c] = double2{sums[c].x / count, sums[c].y / count};
  sums[c] = Sums{0, 0, 0};
}

int main(int argc, char** argv) {
  const int64_t n = argument(argc, argv, 2);
  const int k = int(argument(argc, argv, 3));
  if (k > kMostCentres) return 2;
  Array<double2> points(n), centres(k);
  Array<Sums> sums(k);
  std::vector<double2> start;
  for (int c = 0; c < k; ++c) start.push_back({fraction(-1 - 2 * c), fraction(-2 - 2 * c)});
  const Array<double2> begin(start);
  double2* data = points;
  forEach(n, [=] __device__(int64_t i) { data[i] = double2{fraction(2 * i), fraction(2 * i + 1)}; });
  CHECK(cudaMemset(sums, 0, size_t(k) * sizeof(Sums)));
  const double time = medianMilliseconds([&] {
    CHECK(cudaMemcpyAsync(centres, const_cast<Array<double2>&>(begin).get(), size_t(k) * sizeof(double2),
                          cudaMemcpyDeviceToDevice));
    for (int step = 0; step < 10; ++step) {
      assign<<<132 * 4, kThreads>>>(n, points, k, centres, sums);
      move<<<1, kMostCentres>>>(k, sums, centres);
    }
  });
  double sum = 0;
  for (const double2& c : centres.host()) sum += c.x + 2.0 * c.y;
  report("kmeans", time, sum);
}

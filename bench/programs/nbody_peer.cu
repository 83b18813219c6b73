// Peer of nbody.nesl: tiles of bodies in shared memory.
//
//   nbody_peer input N
#include <cmath>

#include "peer.cuh"

constexpr int kTile = 128;

struct alignas(32) Body {
  double x, y, z, w;
};

__global__ void accelerations(int64_t n, const Body* bodies, double3* result) {
  __shared__ Body tile[kTile];
  const int64_t i = int64_t(blockIdx.x) * kTile + threadIdx.x;
  const Body me = bodies[min(i, n - 1)];
  double3 sum = {0, 0, 0};
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t j = begin + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : Body{0, 0, 0, 0};
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kTile; ++k) {
      const double dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
      const double r2 = dx * dx + dy * dy + dz * dz + 0.0001;
      const double inverse = rsqrt(r2);
      const double f = tile[k].w * inverse * inverse * inverse;
      sum.x += f * dx;
      sum.y += f * dy;
      sum.z += f * dz;
    }
    __syncthreads();
  }
  if (i < n) result[i] = sum;
}

int main(int argc, char** argv) {
  const int64_t n = argument(argc, argv, 2);
  Array<Body> bodies(n);
  Array<double3> result(n);
  Body* data = bodies;
  forEach(n, [=] __device__(int64_t i) {
    data[i] = Body{fraction(4 * i), fraction(4 * i + 1), fraction(4 * i + 2), fraction(4 * i + 3)};
  });
  const double time = medianMilliseconds(
      [&] { accelerations<<<unsigned((n + kTile - 1) / kTile), kTile>>>(n, bodies, result); });
  double sum = 0;
  for (const double3& a : result.host()) sum += std::abs(a.x) + 2.0 * std::abs(a.y) + 3.0 * std::abs(a.z);
  report("nbody", time, sum);
}

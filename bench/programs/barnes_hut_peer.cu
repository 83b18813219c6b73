// Peer of barnes_hut.nesl: CUB's radix sort of 30-bit codes, scans, one thread for each body's cubes and for
// its walk.
//
//   barnes_hut_peer uniform|plummer N
#include <cmath>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "peer.cuh"

constexpr int kLevels = 10;

struct alignas(32) Body {
  double x, y, z, m;
};
struct Sum {
  __host__ __device__ Body operator()(const Body& a, const Body& b) const {
    return Body{a.x + b.x, a.y + b.y, a.z + b.z, a.m + b.m};
  }
};
struct alignas(16) Cube {
  double x, y, z, m, near;
  int64_t behind;
};

__device__ double inside(double x) { return fmax(0.0, fmin(1023.0, 512.0 + 32.0 * x)); }

__device__ Body bodyOf(int64_t i, bool plummer) {
  const double a = fraction(4 * i), b = fraction(4 * i + 1), c = fraction(4 * i + 2),
               m = 0.5 + fraction(4 * i + 3);
  if (!plummer) return Body{1024.0 * a, 1024.0 * b, 1024.0 * c, m};
  const double u = 0.001 + 0.99 * a;
  const double r = 1.0 / sqrt(exp(log(u) * -2.0 / 3.0) - 1.0);
  const double z = 2.0 * b - 1.0, angle = 2.0 * 3.141592653589793 * c, s = sqrt(1.0 - z * z);
  return Body{inside(r * s * cos(angle)), inside(r * s * sin(angle)), inside(r * z), m};
}

__device__ uint32_t spread(uint32_t x) {
  x = (x | x << 16) & 0x030000ffu;
  x = (x | x << 8) & 0x0300f00fu;
  x = (x | x << 4) & 0x030c30c3u;
  return (x | x << 2) & 0x09249249u;
}

/// The first level at which two codes differ; kLevels + 1: none.
__device__ int parting(uint32_t a, uint32_t b) {
  return a == b ? kLevels + 1 : (__clz(int(a ^ b)) - 2) / 3 + 1;
}

/// Levels of the cubes that begin with a body.
__device__ int2 levelsOf(const uint32_t* codes, int64_t n, int64_t i) {
  const int first = i == 0 ? 0 : parting(codes[i - 1], codes[i]);
  const int last = i == n - 1 ? 0 : parting(codes[i], codes[i + 1]);
  return int2{first, min(kLevels, max(first, last)) + 1};
}

int main(int argc, char** argv) {
  const bool plummer = argc > 1 && std::string(argv[1]) == "plummer";
  const int64_t n = argument(argc, argv, 2);
  Array<Body> input(n), sortedBodies(n), products(n + 1), totals(n + 1);
  Array<uint32_t> codes(n), sortedCodes(n), order(n), sortedOrder(n);
  Array<int64_t> counts(n + 1), places(n + 1);
  Array<Cube> cubes(3 * n + 64);
  Array<double3> result(n);
  Body *bodies = input, *sorted = sortedBodies, *product = products, *total = totals;
  uint32_t *code = codes, *ordered = sortedCodes, *number = order, *from = sortedOrder;
  int64_t *count = counts, *place = places;
  Cube* cube = cubes;
  double3* acceleration = result;
  forEach(n, [=] __device__(int64_t i) { bodies[i] = bodyOf(i, plummer); });
  Temporary temporary;
  const double time = medianMilliseconds([&] {
    forEach(n, [=] __device__(int64_t i) {
      const Body b = bodies[i];
      code[i] = spread(uint32_t(b.x)) | spread(uint32_t(b.y)) << 1 | spread(uint32_t(b.z)) << 2;
      number[i] = uint32_t(i);
    });
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, code, ordered, number, from, n, 0, 3 * kLevels);
    });
    forEach(n + 1, [=] __device__(int64_t i) {
      if (i == n) {
        count[i] = 0;
        product[i] = Body{0, 0, 0, 0};
        return;
      }
      const Body b = bodies[from[i]];
      sorted[i] = b;
      product[i] = Body{b.x * b.m, b.y * b.m, b.z * b.m, b.m};
      const int2 levels = levelsOf(ordered, n, i);
      count[i] = max(0, levels.y - levels.x);
    });
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(memory, bytes, count, place, n + 1);
    });
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceScan::ExclusiveScan(memory, bytes, product, total, Sum(), Body{0, 0, 0, 0}, n + 1);
    });
    forEach(n, [=] __device__(int64_t i) {
      const int2 levels = levelsOf(ordered, n, i);
      for (int level = levels.x; level < levels.y; ++level) {
        const int shift = 3 * (kLevels - level);
        const uint64_t next = (uint64_t(ordered[i] >> shift) + 1) << shift;
        int64_t begin = i, end = n;
        while (begin < end) {
          const int64_t middle = (begin + end) / 2;
          if (ordered[middle] < next) {
            begin = middle + 1;
          } else {
            end = middle;
          }
        }
        const Body a = total[i], b = total[end];
        const double m = b.m - a.m, side = double(1 << (kLevels - level));
        const int64_t k = place[i] + level - levels.x;
        cube[k] = Cube{(b.x - a.x) / m,
                       (b.y - a.y) / m,
                       (b.z - a.z) / m,
                       m,
                       place[end] == k + 1 ? 0.0 : 4.0 * side * side,
                       place[end]};
      }
    });
    forEach(n, [=] __device__(int64_t i) {
      const Body b = sorted[i];
      const int64_t all = place[n];
      double3 a = {0, 0, 0};
      for (int64_t at = 0; at < all;) {
        const Cube c = cube[at];
        const double dx = c.x - b.x, dy = c.y - b.y, dz = c.z - b.z;
        const double r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < c.near) {
          ++at;
          continue;
        }
        const double soft = r2 + 0.01, strength = c.m / (soft * sqrt(soft));
        a.x += strength * dx;
        a.y += strength * dy;
        a.z += strength * dz;
        at = c.behind;
      }
      acceleration[i] = a;
    });
  });
  if (places.host()[size_t(n)] > int64_t(cubes.size())) return 1;
  double sum = 0;
  for (const double3& a : result.host()) sum += std::abs(a.x) + 2.0 * std::abs(a.y) + 3.0 * std::abs(a.z);
  report("barnes_hut", time, sum);
}

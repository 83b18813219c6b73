// Peer of delaunay.nesl: CUB's sorts make the strips; one thread goes all the way around each point, first to
// count its triangles, then to write them.
//
//   delaunay_peer square|kuzmin N
#include <cmath>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "peer.cuh"

constexpr double kInfinite = 1.0e300;

struct Plane {
  const double *xs, *ys, *west, *east;
  int64_t n, each, count;
  __device__ int64_t end(int64_t s) const { return min(n, (s + 1) * each); }
};

__device__ int64_t lower(const double* values, double v, int64_t begin, int64_t end) {
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (values[middle] < v) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

struct Best {
  int64_t at = -1;
  double least;
};

__device__ void nearestAlong(const Plane& plane, int64_t p, int64_t at, int64_t end, double top, Best& best) {
  for (; at < end && plane.ys[at] <= top; ++at) {
    const double dx = plane.xs[at] - plane.xs[p], dy = plane.ys[at] - plane.ys[p];
    const double d = dx * dx + dy * dy;
    if (at != p && d < best.least) best = {at, d};
  }
}

/// From the point's own strip to the east, then to the west, as far as the circle goes.
__device__ int64_t nearest(const Plane& plane, int64_t p) {
  const double x = plane.xs[p], y = plane.ys[p];
  const int64_t own = p / plane.each;
  Best best{p, kInfinite};
  nearestAlong(plane, p, max(own * plane.each, p - 1), min(p + 2, plane.end(own)), kInfinite, best);
  for (int by = 1; by >= -1; by -= 2) {
    for (int64_t s = by > 0 ? own : own - 1; s >= 0 && s < plane.count; s += by) {
      const double r = sqrt(best.least);
      if (by > 0 ? plane.west[s] > x + r : plane.east[s] < x - r) break;
      const int64_t end = plane.end(s);
      nearestAlong(plane, p, lower(plane.ys, y - r, s * plane.each, end), end, y + r, best);
    }
  }
  return best.at;
}

struct Edge {
  double px, py, qx, qy, turn;
  int64_t q;
};

__device__ void nextAlong(const Plane& plane, const Edge& e, int64_t at, int64_t end, double top,
                          Best& best) {
  for (; at < end && plane.ys[at] <= top; ++at) {
    const double x = plane.xs[at], y = plane.ys[at], ax = x - e.px, ay = y - e.py;
    const double left = e.turn * ((e.qx - e.px) * ay - (e.qy - e.py) * ax);
    if (!(left > 0.0) || at == e.q) continue;
    const double back = (ax * (x - e.qx) + ay * (y - e.qy)) / left;
    if (back < best.least) best = {at, back};
  }
}

struct Circle {
  double x, y, r;
};

__device__ Circle circle(const Edge& e, double back) {
  const double dx = e.qx - e.px, dy = e.qy - e.py, b = e.turn * back / 2.0;
  return {0.5 * (e.px + e.qx) - b * dy, 0.5 * (e.py + e.qy) + b * dx,
          sqrt((dx * dx + dy * dy) * (0.25 + b * b)) * 1.00000000000001};
}

__device__ int64_t next(const Plane& plane, int64_t p, int64_t q, double turn) {
  const Edge e{plane.xs[p], plane.ys[p], plane.xs[q], plane.ys[q], turn, q};
  const int64_t own = p / plane.each;
  Best best{-1, 1.0e100};
  for (int64_t s = max(int64_t{0}, own - 1); s <= own + 1 && s < plane.count; ++s) {
    const int64_t end = plane.end(s), at = lower(plane.ys, 0.5 * (e.py + e.qy), s * plane.each, end);
    nextAlong(plane, e, max(s * plane.each, at - 3), min(end, at + 3), kInfinite, best);
  }
  const double dx = turn * (e.qx - e.px), slope = dx == 0.0 ? 0.0 : (e.qy - e.py) / (e.qx - e.px);
  for (int by = 1; by >= -1; by -= 2) {
    Circle c = circle(e, best.least);
    int64_t s = by > 0 ? max(own, lower(plane.east, c.x - c.r, 0, plane.count))
                       : min(own, lower(plane.west, c.x + c.r, 0, plane.count)) - 1;
    for (; s >= 0 && s < plane.count; s += by) {
      c = circle(e, best.least);
      const double w = plane.west[s], east = plane.east[s];
      if (by > 0 ? w > c.x + c.r : east < c.x - c.r) break;
      double south = -kInfinite, north = kInfinite;
      if (dx != 0.0) {
        const double a = e.py + (w - e.px) * slope, b = e.py + (east - e.px) * slope;
        const double slack = 0.000000001 * (1.0 + fabs(a) + fabs(b));
        if (dx > 0.0) {
          south = fmin(a, b) - slack;
        } else {
          north = fmax(a, b) + slack;
        }
      }
      const double aside = fmax(0.0, fmax(w - c.x, c.x - east));
      const double half = sqrt(fmax(0.0, (c.r - aside) * (c.r + aside))), from = fmax(south, c.y - half);
      const int64_t end = plane.end(s);
      if (plane.ys[end - 1] < from) continue;
      nextAlong(plane, e, lower(plane.ys, from, s * plane.each, end), end, fmin(north, c.y + half), best);
    }
  }
  return best.at;
}

template <class Found>
__device__ void around(const Plane& plane, int64_t p, const Found& found) {
  const int64_t first = nearest(plane, p);
  int64_t q = first, r = 0;
  for (; (r = next(plane, p, q, 1.0)) >= 0; q = r) {
    if (p < q && p < r) found(p, q, r);
    if (r == first) return;
  }
  q = first;
  for (; (r = next(plane, p, q, -1.0)) >= 0; q = r)
    if (p < q && p < r) found(p, r, q);
}

int main(int argc, char** argv) {
  const bool kuzmin = argc > 1 && std::string(argv[1]) == "kuzmin";
  const int64_t n = argument(argc, argv, 2);
  const auto each = int64_t(std::sqrt(double(n)));
  const int64_t count = (n + each - 1) / each;
  Array<double2> input(n);
  Array<double> keys(n), sorted(n), unsortedY(n), xs(n), ys(n), west(count), east(count);
  Array<int64_t> numbers(n), order(n), inner(n), begins(count + 1), counts(n + 1), places(n + 1);
  Array<longlong3> triangles(2 * n);
  double2* points = input;
  double *key = keys, *ordered = sorted, *y = unsortedY, *px = xs, *py = ys, *w = west, *e = east;
  int64_t *number = numbers, *from = order, *within = inner, *begin = begins, *number_of = counts,
          *place = places;
  longlong3* result = triangles;
  forEach(n, [=] __device__(int64_t i) {
    const double a = fraction(2 * i), b = fraction(2 * i + 1), u = 1.0 - a;
    const double r = sqrt(1.0 / (u * u) - 1.0), angle = 2.0 * 3.141592653589793 * b;
    points[i] = kuzmin ? double2{r * cos(angle), r * sin(angle)} : double2{a, b};
  });
  Temporary temporary;
  const Plane plane{px, py, w, e, n, each, count};
  const double time = medianMilliseconds([&] {
    forEach(n, [=] __device__(int64_t i) { key[i] = points[i].x, number[i] = i; });
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, key, ordered, number, from, n);
    });
    forEach(std::max(n, count + 1), [=] __device__(int64_t i) {
      if (i <= count) begin[i] = min(n, i * each);
      if (i < count) w[i] = ordered[i * each], e[i] = ordered[min(n, (i + 1) * each) - 1];
      if (i < n) y[i] = points[from[i]].y;
    });
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceSegmentedSort::StableSortPairs(memory, bytes, y, py, from, within, n, count, begin,
                                                       begin + 1);
    });
    forEach(n, [=] __device__(int64_t i) { px[i] = points[within[i]].x; });
    forEach(n + 1, [=] __device__(int64_t p) {
      int64_t mine = 0;
      if (p < n) around(plane, p, [&](int64_t, int64_t, int64_t) { ++mine; });
      number_of[p] = mine;
    });
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(memory, bytes, number_of, place, n + 1);
    });
    forEach(n, [=] __device__(int64_t p) {
      int64_t at = place[p];
      around(plane, p, [&](int64_t a, int64_t b, int64_t c) { result[at++] = {a, b, c}; });
    });
  });
  const std::vector<double> hostX = xs.host(), hostY = ys.host();
  const auto edge = [&](int64_t a, int64_t b) {
    const double dx = hostX[size_t(a)] - hostX[size_t(b)], dy = hostY[size_t(a)] - hostY[size_t(b)];
    return std::log(1.0 + std::sqrt(dx * dx + dy * dy));
  };
  double sum = 0;
  for (const longlong3& t : triangles.host(size_t(places.host().back())))
    sum += edge(t.x, t.y) + edge(t.y, t.z) + edge(t.z, t.x);
  report("delaunay", time, sum);
}

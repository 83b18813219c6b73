// Peer of mandelbrot.nesl: one thread for each point.
//
//   mandelbrot_peer input N
#include "peer.cuh"

__global__ void mandelbrot(int n, int64_t* picture) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x), j = int(blockIdx.y * blockDim.y + threadIdx.y);
  if (i >= n || j >= n) return;
  const double cx = 3.0 * double(i) / double(n) - 2.0, cy = 2.4 * double(j) / double(n) - 1.2;
  double x = 0, y = 0;
  int64_t steps = 0;
  while (steps < 256 && x * x + y * y <= 4.0) {
    const double next = x * x - y * y + cx;
    y = 2.0 * x * y + cy;
    x = next;
    ++steps;
  }
  picture[int64_t(j) * n + i] = steps;
}

int main(int argc, char** argv) {
  const int n = int(argument(argc, argv, 2));
  Array<int64_t> picture(size_t(n) * size_t(n));
  const double time = medianMilliseconds([&] {
    const unsigned blocks = unsigned((n + 15) / 16);
    mandelbrot<<<dim3(blocks, blocks), dim3(16, 16)>>>(n, picture);
  });
  const std::vector<int64_t> steps = picture.host();
  int64_t sum = 0;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) sum += (steps[size_t(j * n + i)] * i) % 1009;
  report("mandelbrot", time, double(sum));
}

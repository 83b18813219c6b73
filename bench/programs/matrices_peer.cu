// Peer of matrices.nesl: tiles in shared memory for the transposition and the product, a warp's columns side by
// side for the sums.
//
//   matrices_peer input ROWS COLUMNS
//   matrices_peer both N
#include <cstring>

#include "peer.cuh"

constexpr int kTile = 32, kHigh = 8;

__global__ void transpose(const int64_t* in, int64_t* out, int64_t rows, int64_t columns) {
  __shared__ int64_t tile[kTile][kTile + 1];
  const int64_t i = blockIdx.y * int64_t(kTile), j = blockIdx.x * int64_t(kTile);
  for (int k = threadIdx.y; k < kTile; k += kHigh)
    if (i + k < rows && j + threadIdx.x < columns) tile[k][threadIdx.x] = in[(i + k) * columns + j + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < kTile; k += kHigh)
    if (j + k < columns && i + threadIdx.x < rows) out[(j + k) * rows + i + threadIdx.x] = tile[threadIdx.x][k];
}

/// A block has 32 columns and a chunk of the rows; what the blocks of a column have is added up.
__global__ void columnSums(const int64_t* in, int64_t* out, int64_t rows, int64_t columns) {
  __shared__ int64_t sums[kHigh][kTile];
  const int64_t j = blockIdx.x * int64_t(kTile) + threadIdx.x;
  const int64_t chunk = (rows + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * chunk;
  const int64_t end = begin + chunk < rows ? begin + chunk : rows;
  int64_t sum = 0;
#pragma unroll 8
  for (int64_t i = begin + threadIdx.y; i < end; i += kHigh) sum += j < columns ? in[i * columns + j] : 0;
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || j >= columns) return;
  for (int k = 1; k < kHigh; ++k) sum += sums[k][threadIdx.x];
  atomicAdd(reinterpret_cast<unsigned long long*>(out + j), static_cast<unsigned long long>(sum));
}

/// 64 x 64 results of a block, 4 x 4 of a thread.
__global__ void product(const double* a, const double* b, double* c, int n) {
  constexpr int kBlock = 64, kDeep = 16;
  __shared__ double left[kDeep][kBlock], right[kDeep][kBlock];
  const int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
  const int i = blockIdx.y * kBlock, j = blockIdx.x * kBlock;
  double sum[4][4] = {};
  for (int k = 0; k < n; k += kDeep) {
    for (int e = threadIdx.x; e < kDeep * kBlock; e += 256) {
      left[e % kDeep][e / kDeep] =
          i + e / kDeep < n && k + e % kDeep < n ? a[size_t(i + e / kDeep) * n + k + e % kDeep] : 0;
      right[e / kBlock][e % kBlock] =
          k + e / kBlock < n && j + e % kBlock < n ? b[size_t(k + e / kBlock) * n + j + e % kBlock] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDeep; ++d)
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int s = 0; s < 4; ++s) sum[r][s] += left[d][y + r] * right[d][x + s];
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r)
    for (int s = 0; s < 4; ++s)
      if (i + y + r < n && j + x + s < n) c[size_t(i + y + r) * n + j + x + s] = sum[r][s];
}

unsigned tiles(int64_t n) { return unsigned((n + kTile - 1) / kTile); }

int main(int argc, char** argv) {
  const int64_t rows = argument(argc, argv, 2);
  if (std::strcmp(argv[1], "both") == 0) {
    Array<double> a(rows * rows), c(rows * rows);
    double* data = a;
    forEach(rows * rows, [=] __device__(int64_t k) { data[k] = double(below(k, 100)); });
    const unsigned blocks = unsigned((rows + 63) / 64);
    const double time =
        medianMilliseconds([&] { product<<<dim3(blocks, blocks), 256>>>(a, a, c, int(rows)); });
    std::vector<int64_t> rounded;
    for (double x : c.host()) rounded.push_back(int64_t(x + 0.5));
    report("product", time, digest(rounded));
    return 0;
  }
  const int64_t columns = argument(argc, argv, 3);
  Array<int64_t> in(rows * columns), out(rows * columns), sums(columns);
  int64_t* data = in;
  forEach(rows * columns, [=] __device__(int64_t k) { data[k] = below(k, 1000); });
  const double transposing = medianMilliseconds(
      [&] { transpose<<<dim3(tiles(columns), tiles(rows)), dim3(kTile, kHigh)>>>(in, out, rows, columns); });
  report("transposed", transposing, digest(out.host()));
  const unsigned groups = tiles(columns), wanted = 16 * 132 / groups + 1;
  const unsigned chunks = unsigned(std::min<int64_t>(wanted, (rows + 63) / 64));
  const double summing = medianMilliseconds([&] {
    CHECK(cudaMemsetAsync(sums.get(), 0, size_t(columns) * sizeof(int64_t)));
    columnSums<<<dim3(groups, chunks), dim3(kTile, kHigh)>>>(in, sums, rows, columns);
  });
  report("column_sums", summing, digest(sums.host()));
}

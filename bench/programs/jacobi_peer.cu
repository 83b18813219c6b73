// Peer of jacobi.nesl: one kernel for a step and its greatest move. Two ways to go on: the host looks at the
// move after every step, or a graph with a loop does.
//
//   jacobi_peer input N
#include "peer.cuh"

__global__ void relax(const double* grid, double* next, int n, unsigned long long* moved) {
  const int column = int(blockIdx.x * blockDim.x + threadIdx.x),
            row = int(blockIdx.y * blockDim.y + threadIdx.y);
  double move = 0;
  if (row < n && column < n) {
    const int k = row * n + column;
    const double x = grid[k];
    double y = x;
    if (row != 0 && row != n - 1 && column != 0 && column != n - 1)
      y = 0.25 * (grid[k - 1] + grid[k + 1] + grid[k - n] + grid[k + n]);
    next[k] = y;
    move = fabs(x - y);
  }
  __shared__ double moves[8];
  for (int distance = 16; distance > 0; distance /= 2)
    move = fmax(move, __shfl_xor_sync(~0u, move, distance));
  const int thread = int(threadIdx.y * blockDim.x + threadIdx.x);
  if (thread % 32 == 0) moves[thread / 32] = move;
  __syncthreads();
  if (thread != 0) return;
  for (int k = 1; k < 8; ++k) move = fmax(move, moves[k]);
  // Floats that are not negative are ordered as their bits are.
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(move));
  if (*moved < bits) atomicMax(moved, bits);
}

/// Two steps, there and back; `moved` has the moves of both. Counts the steps, of which the second may be too
/// many.
__global__ void decide(unsigned long long* moved, int* steps, cudaGraphConditionalHandle handle) {
  const bool first = __longlong_as_double(static_cast<long long>(moved[0])) <= 1e-4;
  const bool second = __longlong_as_double(static_cast<long long>(moved[1])) <= 1e-4;
  *steps += first ? 1 : 2;
  moved[0] = moved[1] = 0;
  cudaGraphSetConditional(handle, !first && !second);
}

int main(int argc, char** argv) {
  const int n = int(argument(argc, argv, 2));
  std::vector<double> start(size_t(n) * size_t(n), 0.0);
  std::fill(start.begin(), start.begin() + n, 1.0);
  Array<double> input(start), a(start.size()), b(start.size());
  Array<unsigned long long> moved(2);
  Array<int> steps(1);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const dim3 threads(32, 8), blocks(unsigned(n + 31) / 32, unsigned(n + 7) / 8);
  const auto reset = [&] {
    for (double* grid : {a.get(), b.get()})
      CHECK(cudaMemcpyAsync(grid, input, start.size() * sizeof(double), cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemsetAsync(moved, 0, 16, stream));
    CHECK(cudaMemsetAsync(steps, 0, sizeof(int), stream));
  };
  double* host;
  CHECK(cudaMallocHost(&host, sizeof(double)));
  double *now = a, *then = b;
  int count = 0;
  double time = medianMilliseconds([&] {
    reset();
    now = a;
    then = b;
    count = 0;
    do {
      CHECK(cudaMemsetAsync(moved, 0, sizeof(double), stream));
      relax<<<blocks, threads, 0, stream>>>(now, then, n, moved);
      CHECK(cudaMemcpyAsync(host, moved, sizeof(double), cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      std::swap(now, then);
      ++count;
    } while (*host > 1e-4);
  });
  report("jacobi", time, count);

  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams parameters = {};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = cudaGraphCondTypeWhile;
  parameters.conditional.size = 1;
  cudaGraphNode_t loop;
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddNode(&loop, graph, nullptr, nullptr, 0, &parameters));
#else
  CHECK(cudaGraphAddNode(&loop, graph, nullptr, 0, &parameters));
#endif
  CHECK(cudaStreamBeginCaptureToGraph(stream, parameters.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                      cudaStreamCaptureModeThreadLocal));
  relax<<<blocks, threads, 0, stream>>>(a, b, n, moved);
  relax<<<blocks, threads, 0, stream>>>(b, a, n, moved.get() + 1);
  decide<<<1, 1, 0, stream>>>(moved, steps, handle);
  CHECK(cudaStreamEndCapture(stream, nullptr));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  time = medianMilliseconds([&] {
    reset();
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
  });
  report("jacobi as a graph", time, steps.host()[0]);
}

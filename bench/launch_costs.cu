// What launches, waits of the host, and loops cost on a GPU, in microseconds: the ways in which a run-time
// system can drive a loop whose condition is computed on the device. docs/launch-costs.md draws the
// conclusions.
//
//   nvcc -std=c++17 -O2 -arch=sm_90 -o launch_costs bench/launch_costs.cu && ./launch_costs
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

void check(cudaError_t error, const char* what, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s: %s\n", line, what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

struct Arguments {
  void* pointers[8];
  long long sizes[4];
};

/// As many arguments as a generated kernel has; writes its counter.
__global__ void step(Arguments arguments, int* counter) {
  if (threadIdx.x == 0 && blockIdx.x == 0) ++*counter;
  if (arguments.sizes[0] < 0) *static_cast<int*>(arguments.pointers[0]) = 1;
}
__global__ void publish(const int* counter, volatile int* host) {
  *host = *counter;
  __threadfence_system();
}
__global__ void decide(int* counter, int bodies, int iterations, cudaGraphConditionalHandle handle) {
  cudaGraphSetConditional(handle, *counter < bodies * iterations);
}

double microseconds(const std::function<void()>& work) {
  std::vector<double> times;
  for (int k = 0; k < 21; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int *counter, *staging, *mapped, *mappedOnDevice;
  CHECK(cudaMalloc(&counter, 4096));
  CHECK(cudaMallocHost(&staging, 4096));
  CHECK(cudaHostAlloc(&mapped, 4096, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&mappedOnDevice, mapped, 0));
  CHECK(cudaMemset(counter, 0, 4096));
  const Arguments arguments{};

  const int launches = 200;
  const auto launch = [&](int count) {
    for (int k = 0; k < count; ++k) step<<<64, 256, 0, stream>>>(arguments, counter);
  };
  double issued = 0;
  const double all = microseconds([&] {
    const auto begin = std::chrono::steady_clock::now();
    launch(launches);
    issued = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    CHECK(cudaStreamSynchronize(stream));
  });
  std::printf("%d launches in a row: %.2f a launch for the host, %.2f in all\n", launches, issued / launches,
              all / launches);

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  launch(launches);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphUpload(executable, stream));
  const double captured = microseconds([&] {
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
  });
  const double capture = microseconds([&] {
    cudaGraph_t again;
    cudaGraphExecUpdateResultInfo result;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch(launches);
    CHECK(cudaStreamEndCapture(stream, &again));
    CHECK(cudaGraphExecUpdate(executable, again, &result));
    CHECK(cudaGraphDestroy(again));
  });
  std::printf("the same as a graph: %.2f a launch in all; capturing it anew and updating: %.2f a launch\n",
              captured / launches, capture / launches);

  const int rounds = 100;
  const auto perRound = [&](const char* what, const std::function<void()>& wait) {
    const double time = microseconds([&] {
      for (int k = 0; k < rounds; ++k) {
        step<<<64, 256, 0, stream>>>(arguments, counter);
        wait();
      }
      CHECK(cudaStreamSynchronize(stream));
    });
    std::printf("a kernel and then %s: %.2f\n", what, time / rounds);
  };
  perRound("nothing", [] {});
  perRound("a wait", [&] { CHECK(cudaStreamSynchronize(stream)); });
  for (int copies : {1, 2, 4})
    perRound(copies == 1   ? "1 copy of 8 bytes and a wait"
             : copies == 2 ? "2 copies and a wait"
                           : "4 copies and a wait",
             [&] {
               for (int k = 0; k < copies; ++k)
                 CHECK(cudaMemcpyAsync(staging + 16 * k, counter, 8, cudaMemcpyDeviceToHost, stream));
               CHECK(cudaStreamSynchronize(stream));
             });
  volatile int* seen = mapped;
  perRound("a kernel that writes into the host's memory, and a wait", [&] {
    publish<<<1, 1, 0, stream>>>(counter, mappedOnDevice);
    CHECK(cudaStreamSynchronize(stream));
  });
  int expected = 0;
  CHECK(cudaMemcpy(&expected, counter, 4, cudaMemcpyDeviceToHost));
  perRound("a kernel that writes into the host's memory, which the host looks at", [&] {
    publish<<<1, 1, 0, stream>>>(counter, mappedOnDevice);
    ++expected;
    while (*seen != expected) {
    }
  });

  std::printf("\nloops of 100 rounds, microseconds a round\n%8s %16s %16s %16s\n", "kernels", "copy and wait",
              "memory of host", "graph");
  for (int bodies : {1, 2, 4, 8}) {
    const double copied = microseconds([&] {
      CHECK(cudaMemsetAsync(counter, 0, 4, stream));
      do {
        launch(bodies);
        CHECK(cudaMemcpyAsync(staging, counter, 4, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
      } while (*staging < bodies * rounds);
    });
    const double watched = microseconds([&] {
      CHECK(cudaMemsetAsync(counter, 0, 4, stream));
      *mapped = -1;
      for (int done = 0; done < bodies * rounds;) {
        launch(bodies);
        publish<<<1, 1, 0, stream>>>(counter, mappedOnDevice);
        done += bodies;
        while (*seen != done) {
        }
      }
    });
    cudaGraph_t outer;
    CHECK(cudaGraphCreate(&outer, 0));
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, outer, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams parameters = {};
    parameters.type = cudaGraphNodeTypeConditional;
    parameters.conditional.handle = handle;
    parameters.conditional.type = cudaGraphCondTypeWhile;
    parameters.conditional.size = 1;
    cudaGraphNode_t loop;
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddNode(&loop, outer, nullptr, nullptr, 0, &parameters));
#else
    CHECK(cudaGraphAddNode(&loop, outer, nullptr, 0, &parameters));
#endif
    CHECK(cudaStreamBeginCaptureToGraph(stream, parameters.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                        cudaStreamCaptureModeThreadLocal));
    launch(bodies);
    decide<<<1, 1, 0, stream>>>(counter, bodies, rounds, handle);
    CHECK(cudaStreamEndCapture(stream, nullptr));
    cudaGraphExec_t loopExecutable;
    const auto begin = std::chrono::steady_clock::now();  // once: a graph with a loop has one executable
    CHECK(cudaGraphInstantiate(&loopExecutable, outer, 0));
    const double instantiated =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    const double looped = microseconds([&] {
      CHECK(cudaMemsetAsync(counter, 0, 4, stream));
      CHECK(cudaGraphLaunch(loopExecutable, stream));
      CHECK(cudaStreamSynchronize(stream));
    });
    std::printf("%8d %16.2f %16.2f %16.2f   (instantiating the graph: %.1f)\n", bodies, copied / rounds,
                watched / rounds, looped / rounds, instantiated);
  }
  return 0;
}

// Stands in for CUDA when generated kernels are compiled with the host compiler (tests only).
//
// Threads of a block are fibers (emulated_device.cpp) that reach each other through `Machine`; blocks run a
// few at a time in random order. Shared memory is poisoned for every block.
#pragma once

#include <math.h>
#include <stdint.h>

struct dim3_of_emulation {
  unsigned x, y, z;
};

namespace emulation {

struct Thread {
  dim3_of_emulation threadIdx, blockIdx, blockDim, gridDim;
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual const Thread& thread() = 0;
  virtual void* sharedMemory(unsigned long bytes) = 0;  ///< the same address for all threads of a block
  virtual void syncThreads() = 0;
  virtual bool syncThreadsAnd(bool vote) = 0;
  /// The values that the 32 lanes of this warp give, by lane; waits for all of them.
  virtual const uint32_t* gather(uint32_t value) = 0;
  virtual void pause() = 0;  ///< lets other threads run
};

}  // namespace emulation

extern "C" emulation::Machine* kelpie_machine;
emulation::Machine* kelpie_machine = nullptr;

namespace emulation {

inline void pause() { kelpie_machine->pause(); }
inline int lane() { return int(kelpie_machine->thread().threadIdx.x & 31); }

template <int... k>
struct Indices {};
template <int n, int... k>
struct MakeIndices : MakeIndices<n - 1, n - 1, k...> {};
template <int... k>
struct MakeIndices<0, k...> {
  using Type = Indices<k...>;
};
template <class T>
struct Plain {
  using Type = T;
};
template <class T>
struct Plain<const T> {
  using Type = T;
};
template <class... Parameters, int... k>
void invoke(void (*kernel)(Parameters...), void** arguments, Indices<k...>) {
  kernel(*static_cast<typename Plain<Parameters>::Type*>(arguments[k])...);
}
/// Calls a kernel with arguments by address, as cuLaunchKernel does.
template <class... Parameters>
void invoke(void (*kernel)(Parameters...), void** arguments) {
  invoke(kernel, arguments, typename MakeIndices<sizeof...(Parameters)>::Type());
}

}  // namespace emulation

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define threadIdx (kelpie_machine->thread().threadIdx)
#define blockIdx (kelpie_machine->thread().blockIdx)
#define blockDim (kelpie_machine->thread().blockDim)
#define gridDim (kelpie_machine->thread().gridDim)
#define KELPIE_SHARED(Type, name) Type& name = *static_cast<Type*>(kelpie_machine->sharedMemory(sizeof(Type)))
#define KELPIE_UNROLL
#define KELPIE_UNROLL_2
#define KELPIE_UNROLL_4
#define KELPIE_UNROLL_8
#define KELPIE_NO_UNROLL

inline void __syncthreads() { kelpie_machine->syncThreads(); }
inline bool __syncthreads_and(bool vote) { return kelpie_machine->syncThreadsAnd(vote); }
inline void __syncwarp() { kelpie_machine->gather(0); }
inline void __threadfence() {}
inline void __threadfence_system() {}
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline long long __double2ll_rn(double x) {
  return x >= 0x1p63 ? INT64_MAX : x >= -0x1p63 ? llrint(x) : INT64_MIN;
}
inline uint32_t __umulhi(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline int __clz(uint32_t x) { return x == 0 ? 32 : __builtin_clz(x); }
inline int __ffs(uint32_t x) { return __builtin_ffs(int(x)); }
inline uint32_t __shfl_sync(uint32_t, uint32_t value, int source) {
  return kelpie_machine->gather(value)[source & 31];
}
inline uint32_t __shfl_up_sync(uint32_t, uint32_t value, int distance) {
  const uint32_t* values = kelpie_machine->gather(value);
  const int lane = emulation::lane();
  return values[lane >= distance ? lane - distance : lane];
}
inline uint32_t __shfl_xor_sync(uint32_t, uint32_t value, int mask) {
  return kelpie_machine->gather(value)[emulation::lane() ^ mask];
}
inline uint32_t __ballot_sync(uint32_t, bool vote) {
  const uint32_t* votes = kelpie_machine->gather(vote);
  uint32_t result = 0;
  for (int k = 0; k < 32; ++k) result |= votes[k] << k;
  return result;
}
inline int __any_sync(uint32_t lanes, bool vote) { return __ballot_sync(lanes, vote) != 0; }

// One system thread: plain operations are atomic. Pauses let other threads come in between.
inline uint32_t atomicInc(uint32_t* place, uint32_t limit) {
  emulation::pause();
  const uint32_t old = *place;
  *place = old >= limit ? 0 : old + 1;
  return old;
}
template <class T>
T atomicCAS(T* place, T expected, T desired) {
  const T old = *place;
  if (old == expected) *place = desired;
  return old;
}
inline uint32_t atomicExch(uint32_t* place, uint32_t value) {
  const uint32_t old = *place;
  *place = value;
  return old;
}
inline long long atomicMax(long long* place, long long value) {
  const long long old = *place;
  if (value > old) *place = value;
  return old;
}

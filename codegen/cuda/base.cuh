// Base of the device library: platforms, scalar types, the scalar functions of generated thunks.
//
// The library is compiled with every program by NVRTC, so it includes nothing and stays small. It also
// compiles with a host compiler under KELPIE_EMULATION, where tests run blocks and warps as fibers; the few
// places that name the machine (inline PTX, shared memory) are marked by that macro.
#pragma once

#if defined(KELPIE_EMULATION)
#include "emulation.h"
#else
#if defined(__CUDACC_RTC__)
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <cstdint>
#endif
#define KELPIE_SHARED(Type, name) __shared__ Type name
#define KELPIE_UNROLL _Pragma("unroll")
#define KELPIE_UNROLL_2 _Pragma("unroll 2")
#define KELPIE_UNROLL_4 _Pragma("unroll 4")
#define KELPIE_UNROLL_8 _Pragma("unroll 8")
#define KELPIE_NO_UNROLL _Pragma("unroll 1")
#endif

#define KELPIE_DEVICE static __device__ __forceinline__

/// Blocks of a multiprocessor that a kernel gives up for more registers (runtime/cuda/kernel_resources.h).
#ifndef KELPIE_BLOCKS_LESS
#define KELPIE_BLOCKS_LESS 0
#endif
#define KELPIE_FLAT_BLOCKS_LESS KELPIE_BLOCKS_LESS
/// ... and that it gets, where that many registers suffice.
#ifndef KELPIE_BLOCKS_MORE
#define KELPIE_BLOCKS_MORE 0
#endif
/// ", N" where registers shall suffice for N blocks (likewise).
#ifndef KELPIE_MIN_BLOCKS
#define KELPIE_MIN_BLOCKS
#endif

#include "early_launch.cuh"

namespace kelpie {

constexpr uint32_t kFullWarp = 0xffffffffu;

KELPIE_DEVICE int laneIndex() { return threadIdx.x & 31; }
KELPIE_DEVICE int warpIndex() { return threadIdx.x >> 5; }

// ---- words of a value -------------------------------------------------------------------------------------
// Operators work on tuples of scalars; shuffles and look-back move them as 32-bit words.

template <class T>
union Words {
  T value;
  uint32_t word[(sizeof(T) + 3) / 4];
  __device__ Words() : word{} {}
};

template <class T>
KELPIE_DEVICE T shuffleUp(const T& value, int distance) {
  Words<T> words;
  words.value = value;
  KELPIE_UNROLL
  for (int k = 0; k < static_cast<int>(sizeof(words.word) / 4); ++k) {
    words.word[k] = __shfl_up_sync(kFullWarp, words.word[k], distance);
  }
  return words.value;
}

template <class T>
KELPIE_DEVICE T shuffleXor(const T& value, int mask) {
  Words<T> words;
  words.value = value;
  KELPIE_UNROLL
  for (int k = 0; k < static_cast<int>(sizeof(words.word) / 4); ++k) {
    words.word[k] = __shfl_xor_sync(kFullWarp, words.word[k], mask);
  }
  return words.value;
}

template <class T>
KELPIE_DEVICE T shuffleFrom(const T& value, int lane) {
  Words<T> words;
  words.value = value;
  KELPIE_UNROLL
  for (int k = 0; k < static_cast<int>(sizeof(words.word) / 4); ++k) {
    words.word[k] = __shfl_sync(kFullWarp, words.word[k], lane);
  }
  return words.value;
}

/// The greatest of the values of all lanes.
KELPIE_DEVICE int warpMaximum(int value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kFullWarp, value);
#else
  KELPIE_UNROLL
  for (int mask = 16; mask > 0; mask /= 2) {
    const int other = shuffleXor(value, mask);
    if (other > value) value = other;
  }
  return value;
#endif
}

/// Sets bit `bit` of `marks` if `condition`: an instruction under a predicate. What selects constants and
/// puts them together ptxas (CUDA 13.0, from -O1 on) makes one instruction that packs predicates (P2R); of
/// two masks made side by side in code that branches it packed the predicates of the other one: a partition
/// counted what the filter beside it kept (seen on an H100; tests/codegen/cuda_nvrtc_test.cpp).
KELPIE_DEVICE void markIf(bool condition, int bit, uint32_t& marks) {
#if defined(KELPIE_EMULATION)
  marks |= uint32_t(condition) << bit;
#else
  asm("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p or.b32 %0, %0, %2; }"
      : "+r"(marks)
      : "r"(uint32_t(condition)), "r"(1u << bit));
#endif
}

// ---- scalar functions -------------------------------------------------------------------------------------
// Total versions of NESL's operations; their meaning is `evaluate` and `convert` of ir/scalar.h.

// Signed arithmetic wraps.
KELPIE_DEVICE int32_t k_add(int32_t a, int32_t b) { return int32_t(uint32_t(a) + uint32_t(b)); }
KELPIE_DEVICE int32_t k_sub(int32_t a, int32_t b) { return int32_t(uint32_t(a) - uint32_t(b)); }
KELPIE_DEVICE int32_t k_mul(int32_t a, int32_t b) { return int32_t(uint32_t(a) * uint32_t(b)); }
KELPIE_DEVICE int64_t k_add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
KELPIE_DEVICE int64_t k_sub(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
KELPIE_DEVICE int64_t k_mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

template <class T>
KELPIE_DEVICE T k_max(T a, T b) {
  return a > b ? a : b;
}
template <class T>
KELPIE_DEVICE T k_min(T a, T b) {
  return a < b ? a : b;
}
KELPIE_DEVICE int32_t k_shl(int32_t a, int32_t n) { return int32_t(uint32_t(a) << (n & 31)); }
KELPIE_DEVICE int64_t k_shl(int64_t a, int64_t n) { return int64_t(uint64_t(a) << (n & 63)); }
KELPIE_DEVICE int32_t k_shr(int32_t a, int32_t n) { return a >> (n & 31); }
KELPIE_DEVICE int64_t k_shr(int64_t a, int64_t n) { return a >> (n & 63); }

/// x >= 0 and x < limit in one comparison; that of the limit with 0 is the same for all elements.
KELPIE_DEVICE bool k_within(int64_t x, int64_t limit) {
  return uint64_t(x) < uint64_t(k_max(limit, int64_t(0)));
}
KELPIE_DEVICE bool k_within(int32_t x, int64_t limit) {
  return uint32_t(x) < uint32_t(k_min(k_max(limit, int64_t(0)), int64_t(1) << 31));
}

/// The number of an element. Sources say what `Place` is (cuda_module.h): if it has 32 bits, compilers know
/// that the upper half is zero, and divide and compare the lower one.
template <class Place>
KELPIE_DEVICE int64_t k_place(int64_t i) {
#if !defined(KELPIE_EMULATION)
  if constexpr (sizeof(Place) == 4) __builtin_assume(uint64_t(i) < uint64_t{1} << 32);
#endif
  return i;
}
/// The same of a number that is divided; that tells more. (Where neighbouring items are loaded, their
/// addresses would no longer be one address and constants.)
template <class Place>
KELPIE_DEVICE int64_t k_divided_place(int64_t i) {
  return int64_t(Place(i));
}

/// Keeps a load where it is: the compiler would move it to the one branch that needs the value, where a loop
/// that follows what it loads waits once more.
#if defined(KELPIE_EMULATION)
template <class T>
KELPIE_DEVICE void k_loaded(T) {}
#else
KELPIE_DEVICE void k_loaded(int32_t x) { asm volatile("" ::"r"(x)); }
KELPIE_DEVICE void k_loaded(int64_t x) { asm volatile("" ::"l"(x)); }
KELPIE_DEVICE void k_loaded(float x) { asm volatile("" ::"f"(x)); }
KELPIE_DEVICE void k_loaded(double x) { asm volatile("" ::"d"(x)); }
#endif

#define KELPIE_MATH(name, function)                            \
  KELPIE_DEVICE float name(float x) { return function##f(x); } \
  KELPIE_DEVICE double name(double x) { return function(x); }
KELPIE_MATH(k_sqrt, sqrt)
KELPIE_MATH(k_exp, exp)
KELPIE_MATH(k_ln, log)
KELPIE_MATH(k_sin, sin)
KELPIE_MATH(k_cos, cos)
KELPIE_MATH(k_tan, tan)
KELPIE_MATH(k_asin, asin)
KELPIE_MATH(k_acos, acos)
KELPIE_MATH(k_atan, atan)
KELPIE_MATH(k_sinh, sinh)
KELPIE_MATH(k_cosh, cosh)
KELPIE_MATH(k_tanh, tanh)
KELPIE_MATH(k_floor, floor)
KELPIE_MATH(k_abs, fabs)
#undef KELPIE_MATH

KELPIE_DEVICE float k_reciprocal(float x) { return 1.0f / x; }
KELPIE_DEVICE double k_reciprocal(double x) { return 1.0 / x; }

/// The same; where x or the result is zero, denormal, infinite or NaN it is anything, and `good` is made
/// false. The compiler's code branches there instead, which takes twice as many instructions and keeps those
/// of neighbouring elements apart; the steps to the value are the same ones, a guess of 23 bits and one step
/// of Newton's method, so both round correctly.
KELPIE_DEVICE float k_plain_reciprocal(bool& good, float x) {
#if defined(KELPIE_EMULATION)
  const float y = 1.0f / x;
  const bool plain = fabsf(x) > 1e-37f && fabsf(y) > 1e-37f;
  good = good & plain;
  return plain ? y : -7.0f;
#else
  float guess;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(x));
  const float error = __fmaf_rn(-x, guess, 1.0f);  // tiny, but 1, infinite or NaN in those cases
  good = good & (fabsf(error) < 0.5f);
  return __fmaf_rn(guess, error, guess);
#endif
}
KELPIE_DEVICE double k_plain_reciprocal(bool&, double x) { return k_reciprocal(x); }

KELPIE_DEVICE float k_float_bits(uint32_t bits) {
  Words<float> words;
  words.word[0] = bits;
  return words.value;
}
KELPIE_DEVICE double k_double_bits(uint64_t bits) {
  Words<double> words;
  words.word[0] = uint32_t(bits);
  words.word[1] = uint32_t(bits >> 32);
  return words.value;
}

/// `a / b`, of which `a` may well be zero. The compiler's code calls a function for a warp in which it is
/// zero for any lane: divisions alone take 3.3 times as long (float64) and 2.8 times (float32) where all are,
/// twice as long where one of 64 is; with this always 1.2 times (bench/quotients.cu, on an H200). A branch
/// would take less where all or none are, but it keeps those of neighbouring elements apart: whole kernels
/// took up to 1.4 times as long.
KELPIE_DEVICE float k_quotient(float a, float b) {
  const bool zero = a == 0.0f;
  // The quotient of this number is infinite for no divisor but zero: its product with `a` is what is wanted.
  const float quotient = (zero ? 0x1p-22f : a) / b;
  return quotient * (zero ? a : 1.0f);
}
KELPIE_DEVICE double k_quotient(double a, double b) {
  const bool zero = a == 0.0;
  const double quotient = (zero ? 0x1p-51 : a) / b;
  return quotient * (zero ? a : 1.0);
}

template <class To>
struct Conversion;  // k_convert<To>(x)

/// A float toward zero, saturated; NaN gives 0. `limit` is 2^(width-1).
template <class To, class From>
KELPIE_DEVICE To truncated(From x, From limit, To least, To greatest) {
  if (x != x) return To(0);
  if (x < -limit) return least;
  return x >= limit ? greatest : To(x);
}
template <>
struct Conversion<int32_t> {
  template <class From>
  static __device__ int32_t of(From x) {
    return int32_t(x);
  }
  static __device__ int32_t of(float x) {
    return truncated<int32_t>(x, 2147483648.0f, -2147483647 - 1, 2147483647);
  }
  static __device__ int32_t of(double x) {
    return truncated<int32_t>(x, 2147483648.0, -2147483647 - 1, 2147483647);
  }
};
template <>
struct Conversion<int64_t> {
  static constexpr int64_t kGreatest = 9223372036854775807ll;
  template <class From>
  static __device__ int64_t of(From x) {
    return int64_t(x);
  }
  static __device__ int64_t of(float x) {
    return truncated<int64_t>(x, 9223372036854775808.0f, -kGreatest - 1, kGreatest);
  }
  static __device__ int64_t of(double x) {
    return truncated<int64_t>(x, 9223372036854775808.0, -kGreatest - 1, kGreatest);
  }
};
template <>
struct Conversion<uint8_t> {
  template <class From>
  static __device__ uint8_t of(From x) {
    return uint8_t(uint64_t(Conversion<int64_t>::of(x)));
  }
};
template <>
struct Conversion<bool> {
  template <class From>
  static __device__ bool of(From x) {
    return x != From(0);
  }
};
template <>
struct Conversion<float> {
  template <class From>
  static __device__ float of(From x) {
    return float(x);
  }
};
template <>
struct Conversion<double> {
  template <class From>
  static __device__ double of(From x) {
    return double(x);
  }
};
template <class To, class From>
KELPIE_DEVICE To k_convert(From x) {
  return Conversion<To>::of(x);
}

// ---- launches and errors ----------------------------------------------------------------------------------

/// The first run-time error of a program: by launch, then by site (sites are numbered in the order of the
/// program, whose operations run over all elements), then by element, then by order of bindings. `launch` is
/// 0 while there is none.
struct ErrorWord {
  unsigned long long launch;
  int64_t element;
  uint32_t binding, site;
  int64_t payload[2];
  uint32_t lock;
};

/// A 16-byte word of look-back state (look_back.cuh); zero at first, kept from launch to launch.
struct alignas(16) StateWord {
  uint32_t payload[3];
  uint32_t tag;
};

/// What the host tells every kernel. Scratch memory is shared by all kernels of a stream, one after the
/// other: `counters` are zero between launches, tags of `states` name the epoch they belong to, `values` is
/// raw.
struct Launch {
  unsigned long long number;  ///< 1, 2, ... along the stream; the passes of one kernel share theirs
  ErrorWord* error;
  uint32_t* counters;  ///< finished blocks, of all or of several groups (kMostCounters of cuda_module.h)
  StateWord* states;
  unsigned char* values;
  int64_t tiles;     ///< tiles of the whole launch
  uint32_t epoch;    ///< differs from pass to pass; 29 bits
  int32_t together;  ///< segments of a block of groups (segment_groups.cuh, segment_warps.cuh)
  /// Where the number of elements stands that only the device knows; null: the host knows it.
  const int64_t* extent;
  const void* records[2];  ///< columns side by side (records.cuh); null: they are not
  /// Where writers of permutes leave their place (writeLast; kMostFoundTogether of many_writers.h); null:
  /// they write.
  uint32_t* places[4];
};

/// Whether an earlier launch failed: then its results do not exist and this kernel must not touch them. All
/// blocks of a launch agree, since errors of the launch itself do not count. For the same reason an old value
/// will do, so each multiprocessor keeps the word in its L1: where every warp asked L2, all of them asked the
/// same slice of it, one after the other.
KELPIE_DEVICE bool failedBefore(const Launch& launch) {
  unsigned long long failed;
#if defined(KELPIE_EMULATION)
  failed = *static_cast<volatile unsigned long long*>(&launch.error->launch);
#else
  asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(failed) : "l"(&launch.error->launch));
#endif
  return failed != 0 && failed < launch.number;
}

/// The number of elements, which is `most` or, where the host does not know it, less. After an error that
/// number may not exist.
KELPIE_DEVICE int64_t extentOf(const Launch& launch, int64_t most) {
  if (!launch.extent) return most;
  const int64_t extent = *launch.extent;
  return failedBefore(launch) ? 0 : extent;
}

/// Whether the launch has an error that comes before one at `site` of `element`: that of a lesser site, or of
/// the same one and a lesser element. Errors only give way to earlier ones while a launch runs, and those who
/// record one leave its element before its site and the launch last: so a stale look is safe, too.
KELPIE_DEVICE bool knowsEarlier(volatile ErrorWord* error, unsigned long long launch, int64_t element,
                                uint32_t site) {
  if (error->launch != launch) return false;
  __threadfence();
  const uint32_t known = error->site;
  if (known != site) return known < site;
  __threadfence();
  return error->element < element;
}

/// Records an error unless an earlier one is known. Errors are rare, so a lock will do; where they are not,
/// all but a few see that an earlier one is there, if need be while they wait.
static __device__ __noinline__ void recordError(ErrorWord* word, unsigned long long launch, int64_t element,
                                                uint32_t binding, uint32_t site, int64_t payload0,
                                                int64_t payload1) {
  volatile ErrorWord* error = word;
  do {
    if (knowsEarlier(error, launch, element, site)) return;
  } while (atomicCAS(&word->lock, 0u, 1u) != 0);
  __threadfence();
  const bool later = error->launch == launch && (error->site != site         ? error->site < site
                                                 : error->element != element ? error->element < element
                                                                             : error->binding <= binding);
  if (!later && (error->launch == 0 || error->launch == launch)) {
    error->element = element;
    error->binding = binding;
    error->payload[0] = payload0;
    error->payload[1] = payload1;
    __threadfence();
    error->site = site;
    __threadfence();
    error->launch = launch;
  }
  __threadfence();
  atomicExch(&word->lock, 0u);
}

/// Leaves the greatest number of a writer in a place of an array; -1: nowhere. Crowds at one place are spared
/// the atomic operation once a greater number is there. Of many writers the host finds out who is the last
/// (runtime/cuda/last_writers.h): `places` takes where they write.
KELPIE_DEVICE void writeLast(uint32_t* places, int64_t* array, int64_t place, int64_t writer) {
  if (places) {
    places[writer] = uint32_t(place);
  } else if (place >= 0 && *static_cast<volatile int64_t*>(array + place) < writer) {
    atomicMax(reinterpret_cast<long long*>(array + place), static_cast<long long>(writer));
  }
}

/// Increments the number at `place`, from `limit` to 0, and returns what it was. Who reads the new number,
/// and has a fence then, sees what this thread knows to be written.
KELPIE_DEVICE uint32_t releaseIncrement(uint32_t* place, uint32_t limit) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
  uint32_t before;
  asm volatile("atom.release.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(place), "r"(limit)
               : "memory");
  return before;
#else
  __threadfence();
  return atomicInc(place, limit);
#endif
}

/// Whether this block is the last one to get here of `blocks` that share a counter; what the others wrote
/// before is then visible. Contains barriers.
///
/// One thread releases what all threads of its block wrote before the barrier. A fence of every thread would
/// do the same, but each would wait, and each fence empties the cache of the core.
KELPIE_DEVICE bool isLastOf(uint32_t* counter, uint32_t blocks, uint32_t& shared) {
  __syncthreads();
  if (blocks == 1) return true;
  if (threadIdx.x == 0) shared = releaseIncrement(counter, blocks - 1);
  __syncthreads();
  if (shared != blocks - 1) return false;
  __threadfence();
  __syncthreads();
  return true;
}
/// ... of all blocks.
KELPIE_DEVICE bool isLastBlock(const Launch& launch, uint32_t& shared) {
  return isLastOf(&launch.counters[0], gridDim.x, shared);
}

}  // namespace kelpie

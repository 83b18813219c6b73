// Division of 64-bit integers, total: x / 0 = 0 and x % 0 = 0, and what overflows wraps.
//
// GPUs have no instruction for it, and the compiler's function of some hundred integer instructions takes
// three times as long as one of 32 bits. Where floats of 64 bits are as quick as those of 32, the quotient
// is found with them instead (k_divide): a loop of an H200 that divides a product by a number of 31 bits takes
// 1.8 ps a turn where the compiler's function takes 4.3, and 1.5 where the divisor is the same in all turns,
// as its reciprocal is then found once; half a picosecond of that is the loop. Operands that take one word and
// are not negative are divided as such: 1.3 ps.
#pragma once

#include "base.cuh"

namespace kelpie {

KELPIE_DEVICE bool k_is_word(int64_t x) { return uint64_t(x) >> 32 == 0; }

struct Division {
  int64_t quotient, remainder;
};

#if defined(KELPIE_EMULATION) || (__CUDA_ARCH__ <= 1000 && __CUDA_ARCH__ % 100 == 0)

/// About 1 / x, with an error of at most 2^-51 of it; of 0: anything.
KELPIE_DEVICE double k_near_reciprocal(double x) {
  double guess;
#if defined(KELPIE_EMULATION)
  guess = double(1.0f / float(x));
#else
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(x));
#endif
  const double error = __fma_rn(-x, guess, 1.0);  // below 2^-18, so the next step leaves its cube
  return __fma_rn(guess, __fma_rn(error, error, error), guess);
}

/// By 0: anything.
///
/// The estimate is off by four roundings, 2^-51 of it, and its own: while it is below 2^49 the remainder is
/// less than the divisor, whatever its sign. Else one more step divides what is left, which is below 2^28
/// then, since the divisor is at most 2^14. The sign of a remainder is that of the dividend.
KELPIE_DEVICE Division k_divide(int64_t dividend, int64_t divisor) {
  const double reciprocal = k_near_reciprocal(double(divisor)), estimate = double(dividend) * reciprocal;
  int64_t quotient = __double2ll_rn(estimate), remainder = k_sub(dividend, k_mul(quotient, divisor));
  if (fabs(estimate) >= 562949953421312.0) {  // 2^49
    const int64_t more = __double2ll_rn(double(remainder) * reciprocal);
    quotient = k_add(quotient, more);
    remainder = k_sub(remainder, k_mul(more, divisor));
  }
  if (remainder != 0 && (remainder ^ dividend) < 0) {
    const bool below = (remainder ^ divisor) < 0;
    quotient = below ? k_sub(quotient, int64_t(1)) : k_add(quotient, int64_t(1));
    remainder = below ? k_add(remainder, divisor) : k_sub(remainder, divisor);
  }
  return {quotient, remainder};
}

#else

KELPIE_DEVICE Division k_divide(int64_t dividend, int64_t divisor) {
  if (divisor == 0 || divisor == -1) return {k_sub(int64_t(0), dividend), 0};
  return {dividend / divisor, dividend % divisor};
}

#endif

template <class T>
KELPIE_DEVICE T k_div(T a, T b) {
  if (b == T(0)) return T(0);
  return b == T(-1) ? k_sub(T(0), a) : a / b;
}
template <class T>
KELPIE_DEVICE T k_rem(T a, T b) {
  return b == T(0) || b == T(-1) ? T(0) : a % b;
}
/// Code that divides in many places has one copy of what is long: with one in each place, tests for primes
/// took as long as with the compiler's function, with this 0.68 of it.
static __device__ __noinline__ Division k_divide_called(int64_t dividend, int64_t divisor) {
  return k_divide(dividend, divisor);
}

/// Of operands that are hardly ever words.
KELPIE_DEVICE int64_t k_div_long(int64_t a, int64_t b) { return b == 0 ? 0 : k_divide(a, b).quotient; }
KELPIE_DEVICE int64_t k_rem_long(int64_t a, int64_t b) { return b == 0 ? 0 : k_divide(a, b).remainder; }
KELPIE_DEVICE int64_t k_div_long_called(int64_t a, int64_t b) {
  return b == 0 ? 0 : k_divide_called(a, b).quotient;
}
KELPIE_DEVICE int64_t k_rem_long_called(int64_t a, int64_t b) {
  return b == 0 ? 0 : k_divide_called(a, b).remainder;
}
/// Of operands that may be words.
KELPIE_DEVICE int64_t k_div(int64_t a, int64_t b) {
  if (!k_is_word(a | b)) return k_div_long_called(a, b);
  return b == 0 ? 0 : uint32_t(a) / uint32_t(b);
}
KELPIE_DEVICE int64_t k_rem(int64_t a, int64_t b) {
  if (!k_is_word(a | b)) return k_rem_long_called(a, b);
  return b == 0 ? 0 : uint32_t(a) % uint32_t(b);
}
/// Of what may be a word, by a constant that is one.
KELPIE_DEVICE int64_t k_div_by_word(int64_t a, int64_t b) {
  return k_is_word(a) ? uint32_t(a) / uint32_t(b) : a / b;
}
KELPIE_DEVICE int64_t k_rem_by_word(int64_t a, int64_t b) {
  return k_is_word(a) ? uint32_t(a) % uint32_t(b) : a % b;
}

/// A remainder where k_div(a, b) is known: the compiler would divide twice.
template <class T>
KELPIE_DEVICE T k_remainder(T a, T b, T quotient) {
  return b == T(0) ? T(0) : k_sub(a, k_mul(quotient, b));
}

}  // namespace kelpie

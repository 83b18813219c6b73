// Support for generated CPU kernels; embedded in the compiler and put in front of every generated source,
// after codegen/cpu/reduction_order.h. No other headers: a kernel has to compile in a moment.
#pragma once

#include <stddef.h>
#include <stdint.h>

using namespace kelpie_order;

// ---- the launch, shared with the runtime (codegen/cpu/launch.h has the same layout)
// -------------------------

union k_argument {
  void* pointer;
  int64_t integer;
  double real;
};

/// The first error of a launch: the least site (they are numbered in the order of the program, whose
/// operations run over all elements), then the least key (element; segments and the end come later), then the
/// least binding.
struct k_error {
  int64_t key, binding, site, payload0, payload1;
  int32_t recorded, lock;
};

struct k_launch {
  int64_t elements, segments, length;
  const int64_t* targets;
  const k_argument* arguments;
  void* const* outputs;
  k_error* error;
  void* scratch;
  void* (*take)(void* scratch, size_t bytes);  ///< temporary memory until the launch is over; null: none left
  void* team;
  void (*parallel)(void* team, int64_t parts, int64_t at_once, void (*work)(void* what, int64_t part),
                   void* what);
  int64_t own_stack;
  void* stacks;
  bool (*deeper)(void* stacks, void (*work)(void* what), void* what);
  const bool* interrupt;
};

__attribute__((noinline, cold)) static bool k_interrupted(const k_launch* launch) {
  return launch->interrupt && __atomic_load_n(launch->interrupt, __ATOMIC_RELAXED);
}

constexpr int64_t k_epilogue = int64_t(1) << 61;  ///< key of segment 0 in an epilogue
constexpr int64_t k_finish = int64_t(1) << 62;    ///< key of Once

__attribute__((noinline, cold)) static void k_fail(const k_launch* launch, int64_t key, int64_t binding,
                                                   int64_t site, int64_t payload0, int64_t payload1) {
  k_error* error = launch->error;
  if (__atomic_load_n(&error->recorded, __ATOMIC_ACQUIRE) &&
      __atomic_load_n(&error->site, __ATOMIC_RELAXED) < site)
    return;
  while (__atomic_exchange_n(&error->lock, 1, __ATOMIC_ACQUIRE)) {
  }
  const bool earlier = site != error->site ? site < error->site
                       : key != error->key ? key < error->key
                                           : binding < error->binding;
  if (!error->recorded || earlier) {
    __atomic_store_n(&error->site, site, __ATOMIC_RELAXED);
    error->key = key;
    error->binding = binding;
    error->payload0 = payload0;
    error->payload1 = payload1;
    __atomic_store_n(&error->recorded, 1, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&error->lock, 0, __ATOMIC_RELEASE);
}

/// Temporary memory for `count` values (one at least).
template <typename T>
static inline T* k_take(const k_launch* launch, int64_t count) {
  return static_cast<T*>(
      launch->take(launch->scratch, sizeof(T) * static_cast<size_t>(count < 1 ? 1 : count)));
}

/// Keeps the compiler from vectorising a loop: it knows nothing of i from here on.
static inline void k_one_by_one(int64_t& i) { __asm__("" : "+r"(i)); }

static inline int64_t k_least(int64_t a, int64_t b) { return a < b ? a : b; }

#define K_INLINE __attribute__((always_inline))

/// Calls body(part) for each part, by all threads together; they take up to `at_once` parts at a time. Each
/// works on a copy of its own, which no store can change as far as the compiler knows.
template <typename Body>
static inline void k_parallel(const k_launch* launch, int64_t parts, int64_t at_once, const Body& body) {
  launch->parallel(
      launch->team, parts, at_once,
      [](void* what, int64_t part) {
        const Body own = *static_cast<const Body*>(what);
        own(part);
      },
      const_cast<Body*>(&body));
}
/// The same for each of `count` things that take a moment only.
template <typename Body>
static inline void k_for_each(const k_launch* launch, int64_t count, const Body& body) {
  constexpr int64_t grain = 4096;
  k_parallel(launch, (count + grain - 1) / grain, 1, [=](int64_t part) K_INLINE {
    const int64_t end = k_least(count, (part + 1) * grain);
#pragma GCC ivdep
    for (int64_t e = part * grain; e < end; ++e) body(e);
  });
}

/// How many things of unknown cost are done in a row: few, and fewer where there are few.
static inline int64_t k_chunk(int64_t count) { return count < 512 ? 1 : k_least(count / 512, 64); }

/// Keeps the greatest value that anybody writes.
static inline void k_atomic_max(int64_t* to, int64_t value) {
  int64_t seen = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (seen < value &&
         !__atomic_compare_exchange_n(to, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// ---- recursions
// ----------------------------------------------------------------------------------------------------------

/// Watches the stack of one evaluation: at first the thread's own, then, if that does not suffice, a large
/// one.
struct k_recursion {
  const k_launch* launch;
  const char* lowest = static_cast<const char*>(__builtin_frame_address(0)) - launch->own_stack;
  bool deep = false;
  uint32_t calls = 0;
};

constexpr int64_t k_deep_stack = (int64_t(1) << 28) - (int64_t(1) << 16);

template <typename Call>
struct k_deep_call {
  k_recursion& recursion;
  const Call& call;
  static void run(void* self) {
    const k_deep_call& job = *static_cast<k_deep_call*>(self);
    job.recursion.lowest = static_cast<const char*>(__builtin_frame_address(0)) - k_deep_stack;
    job.call();
  }
};

template <typename Call>
__attribute__((noinline, cold)) static bool k_recurse_deep(k_recursion& recursion, const Call& call) {
  if (recursion.deep) return false;
  const char* lowest = recursion.lowest;
  recursion.deep = true;
  k_deep_call<Call> job{recursion, call};
  const bool ran = recursion.launch->deeper(recursion.launch->stacks, k_deep_call<Call>::run, &job);
  recursion.deep = false;
  recursion.lowest = lowest;
  return ran;
}

template <typename Call>
static inline bool k_recurse(k_recursion& recursion, const Call& call) {
  if (static_cast<const char*>(__builtin_frame_address(0)) < recursion.lowest)
    return k_recurse_deep(recursion, call);
  if (++recursion.calls % 4096 == 0 && k_interrupted(recursion.launch)) return false;
  call();
  return true;
}

// ---- scalar operations: ir/scalar.h says what they mean
// -----------------------------------------------------

template <typename T>
struct k_is_float {
  static constexpr bool value = false;
};
template <>
struct k_is_float<float> {
  static constexpr bool value = true;
};
template <>
struct k_is_float<double> {
  static constexpr bool value = true;
};

static inline double k_double_bits(uint64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
static inline float k_float_bits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
static inline T k_div(T a, T b) {
  return b == 0 ? 0 : b == -1 ? T(0 - a) : T(a / b);
}
template <typename T>
static inline T k_rem(T a, T b) {
  return b == 0 || b == -1 ? 0 : T(a % b);
}
template <typename T>
static inline T k_max(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
static inline T k_min(T a, T b) {
  return a < b ? a : b;
}
static inline int64_t k_shl(int64_t a, int64_t b) { return int64_t(uint64_t(a) << (b & 63)); }
static inline int32_t k_shl(int32_t a, int32_t b) { return int32_t(uint32_t(a) << (b & 31)); }
static inline int64_t k_shr(int64_t a, int64_t b) { return a >> (b & 63); }
static inline int32_t k_shr(int32_t a, int32_t b) { return a >> (b & 31); }

#define K_FUNCTION(name, builtin)                                        \
  static inline double name(double a) { return __builtin_##builtin(a); } \
  static inline float name(float a) { return __builtin_##builtin##f(a); }
K_FUNCTION(k_sqrt, sqrt)
K_FUNCTION(k_exp, exp)
K_FUNCTION(k_ln, log)
K_FUNCTION(k_sin, sin)
K_FUNCTION(k_cos, cos)
K_FUNCTION(k_tan, tan)
K_FUNCTION(k_asin, asin)
K_FUNCTION(k_acos, acos)
K_FUNCTION(k_atan, atan)
K_FUNCTION(k_sinh, sinh)
K_FUNCTION(k_cosh, cosh)
K_FUNCTION(k_tanh, tanh)
K_FUNCTION(k_floor, floor)
K_FUNCTION(k_abs, fabs)
#undef K_FUNCTION

/// Float to int: toward zero, saturating; NaN gives 0.
template <typename T>
static inline T k_truncate(double v) {
  constexpr bool wide = sizeof(T) == 8;
  constexpr double limit = wide ? 9223372036854775808.0 : 2147483648.0;
  if (v != v) return 0;
  if (v >= limit) return wide ? T(INT64_MAX) : T(INT32_MAX);
  if (v < -limit) return wide ? T(INT64_MIN) : T(INT32_MIN);
  return T(v);
}
template <typename T>
struct k_conversion {
  template <typename S>
  static T from(S v) {
    if constexpr (k_is_float<S>::value && !k_is_float<T>::value) {
      if constexpr (sizeof(T) == 1) return T(k_truncate<int64_t>(double(v)));
      return k_truncate<T>(double(v));
    } else {
      return T(v);
    }
  }
};
template <>
struct k_conversion<bool> {
  template <typename S>
  static bool from(S v) {
    return v != 0;
  }
};
template <typename T, typename S>
static inline T k_convert(S v) {
  return k_conversion<T>::from(v);
}

// ---- folds: reduction_order.h says in which order
// -------------------------------------------------------------

#define K_OPERATION(name, expression) \
  struct name {                       \
    template <typename T>             \
    static inline T apply(T a, T b) { \
      return T(expression);           \
    }                                 \
  };
K_OPERATION(k_op_add, a + b)
K_OPERATION(k_op_mul, a* b)
K_OPERATION(k_op_max, a > b ? a : b)
K_OPERATION(k_op_min, a < b ? a : b)
K_OPERATION(k_op_and, a& b)
K_OPERATION(k_op_or, a | b)
K_OPERATION(k_op_xor, a ^ b)
#undef K_OPERATION

/// The total of the values value(0..count).
template <typename Operation, typename T, typename Value>
static inline T k_fold_lanes(int64_t count, T identity, const Value& value) {
  T total = identity;
  if (count < kSerial) {
    for (int64_t e = 0; e < count; ++e) total = Operation::apply(total, value(e));
    return total;
  }
  T lane[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) lane[l] = identity;
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t e = 0; e < whole; e += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] = Operation::apply(lane[l], value(e + l));
  }
  for (int64_t e = whole; e < count; ++e) lane[e - whole] = Operation::apply(lane[e - whole], value(e));
  for (int64_t l = 0; l < kLanes; ++l) total = Operation::apply(total, lane[l]);
  return total;
}
/// The total of a piece.
template <typename Operation, typename T>
static inline T k_fold(const T* values, int64_t count, T identity) {
  return k_fold_lanes<Operation>(count, identity, [=](int64_t e) K_INLINE { return values[e]; });
}
/// Without a branch where compilers might put one, which nothing could predict.
template <typename T>
static inline T k_choose(bool first, T a, T b) {
  return first ? a : b;
}
static inline int64_t k_choose(bool first, int64_t a, int64_t b) { return b ^ ((a ^ b) & -int64_t(first)); }
static inline int32_t k_choose(bool first, int32_t a, int32_t b) { return b ^ ((a ^ b) & -int32_t(first)); }
/// ... of those elements whose keys equal `key`.
template <typename Operation, typename T, typename Key>
static inline T k_fold_equal(const T* values, const Key* keys, Key key, int64_t count, T identity) {
  return k_fold_lanes<Operation>(
      count, identity, [=](int64_t e) K_INLINE { return k_choose(keys[e] == key, values[e], identity); });
}

// ---- segmented spaces
// -----------------------------------------------------------------------------------------

/// The first segment (or m) that starts at the element or after it.
template <typename Start>
static inline int64_t k_first_segment(int64_t m, const Start& start, int64_t element) {
  int64_t low = 0, high = m;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (start(middle) < element) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
/// The segment that starts in block `block` and goes on in later blocks; -1 when there is none.
template <typename Start>
static inline int64_t k_cut_segment(const Cut* cuts, int64_t block, int64_t m, const Start& start) {
  const int64_t s = cuts[block + 1].segment;
  if (s >= m) return -1;
  const int64_t first = start(s), end = cuts[block + 1].element;
  const bool startsHere = s > cuts[block].segment || first == cuts[block].element;
  return startsHere && first < end && start(s + 1) > end ? s : -1;
}
/// One past the last segment that has something in the block.
template <typename Start>
static inline int64_t k_end_segment(const Cut* cuts, int64_t block, int64_t m, const Start& start) {
  const int64_t s = cuts[block + 1].segment;
  return s < m && cuts[block + 1].element > start(s) ? s + 1 : s;
}
/// The part of a block that belongs to a segment which is cut: part 0 comes from an earlier block, part 1
/// goes on in a later one. False when there is none.
template <typename Start>
static inline bool k_part(const Cut* cuts, int64_t block, int part, int64_t m, const Start& start,
                          int64_t& begin, int64_t& end, int64_t& segment) {
  if (part == 0) {
    segment = cuts[block].segment;
    if (segment >= m) return false;
    begin = cuts[block].element;
    end = k_least(start(segment + 1), cuts[block + 1].element);
    return start(segment) < begin && begin < end;
  }
  segment = k_cut_segment(cuts, block, m, start);
  if (segment < 0) return false;
  begin = start(segment);
  end = cuts[block + 1].element;
  return true;
}

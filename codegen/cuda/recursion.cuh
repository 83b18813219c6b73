// Recursive functions in thunks (lcu::ExprKind::Recursion): the stack of a thread is small.
//
// A call that finds the stack used up is not made. The kernel then records an error of site kStackSite
// (cuda_module.h), and the host evaluates the launch.
//
// Frames of calls are kept in local memory (codegen/expression_emitter.h, Dialect::frames). A recursion that
// has another one inside of it calls functions instead, whose frames are on the stack that the compiler
// makes: several times as large, and lanes of a warp that call at different depths go on alone.
#pragma once

#include "base.cuh"

namespace kelpie {

/// Bytes that the calls of one evaluation may take. For functions the host reserves more (kStackBytes), so
/// that one more call fits, and whatever it calls that does not recurse.
constexpr uint64_t kRecursionBytes = 24 * 1024;
constexpr uint32_t kRecursionSlots = kRecursionBytes / 8;

/// Of a kernel with recursions.
#define KELPIE_FRAMES(name) uint64_t name[kRecursionSlots]

KELPIE_DEVICE uint64_t stackPointer() {
#if defined(KELPIE_EMULATION)
  return reinterpret_cast<uint64_t>(__builtin_frame_address(0));
#else
  uint64_t pointer;
  asm volatile("stacksave.u64 %0;" : "=l"(pointer));
  return pointer;
#endif
}

/// The stack of one evaluation.
struct k_recursion {
  uint64_t begin;      ///< of functions; it grows downwards
  uint64_t* slots;     ///< of frames
  uint32_t depth = 0;  ///< slots in use
  __device__ k_recursion(uint64_t* frames) : begin(stackPointer()), slots(frames) {}

  __device__ bool fits(uint32_t more) const { return depth + more <= kRecursionSlots; }
  template <class T>
  __device__ void push(T x) {
    Words<T> words;
    words.value = x;
    uint64_t slot = words.word[0];
    if (sizeof(T) == 8) slot |= uint64_t(words.word[sizeof(T) / 8]) << 32;
    slots[depth++] = slot;
  }
  __device__ void push(bool x) { slots[depth++] = x; }
  __device__ void push(uint8_t x) { slots[depth++] = x; }
  template <class T>
  __device__ void pop(T& x) {
    const uint64_t slot = slots[--depth];
    Words<T> words;
    words.word[0] = uint32_t(slot);
    if (sizeof(T) == 8) words.word[sizeof(T) / 8] = uint32_t(slot >> 32);
    x = words.value;
  }
  __device__ void pop(bool& x) { x = slots[--depth] != 0; }
  __device__ void pop(uint8_t& x) { x = uint8_t(slots[--depth]); }
};

/// Makes the call if there is stack for it; says whether there was.
template <class Call>
KELPIE_DEVICE bool k_recurse(const k_recursion& recursion, const Call& call) {
  if (recursion.begin - stackPointer() > kRecursionBytes) return false;
  call();
  return true;
}

/// A place to go on at that is none: the first call is done.
constexpr uint32_t k_done = ~0u;

/// Lanes meet here before each goes on at its place: the compiler may not send one straight to a place it
/// foresees.
KELPIE_DEVICE void k_meet(uint32_t& place) {
#if !defined(KELPIE_EMULATION)
  asm volatile("" : "+r"(place));
#endif
}

}  // namespace kelpie

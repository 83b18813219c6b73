// Recursive functions in thunks (lcu::ExprKind::Recursion): the stack of a thread is small.
//
// A call that finds the stack used up is not made. The kernel then records an error of site kStackSite
// (cuda_module.h), and the host evaluates the launch.
#pragma once

#include "base.cuh"

namespace kelpie {

/// Bytes that the calls of one evaluation may take. The host reserves more (kStackBytes), so that one more
/// call fits, and whatever it calls that does not recurse.
constexpr uint64_t kRecursionBytes = 24 * 1024;

KELPIE_DEVICE uint64_t stackPointer() {
#if defined(KELPIE_EMULATION)
  return reinterpret_cast<uint64_t>(__builtin_frame_address(0));
#else
  uint64_t pointer;
  asm volatile("stacksave.u64 %0;" : "=l"(pointer));
  return pointer;
#endif
}

/// Where the stack was when an evaluation began. It grows downwards.
struct k_recursion {
  uint64_t begin;
  __device__ k_recursion() : begin(stackPointer()) {}
};

/// Makes the call if there is stack for it; says whether there was.
template <class Call>
KELPIE_DEVICE bool k_recurse(const k_recursion& recursion, const Call& call) {
  if (recursion.begin - stackPointer() > kRecursionBytes) return false;
  call();
  return true;
}

}  // namespace kelpie

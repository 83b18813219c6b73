// What every kernel begins with, those that the host launches beside generated ones, too. It includes nothing
// else, for host_words.cuh, which compiles fast.
#pragma once

#if defined(KELPIE_EMULATION)
#include "emulation.h"
#endif

namespace kelpie {

/// Every kernel begins with this, before it reads or writes memory: it may have been launched when the blocks
/// of the one before it had ended but what they wrote was still on its way (LaunchQueue). Nobody lets the next
/// one begin earlier than that (`griddepcontrol.launch_dependents`): its blocks would share multiprocessors
/// with those still at work, whose results their read-only loads might then find in an old state in L1, and
/// they would be spread unevenly.
static __device__ __forceinline__ void followEarlierLaunches() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace kelpie

// The kernel that brings words to the host (runtime/cuda/host_reader.h). A module of its own that includes
// nothing: it is needed early, and compiles fast.
#pragma once

#if defined(KELPIE_EMULATION)
#include "emulation.h"
#endif

// Mirrored in runtime/cuda/host_reader.cpp.
struct HostWords {
  const void* from[32];
  unsigned char bytes[32];  ///< of each word: 0, 1, 4 or 8
  unsigned long long* to;   ///< memory of the host: 32 words and a number
  unsigned long long number;
};

/// One warp. The number comes after the words: who sees it sees them.
extern "C" __global__ void kelpie_host_words(HostWords words) {
  const int k = threadIdx.x;
  unsigned long long word = 0;
  if (words.bytes[k] == 1) word = *static_cast<const unsigned char*>(words.from[k]);
  if (words.bytes[k] == 4) word = *static_cast<const unsigned int*>(words.from[k]);
  if (words.bytes[k] == 8) word = *static_cast<const unsigned long long*>(words.from[k]);
  if (words.bytes[k] > 0) words.to[k] = word;
  __threadfence_system();
  __syncwarp();
  if (k == 0) *static_cast<volatile unsigned long long*>(words.to + 32) = words.number;
}

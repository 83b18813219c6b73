// The kernels that tell the host something: words (runtime/cuda/host_reader.h), and how conditions came out
// (runtime/cuda/outcome_board.h). A module of its own that includes next to nothing: it is needed early, and
// compiles fast.
#pragma once

#include "early_launch.cuh"

// Mirrored in runtime/cuda/host_reader.cpp.
struct HostWords {
  const void* from[32];
  /// Null, or where it says how many times its bytes a word is further, but no more than `most`.
  const long long* position[32];
  long long most[32];
  unsigned char bytes[32];  ///< of each word: 0, 1, 4 or 8
  unsigned long long* to;   ///< memory of the host: 32 words and a number
  unsigned long long number;
};

/// One warp. The number comes after the words: who sees it sees them.
extern "C" __global__ void kelpie_host_words(HostWords words) {
  kelpie::followEarlierLaunches();
  const int k = threadIdx.x;
  unsigned long long word = 0;
  long long position = words.position[k] ? *words.position[k] : 0;
  position = position < 0               ? 0
             : position > words.most[k] ? words.most[k]
                                        : position;  // after an error, anything
  if (words.bytes[k] == 1) word = static_cast<const unsigned char*>(words.from[k])[position];
  if (words.bytes[k] == 4) word = static_cast<const unsigned int*>(words.from[k])[position];
  if (words.bytes[k] == 8) word = static_cast<const unsigned long long*>(words.from[k])[position];
  if (words.bytes[k] > 0) words.to[k] = word;
  __threadfence_system();
  __syncwarp();
  if (k == 0) *static_cast<volatile unsigned long long*>(words.to + 32) = words.number;
}

/// Blocks of 256 threads: pieces of 128 bytes, one after the other, into memory of the host.
extern "C" __global__ void kelpie_host_pieces(const unsigned long long* const* from, unsigned long long* to,
                                              long long count) {
  kelpie::followEarlierLaunches();
  constexpr int kWords = 16;
  const long long piece = (long long)(blockIdx.x) * (256 / kWords) + threadIdx.x / kWords;
  const int word = threadIdx.x % kWords;
  if (piece < count) to[piece * kWords + word] = from[piece][word];
}

// Mirrored in runtime/cuda/outcome_board.cpp; the error word also in base.cuh.
struct ForetoldCondition {
  struct ErrorWord {
    unsigned long long launch;
    long long element;
    unsigned int binding, site;
    long long payload[2];
    unsigned int lock;
  };
  const unsigned char* condition;
  ErrorWord* error;
  unsigned long long launch;    ///< number, as of any launch
  unsigned long long expected;  ///< 0 or 1
  unsigned long long* to;       ///< memory of the host: number, and outcome in the two highest bits
  unsigned long long number;
};

/// One thread. A condition that came out otherwise stands in the error word: launches after it do nothing.
extern "C" __global__ void kelpie_foretold(ForetoldCondition foretold) {
  kelpie::followEarlierLaunches();
  unsigned long long outcome = 2;  // an error came before
  if (foretold.error->launch == 0) {
    outcome = *foretold.condition == foretold.expected ? 0 : 1;
    if (outcome == 1) {
      foretold.error->site = 0xffffffffu;
      foretold.error->launch = foretold.launch;
    }
  }
  *static_cast<volatile unsigned long long*>(foretold.to) = foretold.number | outcome << 62;
}

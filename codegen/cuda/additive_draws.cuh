// Draws of the additive random stream (runtime/random_stream.h); a module of its own.
//
// The generator, r[i] = r[i-3] + r[i-31] mod 2^32, is linear: the words that follow n steps after a
// state are sums of its words, word j being the sum over k of c[k] r[j+k], where x^n = sum of c[k] x^k modulo
// x^31 - x^28 - 1. So every thread jumps to where its draws begin (first its block, by the bits of its number,
// then itself), and steps on alone. What the threads of a warp have drawn goes through shared memory, so that
// each piece of 31 draws is written together.
#pragma once

#include "base.cuh"

namespace kelpie {

constexpr int kTaps = 31;  // words of a state, the oldest first
constexpr int kWarpLanes = 32;
constexpr int kDrawThreads = 128, kDrawRounds = 16;
constexpr int64_t kDrawsOfThread = kDrawRounds * kTaps, kDrawsOfBlock = kDrawThreads * kDrawsOfThread;
constexpr int kDrawsOfWarp = kWarpLanes * kTaps;  // in a round

struct RandomState {
  uint32_t word[kTaps];
};
struct DrawMemory {
  uint32_t word[2 * kTaps];  // the state where the block begins, and the words that follow it
  uint32_t drawn[kDrawThreads / kWarpLanes][kDrawsOfWarp];
};

/// By a warp: the words that follow those of a state.
KELPIE_DEVICE void appendWords(uint32_t* word) {
  if (laneIndex() < 3)  // each continues its own words: a word needs the third one before it
    for (int i = kTaps + laneIndex(); i < 2 * kTaps; i += 3) word[i] = word[i - 3] + word[i - kTaps];
  __syncwarp();
}

/// By a warp: the state n steps on, with the coefficients c of x^n.
KELPIE_DEVICE void jump(uint32_t* word, const uint32_t* c) {
  appendWords(word);
  uint32_t sum = 0;
  if (laneIndex() < kTaps)
    for (int k = 0; k < kTaps; ++k) sum += c[k] * word[laneIndex() + k];
  __syncwarp();
  if (laneIndex() < kTaps) word[laneIndex()] = sum;
  __syncwarp();
}

}  // namespace kelpie

/// `count` draws after `start`. `jumps`: of every thread of a block its jump from the beginning of the block,
/// the coefficients of one power of all threads in a row; then jumps over 1, 2, 4, ... blocks, row by row.
/// `isShort`: draws are stored in 32 bits (codegen/short_arrays.h).
extern "C" __global__ void kelpie_draw_additive(const kelpie::RandomState start, const uint32_t* jumps,
                                                int64_t count, int64_t isShort, void* out) {
  kelpie::followEarlierLaunches();
  using namespace kelpie;
  KELPIE_SHARED(DrawMemory, memory);
  if (warpIndex() == 0) {
    if (laneIndex() < kTaps) memory.word[laneIndex()] = start.word[laneIndex()];
    __syncwarp();
    const uint32_t* ofBlocks = jumps + kTaps * kDrawThreads;
    for (uint32_t bits = blockIdx.x; bits != 0; bits >>= 1, ofBlocks += kTaps)
      if (bits & 1) jump(memory.word, ofBlocks);
    appendWords(memory.word);
  }
  __syncthreads();

  uint32_t state[kTaps];
  KELPIE_UNROLL
  for (int j = 0; j < kTaps; ++j) state[j] = 0;
  KELPIE_NO_UNROLL
  for (int k = 0; k < kTaps; ++k) {
    const uint32_t c = jumps[k * kDrawThreads + threadIdx.x];
    KELPIE_UNROLL
    for (int j = 0; j < kTaps; ++j) state[j] += c * memory.word[j + k];
  }

  uint32_t* drawn = memory.drawn[warpIndex()];
  int64_t first =
      int64_t(blockIdx.x) * kDrawsOfBlock + warpIndex() * (kWarpLanes * kDrawsOfThread) + laneIndex();
  KELPIE_NO_UNROLL
  for (int round = 0; round < kDrawRounds; ++round, first += kTaps) {
    KELPIE_UNROLL
    for (int j = 0; j < kTaps; ++j) {
      state[j] += state[(j + kTaps - 3) % kTaps];
      drawn[laneIndex() * kTaps + j] = state[j] >> 1;
    }
    __syncwarp();
    if (laneIndex() < kTaps) {
      KELPIE_UNROLL_8
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        const int64_t at = first + lane * kDrawsOfThread;
        if (at >= count) continue;
        const uint32_t draw = drawn[lane * kTaps + laneIndex()];
        if (isShort) {
          static_cast<uint32_t*>(out)[at] = draw;
        } else {
          static_cast<int64_t*>(out)[at] = draw;
        }
      }
    }
    __syncwarp();
  }
}

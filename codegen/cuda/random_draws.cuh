// Draws of a random stream (runtime/random_stream.h); a module of its own.
//
// The additive generator, r[i] = r[i-3] + r[i-31] mod 2^32, is linear: the words that follow n steps after a
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

/// `count` draws after `start`. `jumps`: of every thread of a block its jump from the beginning of the block,
/// the coefficients of one power of all threads in a row; then jumps over 1, 2, 4, ... blocks, row by row.
template <class Draw>
KELPIE_DEVICE void drawAdditive(const RandomState& start, const uint32_t* jumps, int64_t count, Draw* out) {
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
        if (at < count) out[at] = Draw(drawn[lane * kTaps + laneIndex()]);
      }
    }
    __syncwarp();
  }
}

/// `count` draws of Philox 4x32-10 from number `position` on: draw n is word n % 4 of block n / 4. A thread
/// makes a block.
template <class Draw>
KELPIE_DEVICE void drawPhilox(uint32_t key, uint64_t position, int64_t count, Draw* out) {
  const uint64_t block = position / 4 + uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  uint32_t c[4] = {uint32_t(block), uint32_t(block >> 32), 0, 0};
  uint32_t k0 = key, k1 = 0;
  KELPIE_UNROLL
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c[0], p1 = uint64_t(0xCD9E8D57u) * c[2];
    c[0] = uint32_t(p1 >> 32) ^ c[1] ^ k0;
    c[1] = uint32_t(p1);
    c[2] = uint32_t(p0 >> 32) ^ c[3] ^ k1;
    c[3] = uint32_t(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  struct alignas(16) Chunk {
    Draw draw[16 / sizeof(Draw)];
  };
  constexpr int kOfChunk = 16 / sizeof(Draw);
  const int64_t at = int64_t(block * 4 - position);  // of the first word; the first block may begin before 0
  if (at >= 0 && at % kOfChunk == 0 && at + 4 <= count) {
    KELPIE_UNROLL
    for (int k = 0; k < 4; k += kOfChunk) {
      Chunk chunk;
      KELPIE_UNROLL
      for (int j = 0; j < kOfChunk; ++j) chunk.draw[j] = Draw(c[k + j] >> 1);
      *reinterpret_cast<Chunk*>(out + at + k) = chunk;
    }
    return;
  }
  KELPIE_UNROLL
  for (int k = 0; k < 4; ++k)
    if (at + k >= 0 && at + k < count) out[at + k] = Draw(c[k] >> 1);
}

}  // namespace kelpie

// As Int64, and as a short array (codegen/short_arrays.h).
extern "C" __global__ void kelpie_draw_additive(const kelpie::RandomState start, const uint32_t* jumps,
                                                int64_t count, int64_t* out) {
  kelpie::followEarlierLaunches();
  kelpie::drawAdditive(start, jumps, count, out);
}
extern "C" __global__ void kelpie_draw_short_additive(const kelpie::RandomState start, const uint32_t* jumps,
                                                      int64_t count, uint32_t* out) {
  kelpie::followEarlierLaunches();
  kelpie::drawAdditive(start, jumps, count, out);
}
extern "C" __global__ void kelpie_draw_philox(uint32_t key, uint64_t position, int64_t count, int64_t* out) {
  kelpie::followEarlierLaunches();
  kelpie::drawPhilox(key, position, count, out);
}
extern "C" __global__ void kelpie_draw_short_philox(uint32_t key, uint64_t position, int64_t count,
                                                    uint32_t* out) {
  kelpie::followEarlierLaunches();
  kelpie::drawPhilox(key, position, count, out);
}

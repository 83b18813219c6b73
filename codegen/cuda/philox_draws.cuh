// Draws of Philox 4x32-10 (runtime/random_stream.h); a module of its own.
#pragma once

#include "base.cuh"

namespace kelpie {

/// draw[at .. at + 3] = the words, as far as these are elements of the array; together if they can be.
template <class Draw>
KELPIE_DEVICE void storeDraws(const uint32_t (&word)[4], int64_t at, int64_t count, Draw* draw) {
  constexpr int kOfChunk = 16 / sizeof(Draw);
  struct alignas(16) Chunk {
    Draw draw[kOfChunk];
  };
  if (at >= 0 && at % kOfChunk == 0 && at + 4 <= count) {
    KELPIE_UNROLL
    for (int k = 0; k < 4; k += kOfChunk) {
      Chunk chunk;
      KELPIE_UNROLL
      for (int j = 0; j < kOfChunk; ++j) chunk.draw[j] = Draw(word[k + j]);
      *reinterpret_cast<Chunk*>(draw + at + k) = chunk;
    }
    return;
  }
  KELPIE_UNROLL
  for (int k = 0; k < 4; ++k)
    if (at + k >= 0 && at + k < count) draw[at + k] = Draw(word[k]);
}

}  // namespace kelpie

/// `count` draws from number `position` on: draw n is word n % 4 of block n / 4. A thread makes a block.
/// `isShort`: draws are stored in 32 bits (codegen/short_arrays.h).
extern "C" __global__ void kelpie_draw_philox(uint32_t key, uint64_t position, int64_t count, int64_t isShort,
                                              void* out) {
  kelpie::followEarlierLaunches();
  using namespace kelpie;
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
  KELPIE_UNROLL
  for (int k = 0; k < 4; ++k) c[k] >>= 1;
  const int64_t at = int64_t(block * 4 - position);  // of the first word; the first block may begin before 0
  if (isShort) {
    storeDraws(c, at, count, static_cast<uint32_t*>(out));
  } else {
    storeDraws(c, at, count, static_cast<int64_t*>(out));
  }
}

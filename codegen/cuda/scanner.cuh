// The scanner: one block that turns the folds of all tiles into their prefixes, while the others work.
//
// Every tile publishes the fold of its own elements, and later asks for the fold of all lower tiles. In
// between, a warp of the scanner has read the folds, 32 tiles at once and some groups of 32 ahead, scanned
// them in order by one fixed tree a group, and published a prefix for each tile. So a tile waits for two
// trips through memory, whatever the number of tiles below it, and polls a word of its own: where each tile
// looked back at its neighbours, they all polled the same words, and a scan of 2^27 float32 on an H200
// reached 80 % of copy bandwidth; with a scanner it reaches 90 %. Sums are rounded the same way in every run.
//
// The block that comes first is the scanner, so it runs before any tile waits for it; it takes no tile. A
// launch of one tile has none. Levels as in look_back.cuh; each has a warp of the scanner.
#pragma once

#include "look_back.cuh"

namespace kelpie {

/// Order numbers of tiles for blocks that work on one tile each: as they come, so that all lower tiles are in
/// work or done. -1: this block is the scanner. Contains a barrier; `shared` is free after the next one.
KELPIE_DEVICE int64_t takeTile(const Launch& launch, uint32_t& shared) {
  if (threadIdx.x == 0) shared = atomicInc(&launch.counters[0], gridDim.x - 1);
  __syncthreads();
  return int64_t(shared) - (gridDim.x > 1 ? 1 : 0);
}

/// The same for blocks that work on one tile after the other; behind the last tile the number is no tile. Not
/// to be asked for before the tile in work is done: a tile that waits its turn makes all higher ones wait for
/// it.
struct TileQueue {
  /// A block asks until it gets a number that is no tile, and no more; the counter is zero again when all
  /// have. (The scanner, which asks once, stands for tile -1.)
  static __device__ __forceinline__ int64_t take(const Launch& launch, uint32_t& shared) {
    if (threadIdx.x == 0) shared = atomicInc(&launch.counters[0], uint32_t(launch.tiles) + gridDim.x - 1);
    __syncthreads();
    return int64_t(shared) - (gridDim.x > 1 ? 1 : 0);
  }
  /// Behind the tile in work.
  static __device__ __forceinline__ int64_t next(const Launch& launch, uint32_t& shared) {
    __syncthreads();
    return take(launch, shared);
  }
};

/// Inclusive fold of the carries of the lanes, in order. Bits of `heads` mark lanes in which a segment
/// begins.
template <class L>
KELPIE_DEVICE typename L::Carry foldLanes(typename L::Carry carry, uint32_t heads) {
  const int lane = laneIndex();
  const uint32_t upTo = heads & ((2u << lane) - 1);
  const int nearestHead = upTo != 0 ? 31 - __clz(upTo) : -64;
  KELPIE_UNROLL
  for (int d = 1; d < 32; d *= 2) {
    const typename L::Carry left = shuffleUp(carry, d);
    if (lane >= d) carry = L::merge(left, carry, L::kSegmented && nearestHead > lane - d);
  }
  return carry;
}

/// Publishes the prefixes of all tiles of the launch. Called by one warp of the scanner.
template <class L>
KELPIE_DEVICE void scanTiles(const States<typename L::Carry>& states) {
  using Carry = typename L::Carry;
  constexpr int kAhead = 4;  // groups of 32 tiles in flight
  const int lane = laneIndex();
  const int64_t tiles = states.tiles;
  Carry base = L::start();  // what lies below the first group in flight
  int published = 0;        // tiles of that group
  StateWord word[kAhead];
  KELPIE_UNROLL
  for (int k = 0; k < kAhead; ++k) {
    word[k].tag = ~states.epoch << 3;
    word[k].payload[0] = word[k].payload[1] = word[k].payload[2] = 0;
  }
  int64_t first = 0;
  while (first < tiles) {
    KELPIE_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const int64_t tile = first + 32 * k + lane;
      if (!states.present(word[k]) && tile < tiles) word[k] = states.tileWord(tile);
    }
    for (int step = 0; step < kAhead; ++step) {
      const bool here = states.present(word[0]);
      const uint32_t missing = ~__ballot_sync(kFullWarp, here);
      const int known = missing == 0 ? 32 : __ffs(missing) - 1;
      if (known == published) break;
      Carry carry = L::start();
      if (here) carry = states.tileCarry(word[0], first + lane);
      const uint32_t heads =
          L::kSegmented ? __ballot_sync(kFullWarp, here && States<Carry>::headOf(word[0])) : 0;
      carry = foldLanes<L>(carry, heads);
      Carry lower = shuffleUp(carry, 1);
      lower = lane == 0 ? base : L::merge(base, lower, L::kSegmented && (heads & ((1u << lane) - 1)) != 0);
      if (lane >= published && lane < known) states.publishPrefix(first + lane, lower);
      published = known;
      if (known < 32) break;
      base = L::merge(base, shuffleFrom(carry, 31), L::kSegmented && heads != 0);
      published = 0;
      first += 32;
      KELPIE_UNROLL
      for (int k = 0; k + 1 < kAhead; ++k) word[k] = word[k + 1];
      word[kAhead - 1].tag = ~states.epoch << 3;
    }
    if (first + published >= tiles) break;
  }
}

/// The fold of all tiles below one; waits for it. Called by one thread. A single tile has no scanner to ask.
template <class L>
KELPIE_DEVICE typename L::Carry awaitPrefix(const States<typename L::Carry>& states, int64_t tile) {
  if (tile == 0) return L::start();
  StateWord word;
  do {
    word = states.prefixWord(tile);
  } while (!states.present(word));
  return states.prefixCarry(word, tile);
}

}  // namespace kelpie

// The scanner: one block that turns the folds of all tiles into their prefixes, while the others work.
//
// Every tile publishes the fold of its own elements, and later asks for the fold of all lower tiles. In
// between, a warp of the scanner has read the folds, 32 tiles at once and some groups of 32 ahead (128 at
// once where tiles are short), scanned them in order by one fixed tree a group, and published a prefix for
// each tile. So a tile waits for two trips through memory, whatever the number of tiles below it, and polls a
// word of its own: where each tile looked back at its neighbours, they all polled the same words, and a scan
// of 2^27 float32 on an H200 reached 80 % of copy bandwidth; with a scanner it reaches 90 %. Sums are rounded
// the same way in every run. In a segmented scan with one word to carry a tile in which a segment begins
// tells the next one by itself, and the scanner passes over it: scans of short segments took 4 to 10 % less
// time.
//
// The first block is the scanner, so it runs before any tile waits for it; it takes no tile. A launch of one
// tile has none. Levels as in look_back.cuh; each has a warp of the scanner.
#pragma once

#include "look_back.cuh"

namespace kelpie {

/// The number of this block's tile; -1: this block is the scanner. Blocks start in the order of their
/// numbers, so all lower tiles are in work or done (CUB's scans rely on that, too).
KELPIE_DEVICE int64_t tileOfBlock() { return int64_t(blockIdx.x) - (gridDim.x > 1 ? 1 : 0); }
/// The same where there are blocks behind those of the tiles.
KELPIE_DEVICE int64_t tileOfBlock(int64_t tiles) { return int64_t(blockIdx.x) - (tiles > 1 ? 1 : 0); }

/// Whether tiles in which a segment begins tell the next ones. Since they do, segmented scans of one float64
/// column take a tenth less time on an H200; those of four float32 columns, of two words, took a tenth more
/// (0.348 ms, not 0.314).
template <class L>
constexpr bool kTells = States<typename L::Carry>::kParts == 1 && L::kRestarts;

/// kNumbered: tiles come so fast, where they need not wait, that the scanner would be the last to end unless
/// it looked further ahead.
template <class L, bool kNumbered>
KELPIE_DEVICE void scanGroups(const States<typename L::Carry>& states) {
  using Carry = typename L::Carry;
  using Entry = typename States<Carry>::Entry;
  // Groups of 32 tiles in flight. Scans of numbers times one of their segment, of 1024 each, took 0.49 ms
  // with 4 where tiles had 4096 items, 0.42 with 8; scans of segments of 2^20, with tiles of 8192, 0.29 and
  // 0.32.
  constexpr int kParts = States<Carry>::kParts;
  constexpr int kAhead = kNumbered && L::kRestarts && kParts == 1 ? 8 : kParts <= 2 ? 4 : 2;
  const int lane = laneIndex();
  const int64_t tiles = states.tiles;
  Carry base = L::start();  // what lies below the first group in flight
  bool told = false;        // ... and the last tile there has published that itself
  int published = 0;        // tiles of that group
  Entry entry[kAhead];
  KELPIE_UNROLL
  for (int k = 0; k < kAhead; ++k) entry[k] = states.nothing();
  int64_t first = 0;
  while (first < tiles) {
    KELPIE_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const int64_t tile = first + 32 * k + lane;
      if (!states.present(entry[k]) && tile < tiles) entry[k] = states.tileEntry(tile);
    }
    KELPIE_NO_UNROLL  // a third of the time that it takes to compile a small scan
        for (int step = 0; step < kAhead; ++step) {
      const bool here = states.present(entry[0]);
      const uint32_t missing = ~__ballot_sync(kFullWarp, here);
      const int known = missing == 0 ? 32 : __ffs(missing) - 1;
      if (known == published) break;
      Carry carry = L::start();
      if (here) carry = states.carryOf(entry[0]);
      const uint32_t heads = L::kSegmented ? __ballot_sync(kFullWarp, here && states.headOf(entry[0])) : 0;
      if (kTells<L> && published == 0 && heads == kFullWarp) {
        if (lane == 0 && !told) states.publishPrefix(first, base);
        base = shuffleFrom(carry, 31);
      } else {
        carry = foldLanes<L>(carry, heads);
        Carry lower = shuffleUp(carry, 1);
        lower = lane == 0 ? base : L::merge(base, lower, L::kSegmented && (heads & ((1u << lane) - 1)) != 0);
        const bool isTold = kTells<L> && (lane == 0 ? told : (heads >> (lane - 1) & 1) != 0);
        if (lane >= published && lane < known && !isTold) states.publishPrefix(first + lane, lower);
        published = known;
        if (known < 32) break;
        base = L::merge(base, shuffleFrom(carry, 31), L::kSegmented && heads != 0);
      }
      told = kTells<L> && heads >> 31 != 0;
      published = 0;
      first += 32;
      KELPIE_UNROLL
      for (int k = 0; k + 1 < kAhead; ++k) entry[k] = entry[k + 1];
      entry[kAhead - 1] = states.nothing();
    }
    if (first + published >= tiles) break;
  }
}

/// The same, without segments, where tiles are so short that they would wait for the scanner, which takes 10
/// ns for each: a lane has four tiles, which it folds in order before the lanes do, and what comes next is
/// read meanwhile. Offsets of nested ranges, in tiles of 1024, take 0.63 to 0.86 of the time on an H200
/// (bench/results/h200-2026-11-26-scanner.txt). Long tiles wait for memory, and for a longer way of this
/// scanner: scans of 2^27 float32 1.06.
template <class L>
KELPIE_DEVICE void scanShortTiles(const States<typename L::Carry>& states) {
  using Carry = typename L::Carry;
  using Entry = typename States<Carry>::Entry;
  constexpr int kOwn = 4, kTogether = 32 * kOwn;
  const int lane = laneIndex();
  const int64_t tiles = states.tiles;
  Carry base = L::start();  // what lies below these tiles
  int published = 0;        // of these
  Entry entry[kOwn], next[kOwn];
  KELPIE_UNROLL
  for (int k = 0; k < kOwn; ++k) entry[k] = next[k] = states.nothing();
  for (int64_t first = 0; first + published < tiles;) {
    const int64_t own = first + kOwn * lane;
    KELPIE_UNROLL
    for (int k = 0; k < kOwn; ++k)
      if (!states.present(entry[k]) && own + k < tiles) entry[k] = states.tileEntry(own + k);
    KELPIE_UNROLL
    for (int k = 0; k < kOwn; ++k)
      if (!states.present(next[k]) && own + kTogether + k < tiles)
        next[k] = states.tileEntry(own + kTogether + k);
    int here = 0;  // of this lane's, from the first one on
    KELPIE_UNROLL
    for (int k = 0; k < kOwn; ++k) here += here == k && states.present(entry[k]);
    const uint32_t missing = __ballot_sync(kFullWarp, here < kOwn);
    const int whole = missing == 0 ? 32 : __ffs(missing) - 1;  // lanes that have all of theirs
    const int known = kOwn * whole + (whole < 32 ? shuffleFrom(here, whole) : 0);
    if (known == published) continue;
    Carry carry = L::start();
    KELPIE_UNROLL
    for (int k = 0; k < kOwn; ++k)
      if (k < here)
        carry = k == 0 ? states.carryOf(entry[k]) : L::merge(carry, states.carryOf(entry[k]), false);
    Carry lower = shuffleUp(foldLanes<L>(carry, 0), 1);
    lower = lane == 0 ? base : L::merge(base, lower, false);
    KELPIE_UNROLL
    for (int k = 0; k < kOwn; ++k) {
      const int place = kOwn * lane + k;
      if (place >= published && place < known) states.publishPrefix(first + place, lower);
      if (place < known) lower = L::merge(lower, states.carryOf(entry[k]), false);
    }
    published = known;
    if (known < kTogether) continue;
    base = shuffleFrom(lower, 31);
    published = 0;
    first += kTogether;
    KELPIE_UNROLL
    for (int k = 0; k < kOwn; ++k) {
      entry[k] = next[k];
      next[k] = states.nothing();
    }
  }
}

/// Publishes the prefixes of all tiles of the launch, of so many items each. Called by one warp of the
/// scanner.
template <class L, int kItems, bool kNumbered = false>
KELPIE_DEVICE void scanTiles(const States<typename L::Carry>& states) {
  // Of carries of two words the registers of a kernel do not suffice for the entries of several tiles.
  constexpr bool kShort = kItems <= 1024 && !L::kSegmented && States<typename L::Carry>::kParts == 1;
  if constexpr (kShort) {
    scanShortTiles<L>(states);
  } else {
    scanGroups<L, kNumbered>(states);
  }
}

/// The fold of all tiles below one; waits for it. Called by one thread. A single tile has no scanner to ask.
template <class L>
KELPIE_DEVICE typename L::Carry awaitPrefix(const States<typename L::Carry>& states, int64_t tile) {
  if (tile == 0) return L::start();
  typename States<typename L::Carry>::Entry entry;
  do {
    entry = states.prefixEntry(tile);
  } while (!states.present(entry));
  return states.carryOf(entry);
}

/// Publishes the fold of a tile. Where all parts restart and a segment begins in it, that is what lies below
/// the next tile, too, which then need not wait for the scanner. Called by one thread.
template <class L>
KELPIE_DEVICE void publish(const States<typename L::Carry>& states, int64_t tile,
                           const typename L::Carry& carry, bool head) {
  if (states.tiles == 1) return;
  states.publishTile(tile, carry, head);
  if (kTells<L> && head && tile + 1 < states.tiles) states.publishPrefix(tile + 1, carry);
}

}  // namespace kelpie

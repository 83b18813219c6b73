// Single-pass prefix over tiles by decoupled look-back (Merrill and Garland), with reproducible rounding.
//
// Each tile publishes the fold of its own elements (Aggregate), finds the nearest lower tile that knows the
// fold of everything up to its end (Prefix), and folds the aggregates in between onto it *in index order*.
// The prefix of a tile is therefore ((a0 + a1) + a2) + ... whatever was finished when: the same bits in every
// run. Operators whose result does not depend on association (L::kExact) are folded as a tree instead.
//
// L is a level: { Carry; bool kSegmented, kRestarts, kExact; Carry merge(Carry a, Carry b, bool head) },
// where `head` says that a segment begins in b, so that the segmented parts of a do not count. kRestarts: all
// parts are segmented; a tile with a head then knows its prefix at once.
#pragma once

#include "base.cuh"

namespace kelpie {

enum State : uint32_t { kAbsent = 0, kAggregate = 1, kPrefix = 2 };

/// One write, one read: 16 bytes are moved by single instructions, so a tag never comes with another's
/// payload. Vectors of four words, because the assembler of CUDA 13.0 narrows a 128-bit relaxed load to the
/// words that are used: two loads, between which the writer may come (seen on an H200: torn prefixes).
KELPIE_DEVICE void storeWord(StateWord* place, const StateWord& word) {
#if defined(KELPIE_EMULATION)
  *place = word;
#else
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(place), "r"(word.payload[0]),
               "r"(word.payload[1]), "r"(word.payload[2]), "r"(word.tag)
               : "memory");
#endif
}
KELPIE_DEVICE StateWord loadWord(const StateWord* place) {
#if defined(KELPIE_EMULATION)
  emulation::pause();
  return *place;
#else
  StateWord word;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.payload[0]), "=r"(word.payload[1]), "=r"(word.payload[2]), "=r"(word.tag)
               : "l"(place)
               : "memory");
  return word;
#endif
}

/// The states of one level: a word a tile, and for carries of more than 12 bytes two values a tile.
template <class Carry>
struct States {
  static constexpr bool kPacked = sizeof(Carry) <= 12;
  StateWord* words;
  Words<Carry>* values;  ///< unless packed: aggregates, then prefixes
  int64_t tiles;
  uint32_t epoch;  ///< tells this launch from earlier ones

  __device__ States(const Launch& launch, int level, int64_t valuesAt)
      : words(launch.states + level * launch.tiles),
        values(reinterpret_cast<Words<Carry>*>(launch.values + valuesAt)),
        tiles(launch.tiles),
        epoch(launch.epoch) {}

  __device__ void publish(int64_t tile, State state, const Carry& carry, bool head) const {
    StateWord word;
    Words<Carry> bits;
    bits.value = carry;
    KELPIE_UNROLL
    for (int k = 0; k < 3; ++k) {
      word.payload[k] =
          kPacked && k < int(sizeof(bits.word) / 4) ? bits.word[k < int(sizeof(bits.word) / 4) ? k : 0] : 0;
    }
    word.tag = epoch << 3 | uint32_t(head) << 2 | state;
    if (!kPacked) {
      values[(state == kPrefix ? tiles : 0) + tile] = bits;
      __threadfence();
    }
    storeWord(words + tile, word);
  }
  /// The state of a tile, kAbsent when it has published nothing in this launch.
  __device__ State read(int64_t tile, Carry& carry, bool& head) const {
    const StateWord word = loadWord(words + tile);
    if (word.tag >> 3 != epoch) return kAbsent;
    const State state = State(word.tag & 3);
    head = word.tag >> 2 & 1;
    if (kPacked) {
      Words<Carry> bits;
      KELPIE_UNROLL
      for (int k = 0; k < int(sizeof(bits.word) / 4); ++k) bits.word[k] = word.payload[k < 3 ? k : 0];
      carry = bits.value;
    } else {
      __threadfence();
      const volatile uint32_t* source = values[(state == kPrefix ? tiles : 0) + tile].word;
      Words<Carry> bits;
      KELPIE_UNROLL
      for (int k = 0; k < int(sizeof(bits.word) / 4); ++k) bits.word[k] = source[k];
      carry = bits.value;
    }
    return state;
  }
};

/// Folds lanes from..31 in order; lane `from` counts as a finished prefix. All lanes get the result.
template <class L>
KELPIE_DEVICE typename L::Carry foldLanes(typename L::Carry carry, uint32_t heads, int from) {
  using Carry = typename L::Carry;
  if (L::kExact) {
    // Tree over lane pairs at distance 1, 2, 4, ...: lane 31 ends with all lanes.
    const int lane = laneIndex();
    KELPIE_UNROLL
    for (int d = 1; d < 32; d *= 2) {
      const Carry left = shuffleUp(carry, d);
      // Lanes lane-d+1..lane are folded so far; a head among those after `from` cuts off what comes before.
      const bool head =
          L::kSegmented && (heads & ((2u << lane) - 1) & ~((2u << (lane - d < 0 ? 0 : lane - d)) - 1)) != 0;
      if (lane - d >= from) carry = L::merge(left, carry, head);
    }
    return shuffleFrom(carry, 31);
  }
  Carry folded = shuffleFrom(carry, from);
  for (int k = from + 1; k < 32; ++k) {
    folded = L::merge(folded, shuffleFrom(carry, k), L::kSegmented && (heads >> k & 1));
  }
  return folded;
}

/// Publishes `own`, the fold of tile `tile`, and gives the fold of all lower tiles. Called by all lanes of
/// one warp with equal arguments. `head`: a segment begins in the tile. All lower tiles must have started.
template <class L>
KELPIE_DEVICE typename L::Carry lookBack(const States<typename L::Carry>& states, int64_t tile,
                                         const typename L::Carry& own, bool head) {
  using Carry = typename L::Carry;
  const int lane = laneIndex();
  if (tile == 0) {
    if (lane == 0) states.publish(0, kPrefix, own, head);
    return L::start();
  }
  const bool known = L::kRestarts && head;
  if (lane == 0) states.publish(tile, known ? kPrefix : kAggregate, own, head);

  // Back, a window of 32 tiles at a time, to one that holds a prefix. Lane 31 has the nearest tile.
  int64_t last = tile - 1;
  Carry folded = L::start();
  bool started = false;
  while (last < tile) {
    const int64_t index = last - 31 + lane;
    Carry carry = L::start();
    bool laneHead = false;
    State state = kAbsent;
    uint32_t prefixes;
    int nearest;
    do {
      if (index >= 0 && state != kPrefix) state = states.read(index, carry, laneHead);
      const uint32_t present = __ballot_sync(kFullWarp, state != kAbsent);
      prefixes = __ballot_sync(kFullWarp, state == kPrefix);
      nearest = prefixes != 0 ? 31 - __clz(prefixes) : -1;
      // Every tile above the nearest prefix must have published. (Tile 0 publishes a prefix.)
      if (nearest == 31 || (~present >> (nearest + 1)) == 0) break;
    } while (true);
    const uint32_t heads = __ballot_sync(kFullWarp, laneHead);
    if (prefixes != 0) {
      folded = foldLanes<L>(carry, heads, nearest);
      started = true;
    } else if (started) {
      // A later window without a prefix: continue from what was folded.
      folded = L::merge(folded, shuffleFrom(carry, 0), L::kSegmented && (heads & 1));
      for (int k = 1; k < 32; ++k) {
        folded = L::merge(folded, shuffleFrom(carry, k), L::kSegmented && (heads >> k & 1));
      }
    }
    last += started ? 32 : -32;
  }
  if (!known && lane == 0) states.publish(tile, kPrefix, L::merge(folded, own, head), head);
  return folded;
}

}  // namespace kelpie

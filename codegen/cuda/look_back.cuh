// State words: what tiles and ranges publish of their folds; and, for ranges, look-back.
//
// A block publishes the fold of its own elements in a word of 16 bytes, whose tag names the launch, so that
// words are never cleared between launches. What lies below a *tile* comes from the scanner (scanner.cuh).
// *Ranges* (segment_ranges.cuh), which are few, find it themselves when they are done (decoupled look-back,
// Merrill and Garland), in two steps, with reproducible rounding: they are taken 32 at a time to groups. A
// warp reads the folds of the lower ranges of its group at once and folds them by one fixed tree. The last of
// a group so knows the fold of the group, and publishes it (Aggregate) before it knows what lies below; with
// the nearest group whose Prefix is known, and the aggregates in between folded onto it in order, every range
// knows its own prefix. No association depends on which block was faster: the same bits in every run.
//
// L is a level: { Carry; bool kSegmented, kRestarts; Carry start(), merge(Carry a, Carry b, bool head) },
// where `head` says that a segment begins in b, so that the segmented parts of a do not count. kRestarts: all
// parts are segmented; nothing below a head is waited for.
#pragma once

#include "base.cuh"

namespace kelpie {

enum State : uint32_t { kAbsent = 0, kAggregate = 1, kPrefix = 2 };
constexpr int kGroup = 32;  ///< ranges of a group, groups that are looked at

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

/// The states of one level: a word for the fold of each tile, then one for the prefix of each tile (or of
/// each group of ranges); and for carries of more than 12 bytes values beside the words.
template <class Carry>
struct States {
  static constexpr bool kPacked = sizeof(Carry) <= 12;
  StateWord* words;
  Words<Carry>* values;  ///< unless packed: 2 * tiles
  int64_t tiles;
  uint32_t epoch;  ///< tells this launch from earlier ones

  __device__ States(const Launch& launch, int level, int64_t valuesAt)
      : words(launch.states + level * 2 * launch.tiles),
        values(reinterpret_cast<Words<Carry>*>(launch.values + valuesAt)),
        tiles(launch.tiles),
        epoch(launch.epoch) {}

  __device__ void publishTile(int64_t tile, const Carry& carry, bool head) const {
    publish(tile, tile, kAggregate, carry, head);
  }
  /// What lies below a tile.
  __device__ void publishPrefix(int64_t tile, const Carry& carry) const {
    publish(tiles + tile, tiles + tile, kPrefix, carry, false);
  }
  __device__ void publishGroup(int64_t group, State state, const Carry& carry, bool head) const {
    publish(tiles + group, tiles + 2 * group + (state == kPrefix ? 1 : 0), state, carry, head);
  }

  __device__ StateWord tileWord(int64_t tile) const { return loadWord(words + tile); }
  __device__ StateWord prefixWord(int64_t tile) const { return loadWord(words + tiles + tile); }
  /// Whether a word has been published in this launch.
  __device__ bool present(const StateWord& word) const { return word.tag >> 3 == epoch; }
  static __device__ bool headOf(const StateWord& word) { return word.tag >> 2 & 1; }
  __device__ Carry tileCarry(const StateWord& word, int64_t tile) const { return carryOf(word, tile); }
  __device__ Carry prefixCarry(const StateWord& word, int64_t tile) const {
    return carryOf(word, tiles + tile);
  }

  /// kAbsent when nothing has been published in this launch.
  __device__ State readTile(int64_t tile, Carry& carry, bool& head) const {
    return read(tile, tile, tile, carry, head);
  }
  __device__ State readGroup(int64_t group, Carry& carry, bool& head) const {
    return read(tiles + group, tiles + 2 * group, tiles + 2 * group + 1, carry, head);
  }

 private:
  __device__ void publish(int64_t word, int64_t value, State state, const Carry& carry, bool head) const {
    StateWord content;
    Words<Carry> bits;
    bits.value = carry;
    KELPIE_UNROLL
    for (int k = 0; k < 3; ++k) {
      content.payload[k] =
          kPacked && k < int(sizeof(bits.word) / 4) ? bits.word[k < int(sizeof(bits.word) / 4) ? k : 0] : 0;
    }
    content.tag = epoch << 3 | uint32_t(head) << 2 | state;
    if (!kPacked) {
      values[value] = bits;
      __threadfence();
    }
    storeWord(words + word, content);
  }
  /// `word` is present; its carry, if not packed, is values[value].
  __device__ Carry carryOf(const StateWord& word, int64_t value) const {
    Words<Carry> bits;
    if (kPacked) {
      KELPIE_UNROLL
      for (int k = 0; k < int(sizeof(bits.word) / 4); ++k) bits.word[k] = word.payload[k < 3 ? k : 0];
    } else {
      __threadfence();
      const volatile uint32_t* source = values[value].word;
      KELPIE_UNROLL
      for (int k = 0; k < int(sizeof(bits.word) / 4); ++k) bits.word[k] = source[k];
    }
    return bits.value;
  }
  __device__ State read(int64_t word, int64_t aggregate, int64_t prefix, Carry& carry, bool& head) const {
    const StateWord content = loadWord(words + word);
    if (!present(content)) return kAbsent;
    const State state = State(content.tag & 3);
    head = headOf(content);
    carry = carryOf(content, state == kPrefix ? prefix : aggregate);
    return state;
  }
};

/// The fold of all ranges (here: tiles) below one that has published `own`. Called by all lanes of one warp
/// with equal arguments. `head`: a segment begins in it. All lower ones must have started.
template <class L>
KELPIE_DEVICE typename L::Carry awaitLower(const States<typename L::Carry>& states, int64_t tile,
                                           const typename L::Carry& own, bool head) {
  using Carry = typename L::Carry;
  const int lane = laneIndex();
  const int64_t group = tile / kGroup, first = group * kGroup;
  const int place = int(tile - first);
  if (tile == 0) return L::start();

  // The tiles of the group by lane, own included; lane 31 has the nearest lower group.
  Carry carry = L::start();
  bool laneHead = false, known = lane >= place;
  if (lane == place) {
    carry = own;
    laneHead = head;
  }
  Carry groupCarry = L::start();
  bool groupHead = false;
  State groupState = group - kGroup + lane < 0 ? kPrefix : kAbsent;  // below the first: nothing, and known
  uint32_t lower;                                                    // heads of lower tiles
  bool settled;                                                      // groups do not count
  do {
    if (!known) known = states.readTile(first + lane, carry, laneHead) != kAbsent;
    if (groupState != kPrefix) groupState = states.readGroup(group - kGroup + lane, groupCarry, groupHead);
    const uint32_t present = __ballot_sync(kFullWarp, known);
    lower = L::kSegmented ? __ballot_sync(kFullWarp, laneHead && lane < place) : 0;
    settled = L::kRestarts && lower != 0;
    // Nothing below a head counts, if the head is the nearest: all above must be present.
    if ((~present >> (settled ? 31 - __clz(lower) : 0)) == 0) break;
  } while (true);

  const uint32_t heads = L::kSegmented ? __ballot_sync(kFullWarp, laneHead) : 0;
  const uint32_t upTo = heads & ((2u << lane) - 1);
  const int nearestHead = upTo != 0 ? 31 - __clz(upTo) : -64;
  KELPIE_UNROLL
  for (int d = 1; d < 32; d *= 2) {
    const Carry left = shuffleUp(carry, d);
    if (lane >= d) carry = L::merge(left, carry, L::kSegmented && nearestHead > lane - d);
  }
  const Carry tiles = shuffleFrom(carry, place > 0 ? place - 1 : 0);
  const bool last = place == kGroup - 1;
  if (last && lane == 31) {
    states.publishGroup(group, L::kRestarts && heads != 0 ? kPrefix : kAggregate, carry, heads != 0);
  }
  if (settled) return tiles;

  uint32_t prefixes;
  do {
    if (groupState != kPrefix) groupState = states.readGroup(group - kGroup + lane, groupCarry, groupHead);
    const uint32_t present = __ballot_sync(kFullWarp, groupState != kAbsent);
    prefixes = __ballot_sync(kFullWarp, groupState == kPrefix);
    if (prefixes != 0 && (prefixes >> 31 != 0 || (~present >> (31 - __clz(prefixes))) == 0)) break;
  } while (true);
  const int nearest = 31 - __clz(prefixes);
  const uint32_t groupHeads = L::kSegmented ? __ballot_sync(kFullWarp, groupHead) : 0;
  Carry below = shuffleFrom(groupCarry, nearest);
  for (int k = nearest + 1; k < 32; ++k) {
    below = L::merge(below, shuffleFrom(groupCarry, k), L::kSegmented && (groupHeads >> k & 1));
  }
  if (last && lane == 31 && !(L::kRestarts && heads != 0)) {
    states.publishGroup(group, kPrefix, L::merge(below, carry, heads != 0), heads != 0);
  }
  return place == 0 ? below : L::merge(below, tiles, lower != 0);
}

/// Publishes `own`, the fold of tile `tile`, and gives the fold of all lower ones.
template <class L>
KELPIE_DEVICE typename L::Carry lookBack(const States<typename L::Carry>& states, int64_t tile,
                                         const typename L::Carry& own, bool head) {
  if (laneIndex() == 0) states.publishTile(tile, own, head);
  return awaitLower<L>(states, tile, own, head);
}

}  // namespace kelpie

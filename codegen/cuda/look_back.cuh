// State words: what tiles and ranges publish of their folds; and, for ranges, look-back.
//
// A block publishes the fold of its own elements in a word of 16 bytes, whose tag names the launch, so that
// words are never cleared between launches. What lies below a *tile* comes from the scanner (scanner.cuh).
// Blocks that work on *ranges* (segment_ranges.cuh), which are few, find it themselves when they are done
// (decoupled look-back, Merrill and Garland; blocks start in the order of their numbers), in two steps, with
// reproducible rounding: they are taken 32 at a time to groups. A
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

/// The states of one level: for each tile its fold, then for each tile (or each group of ranges) a prefix. A
/// carry takes as many words as it needs, each with a tag of its own.
template <class Carry>
struct States {
  static constexpr int kParts = (sizeof(Carry) + 11) / 12;
  StateWord* words;
  int64_t tiles;
  uint32_t epoch;  ///< tells this launch from earlier ones

  /// What is published at one place.
  struct Entry {
    StateWord part[kParts];
  };

  /// `before`: words that other levels use for each tile.
  __device__ States(const Launch& launch, int before)
      : words(launch.states + before * launch.tiles), tiles(launch.tiles), epoch(launch.epoch) {}

  __device__ void publishTile(int64_t tile, const Carry& carry, bool head) const {
    publish(tile, kAggregate, carry, head);
  }
  /// What lies below a tile.
  __device__ void publishPrefix(int64_t tile, const Carry& carry) const {
    publish(tiles + tile, kPrefix, carry, false);
  }
  __device__ void publishGroup(int64_t group, State state, const Carry& carry, bool head) const {
    publish(tiles + group, state, carry, head);
  }

  __device__ Entry tileEntry(int64_t tile) const { return load(tile); }
  __device__ Entry prefixEntry(int64_t tile) const { return load(tiles + tile); }
  /// Never present.
  __device__ Entry nothing() const {
    Entry entry;
    KELPIE_UNROLL
    for (int k = 0; k < kParts; ++k) {
      entry.part[k].payload[0] = entry.part[k].payload[1] = entry.part[k].payload[2] = 0;
      entry.part[k].tag = ~epoch << 3;
    }
    return entry;
  }
  /// Whether it has been published in this launch, all parts at the same time.
  __device__ bool present(const Entry& entry) const {
    bool all = entry.part[0].tag >> 3 == epoch;
    KELPIE_UNROLL
    for (int k = 1; k < kParts; ++k) all = all && entry.part[k].tag == entry.part[0].tag;
    return all;
  }
  static __device__ bool headOf(const Entry& entry) { return entry.part[0].tag >> 2 & 1; }
  static __device__ Carry carryOf(const Entry& entry) {
    Words<Carry> bits;
    constexpr int kWords = sizeof(bits.word) / 4;
    KELPIE_UNROLL
    for (int k = 0; k < kWords; ++k) bits.word[k] = entry.part[k / 3].payload[k % 3];
    return bits.value;
  }

  /// kAbsent when nothing has been published in this launch.
  __device__ State readTile(int64_t tile, Carry& carry, bool& head) const { return read(tile, carry, head); }
  __device__ State readGroup(int64_t group, Carry& carry, bool& head) const {
    return read(tiles + group, carry, head);
  }

 private:
  __device__ void publish(int64_t place, State state, const Carry& carry, bool head) const {
    Words<Carry> bits;
    bits.value = carry;
    constexpr int kWords = sizeof(bits.word) / 4;
    KELPIE_UNROLL
    for (int k = 0; k < kParts; ++k) {
      StateWord content;
      KELPIE_UNROLL
      for (int j = 0; j < 3; ++j)
        content.payload[j] = 3 * k + j < kWords ? bits.word[3 * k + j < kWords ? 3 * k + j : 0] : 0;
      content.tag = epoch << 3 | uint32_t(head) << 2 | state;
      storeWord(words + place * kParts + k, content);
    }
  }
  __device__ Entry load(int64_t place) const {
    Entry entry;
    KELPIE_UNROLL
    for (int k = 0; k < kParts; ++k) entry.part[k] = loadWord(words + place * kParts + k);
    return entry;
  }
  __device__ State read(int64_t place, Carry& carry, bool& head) const {
    const Entry entry = load(place);
    if (!present(entry)) return kAbsent;
    head = headOf(entry);
    carry = carryOf(entry);
    return State(entry.part[0].tag & 3);
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

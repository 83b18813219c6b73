// State words: what tiles and ranges publish of their folds; and, for ranges, look-back.
//
// A block publishes the fold of its own elements in a word of 16 bytes, whose tag names the launch, so that
// words are never cleared between launches. What lies below a *tile* comes from the scanner (scanner.cuh).
// Blocks that work on *ranges* (segment_ranges.cuh) find it themselves when they
// are done (decoupled look-back, Merrill and Garland; blocks start in the order of their numbers), in two
// steps, with reproducible rounding: they are taken 32 at a time to groups. A warp reads the folds of the
// lower ranges of its group at once and folds them by one fixed tree. The last of a group so knows the fold
// of the group, and publishes it; the folds of lower groups, of which there are few, are read and folded
// likewise, 32 of them at once. No association depends on which block was faster: the same bits in every run.
// Words are asked for only where they count: the folds of groups lie so near to each other that all blocks
// asking for them at once took an H200 up to 4 us.
//
// L is a level: { Carry; bool kSegmented, kRestarts; Carry start(), merge(Carry a, Carry b, bool head) },
// where `head` says that a segment begins in b, so that the segmented parts of a do not count. kRestarts: all
// parts are segmented; nothing below a head is waited for.
#pragma once

#include "base.cuh"

namespace kelpie {

enum State : uint32_t { kAbsent = 0, kAggregate = 1, kPrefix = 2 };
constexpr int kGroup = 32;  ///< ranges of a group, groups read at once

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
  /// In the place of a prefix: ranges have none.
  __device__ void publishGroup(int64_t group, const Carry& carry, bool head) const {
    publish(tiles + group, kAggregate, carry, head);
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

  /// Of a tile, or behind all tiles of a group; kAbsent when nothing has been published in this launch.
  __device__ State read(int64_t place, Carry& carry, bool& head) const {
    const Entry entry = load(place);
    if (!present(entry)) return kAbsent;
    head = headOf(entry);
    carry = carryOf(entry);
    return State(entry.part[0].tag & 3);
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

KELPIE_DEVICE uint32_t lanesBelow(int lane) { return lane < 32 ? (1u << lane) - 1 : kFullWarp; }

/// Waits for what the lanes below `place` read: read(carry, head) tells whether it has been published. The
/// others have theirs already. `heads`: lanes in which a segment begins. Gives the inclusive fold, of which
/// that of the lanes below the nearest head below `place` need not be known, where all parts restart.
template <class L, class Read>
KELPIE_DEVICE typename L::Carry awaitLanes(int place, typename L::Carry carry, bool head, uint32_t& heads,
                                           const Read& read) {
  bool known = laneIndex() >= place;
  while (true) {
    if (!known) known = read(carry, head);
    const uint32_t present = __ballot_sync(kFullWarp, known);
    heads = L::kSegmented ? __ballot_sync(kFullWarp, head) : 0;
    const uint32_t lower = heads & lanesBelow(place);
    const int counts = L::kRestarts && lower != 0 ? 31 - __clz(lower) : 0;  // from this lane on
    if ((~present >> counts) == 0) break;
  }
  return foldLanes<L>(carry, heads);
}

/// The fold of all ranges (here: tiles) below one that has published `own`, where it is `needed`; else only
/// what others need is done. Called by all lanes of one warp with equal arguments. `head`: a segment begins
/// in it. All lower ones must have started.
template <class L>
KELPIE_DEVICE typename L::Carry awaitLower(const States<typename L::Carry>& states, int64_t tile,
                                           const typename L::Carry& own, bool head, bool needed) {
  using Carry = typename L::Carry;
  const int lane = laneIndex();
  const int64_t group = tile / kGroup;
  const int place = int(tile % kGroup);
  const bool last = place == kGroup - 1;
  Carry below = L::start();
  if (tile == 0 || (!needed && !last)) return below;
  bool any = false, lowerHead = false;
  // First the lower tiles of the group, then all lower groups: by the same code, which is long.
  int count = place, above = int(group);
  for (int64_t first = group * kGroup;; first = states.tiles + above) {
    const bool here = first == group * kGroup && lane == place;
    uint32_t heads;
    const Carry upTo = awaitLanes<L>(
        count, here ? own : L::start(), here && head, heads,
        [&](Carry& carry, bool& laneHead) { return states.read(first + lane, carry, laneHead) != kAbsent; });
    if (here && last) states.publishGroup(group, upTo, heads != 0);
    const Carry theirs = shuffleFrom(upTo, count > 0 ? count - 1 : 0);
    if (count > 0) below = any ? L::merge(theirs, below, lowerHead) : theirs;
    any |= count > 0;
    lowerHead |= (heads & lanesBelow(count)) != 0;
    if (!needed || above == 0 || (L::kRestarts && lowerHead)) break;
    count = (above - 1) % kGroup + 1;
    above -= count;
  }
  return below;
}

/// Publishes `own`, the fold of tile `tile`, and gives the fold of all lower ones, if it is needed.
template <class L>
KELPIE_DEVICE typename L::Carry lookBack(const States<typename L::Carry>& states, int64_t tile,
                                         const typename L::Carry& own, bool head, bool needed) {
  if (laneIndex() == 0) states.publishTile(tile, own, head);
  return awaitLower<L>(states, tile, own, head, needed);
}

}  // namespace kelpie

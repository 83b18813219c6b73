// Reductions of whole segments by groups of threads, for small inputs whose segments are about equally long.
//
// Every block has the same number of segments, and shares its threads out: each segment that is not empty
// gets an equal, contiguous group of them, of a power of two. The threads of a group take every so many-th
// element, many at once, and fold what they have by a fixed tree. Where a block has more segments than
// threads, each gets a thread, in rounds, several of which are side by side if segments are short. So a
// result waits for two offsets, for the elements, and for nothing else: no place is searched for, and nothing
// comes from other blocks. Where lengths differ too much for that, ranges (segment_ranges.cuh) do the work:
// those of the block alone, if just some of its segments are too long for their groups, and those of the
// whole space, if some block has too many elements; all blocks find that out by themselves. Which way is
// taken depends on the offsets alone, so results are reproducible.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "segment_ranges.cuh"

namespace kelpie {

/// kOfThread: elements that a thread has on the way.
template <class L, int kWarps, int kOfThread>
struct SegmentGroups {
  using Value = typename L::Value;
  static constexpr int kThreads = 32 * kWarps, kAtOnce = kOfThread;
  static constexpr int kPart = kAtOnce < 4 ? kAtOnce : 4;  ///< of these, taken or left together
  static constexpr int kParts = kAtOnce / kPart;
  static constexpr int kUneven = 8;  ///< times as much as all have on average is too much
  struct Shared {
    Value totals[kWarps];
    uint32_t uneven[kWarps], unsuited[kWarps];  ///< threads that have met such blocks, such segments
    int filled[kWarps];                         ///< segments of these threads that are not empty
    uint16_t segments[kThreads];                ///< those that are not empty, if there is one round
  };

  Cut from, to;        ///< of the block
  bool even = true;    ///< no block has too many elements
  bool suited = true;  ///< groups suffice for the segments of the block
  int length = 0;      ///< if there is one round, of segment number threadIdx.x of the block
  int groups;          ///< of a round
  int bits;            ///< log2 of the threads of a group
  bool sideBySide;     ///< a thread works on kParts rounds at once
  /// Of each part of what a thread has on the way: its segment, from the first of the block on, or -1, and
  /// the elements that are left of it, likewise; every 2^bits-th is this thread's. Unless rounds are side by
  /// side, there is one segment, and the first part has all of its elements until they are dealt.
  int number[kParts], first[kParts], end[kParts];
  Value own[kParts];

  /// Takes segments block * together and so on, of `extent` < 2^31 elements. Contains barriers.
  template <class Segments>
  __device__ __forceinline__ SegmentGroups(int64_t block, int64_t blocks, int64_t together,
                                           const Segments& segments, int64_t extent, Shared& shared) {
    const auto cut = [&](int64_t number) {
      const int64_t s = number * together < segments.count ? number * together : segments.count;
      const int64_t begin = segments.begin(s);
      return Cut{s, begin, begin};
    };
    from = cut(block);
    to = cut(block + 1);
    const auto theirs = segments.from(from.segment);
    const int thread = threadIdx.x;
    if (oneRound() && thread < count()) length = int(theirs.begin(thread + 1) - theirs.begin(thread));
    const int most = mostOfThread(extent, blocks);
    KELPIE_UNROLL_4
    for (int64_t k = thread; k < blocks; k += kThreads)
      even &= cut(k + 1).begin - cut(k).begin <= int64_t(most) * kThreads;
    const uint32_t filled = __ballot_sync(kFullWarp, length > 0);
    const uint32_t uneven = __ballot_sync(kFullWarp, !even);
    if (laneIndex() == 0) {
      shared.filled[warpIndex()] = __popc(filled);
      shared.uneven[warpIndex()] = uneven;
    }
    __syncthreads();
    int before = __popc(filled & ((1u << laneIndex()) - 1));
    groups = 0;
    KELPIE_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) {
      even = even && shared.uneven[warp] == 0;
      if (warp < warpIndex()) before += shared.filled[warp];
      groups += shared.filled[warp];
    }
    if (length > 0) shared.segments[before] = uint16_t(thread);
    if (!oneRound()) groups = kThreads;
    sideBySide = rounds() > 2 && extent <= kPart * segments.count;
    bits = __clz(groups > 1 ? groups - 1 : 0) - __clz(kThreads - 1);
    if (oneRound()) {
      suited = length >> bits <= most;
    } else {
      KELPIE_UNROLL_4
      for (int k = thread; k < count(); k += kThreads)
        suited &= theirs.begin(k + 1) - theirs.begin(k) <= most;
    }
    const uint32_t unsuited = __ballot_sync(kFullWarp, !suited);
    if (laneIndex() == 0) shared.unsuited[warpIndex()] = unsuited;
    __syncthreads();
    KELPIE_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) suited = suited && shared.unsuited[warp] == 0;
  }

  /// Elements of a thread that are not too many.
  static __device__ __forceinline__ int mostOfThread(int64_t extent, int64_t blocks) {
    const int average = int(uint32_t(extent) / uint32_t(blocks) / kThreads);
    return kUneven * (average > kAtOnce ? average : kAtOnce);
  }
  __device__ __forceinline__ int count() const { return int(to.segment - from.segment); }
  __device__ __forceinline__ bool oneRound() const { return count() <= kThreads; }
  __device__ __forceinline__ int rounds() const { return (count() + kThreads - 1) / kThreads; }
  /// Rounds that a thread takes at once.
  __device__ __forceinline__ int roundsAtOnce() const { return sideBySide ? kParts : 1; }
  __device__ __forceinline__ int64_t segment(int part) const {
    return from.segment + number[sideBySide ? part : 0];
  }

  /// Takes the segments of a round, or of roundsAtOnce().
  template <class Segments>
  __device__ __forceinline__ void begin(int round, const Segments& segments, const Shared& shared) {
    const int group = threadIdx.x >> bits, within = threadIdx.x & ((1 << bits) - 1);
    KELPIE_UNROLL
    for (int part = 0; part < kParts; ++part) {
      number[part] = -1;
      first[part] = end[part] = 0;
      own[part] = L::identity();
      if (part > 0 && !sideBySide) continue;
      if (!oneRound()) {
        const int place = (round + part) * kThreads + threadIdx.x;
        if (place < count()) number[part] = place;
      } else if (group < groups) {
        number[part] = shared.segments[group];
      }
    }
    KELPIE_UNROLL
    for (int part = 0; part < kParts; ++part) {
      if (number[part] < 0) continue;
      first[part] = int(segments.begin(from.segment + number[part]) - from.element) + within;
      end[part] = int(segments.begin(from.segment + number[part] + 1) - from.element);
    }
  }
  /// Whether the first part has kAtOnce elements, all of which the thread takes.
  __device__ __forceinline__ bool hasAll() const {
    return !sideBySide && first[0] + ((kAtOnce - 1) << bits) < end[0];
  }
  /// Goes on behind these.
  __device__ __forceinline__ void advance() { first[0] += kAtOnce << bits; }
  /// Deals those that are left, fewer, to all parts.
  __device__ __forceinline__ void deal() {
    if (sideBySide) return;
    KELPIE_UNROLL
    for (int part = 1; part < kParts; ++part) {
      first[part] = first[0] + (part * kPart << bits);
      end[part] = end[0];
    }
  }
  /// Whether some part has elements: each takes kPart of them at once.
  __device__ __forceinline__ bool more() const {
    bool any = false;
    KELPIE_UNROLL
    for (int part = 0; part < kParts; ++part) any |= first[part] < end[part];
    return any;
  }
  /// Element k of a part, or the last one, if it has fewer.
  __device__ __forceinline__ int element(int part, int k) const {
    return k_min(first[part] + (k << bits), end[part] - 1);
  }
  __device__ __forceinline__ bool has(int part, int k) const { return first[part] + (k << bits) < end[part]; }
  /// Goes on behind the elements that all parts have taken.
  __device__ __forceinline__ void advanceParts() {
    KELPIE_UNROLL
    for (int part = 0; part < kParts; ++part) first[part] += sideBySide ? kPart : kAtOnce << bits;
  }

  /// Calls result(segment, value) once for each segment that has been taken. Contains a barrier where groups
  /// are larger than warps; then there is one round only.
  template <class Result>
  __device__ __forceinline__ void finish(Shared& shared, const Result& result) {
    if (sideBySide) {
      KELPIE_NO_UNROLL  // what becomes of a result may be long
          for (int turn = 0; turn < kParts; ++turn) {
        if (number[0] >= 0) result(segment(0), L::combine(L::identity(), own[0], false));
        KELPIE_UNROLL
        for (int part = 1; part < kParts; ++part) {
          number[part - 1] = number[part];
          own[part - 1] = own[part];
        }
      }
      return;
    }
    Value all = own[0];
    KELPIE_UNROLL
    for (int part = 1; part < kParts; ++part) all = L::join(all, own[part]);
    KELPIE_UNROLL
    for (int bit = 0; bit < 5; ++bit)
      if (bit < bits) all = L::join(all, shuffleXor(all, 1 << bit));
    if (bits > 5) {
      if (laneIndex() == 0) shared.totals[warpIndex()] = all;
      __syncthreads();
      KELPIE_UNROLL
      for (int warp = 1; warp < kWarps; ++warp)
        if (warp >> (bits - 5) == 0)
          all = L::join(all, shared.totals[(warpIndex() + warp) % kWarps]);
    }
    if ((threadIdx.x & ((1 << bits) - 1)) == 0 && number[0] >= 0)
      result(segment(0), L::combine(L::identity(), all, false));
    if (oneRound() && int(threadIdx.x) < count() && length == 0)
      result(from.segment + threadIdx.x, L::combine(L::identity(), L::identity(), false));
  }
};

}  // namespace kelpie

// Reductions of whole segments by groups of threads, for small inputs.
//
// Every block has the same number of segments, and shares its threads out: each segment that is not empty
// gets an equal, contiguous group of them, of a power of two; where a block has many more segments than
// threads, each gets a thread, in rounds. The threads of a group take every so many-th element, many at once,
// and fold what they have by a fixed tree. So a result waits for two offsets, for the elements, and for
// nothing else: no place is searched for, and nothing comes from other blocks. Segments that are too long for
// their groups wait for the others, and then share out the threads among themselves.
//
// Where some block would have too many elements, blocks take equal pieces of the merged list of elements and
// segment ends instead (segments.cuh), and what crosses from piece to piece is passed on by look-back. All
// blocks find that out by themselves. Which way is taken depends on the offsets alone, so results are
// reproducible.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "look_back.cuh"
#include "segment_ranges.cuh"

namespace kelpie {

/// kOfThread: elements that a thread has on the way.
template <class L, int kWarps, int kOfThread>
struct SegmentGroups {
  using Value = typename L::Value;
  static constexpr int kThreads = 32 * kWarps, kAtOnce = kOfThread;
  static constexpr int kPart = kAtOnce < 4 ? kAtOnce : 4;  ///< of these, taken or left together
  static constexpr int kUneven = 8;  ///< times as much as all have on average is too much
  using PieceWeights = Weights<1, 8>;
  struct Shared {
    Value totals[kWarps];
    Value pending, carry;  ///< of a piece: what lacks lower ones, and what higher ones lack
    Cut cuts[2];
    uint32_t uneven[kWarps];      ///< threads that have met blocks with too many elements
    uint32_t unsuited[kWarps];    ///< ... segments with too many for one thread
    int dealt[kWarps];            ///< segments of these threads that groups are dealt to
    int left[kWarps];             ///< ... and that are too long for those
    uint16_t segments[kThreads];  ///< those that groups are dealt to
  };

  Cut from, to;            ///< of the block
  int bits = 0;            ///< log2 of the threads of a group
  int number;              ///< of the segment of this thread, from the first of the block on, or -1
  int first = 0, end = 0;  ///< its elements, likewise; every 2^bits-th is this thread's
  Value own;

  /// Takes segments block * together and so on, of `extent` < 2^31 elements. Contains barriers.
  template <class Segments>
  __device__ __forceinline__ SegmentGroups(int64_t block, int64_t blocks, int64_t together,
                                           const Segments& segments, int64_t extent, Shared& shared) {
    const auto cut = [&](int64_t at) {
      const int64_t s = at * together < segments.count ? at * together : segments.count;
      const int64_t begin = segments.begin(s);
      return Cut{s, begin, begin};
    };
    from = cut(block);
    to = cut(block + 1);
    const int average = int(uint32_t(extent) / uint32_t(blocks) / kThreads);  // of a thread
    most_ = kUneven * uint32_t(average > kAtOnce ? average : kAtOnce);
    KELPIE_UNROLL_4
    for (int64_t k = threadIdx.x; k < blocks; k += kThreads)
      pieces_ = pieces_ || cut(k + 1).begin - cut(k).begin > int64_t(most_) * kThreads;
    KELPIE_NO_UNROLL
    for (int attempt = 0;; ++attempt) {
      measure(segments, 0);
      alone_ = count() > kThreads;
      KELPIE_UNROLL_4
      for (int k = threadIdx.x; k < count(); k += kThreads)
        alone_ = alone_ && uint32_t(place(segments, k + 1) - place(segments, k)) <= most_;
      const uint32_t uneven = __ballot_sync(kFullWarp, pieces_);
      const uint32_t unsuited = __ballot_sync(kFullWarp, !alone_);
      if (laneIndex() == 0) {
        shared.uneven[warpIndex()] = uneven;
        shared.unsuited[warpIndex()] = unsuited;
      }
      announce(shared);
      KELPIE_UNROLL
      for (int warp = 0; warp < kWarps; ++warp) {
        pieces_ = pieces_ || shared.uneven[warp] != 0;
        alone_ = alone_ && shared.unsuited[warp] == 0;
      }
      if (!pieces_ || attempt > 0) break;
      if (warpIndex() == 0) {
        const Cut found = cutByHalfWarp<PieceWeights>(segments, block, blocks, extent);
        if ((laneIndex() & 15) == 0) shared.cuts[laneIndex() >> 4] = found;
        if (laneIndex() == 0) shared.carry = L::identity();
      }
      __syncthreads();
      from = shared.cuts[0];
      to = shared.cuts[1];
    }
  }

  __device__ __forceinline__ int64_t segment() const { return from.segment + number; }
  /// How many of these more a thread has, at least.
  __device__ __forceinline__ bool has(int elements) const { return first + ((elements - 1) << bits) < end; }

  /// Takes other segments, if there are any. Contains barriers, unless threads have segments of their own.
  template <class Segments>
  __device__ __forceinline__ bool next(const Segments& segments, Shared& shared) {
    if (left_ == 0) {
      batch_ += kThreads;
      if (batch_ >= count()) return false;
      if (!alone_ && !announced_) measure(segments, batch_);
    }
    if (alone_) {
      number = batch_ + int(threadIdx.x) < count() ? batch_ + int(threadIdx.x) : -1;
    } else {
      if (!announced_) announce(shared);
      deal(shared);
    }
    first = end = 0;
    own = L::identity();
    if (number >= 0) {
      first = place(segments, number);
      end = place(segments, number + 1);
      if (!alone_ && isTooLong(end - first)) {
        number = -1;
        first = end;
      }
      first += threadIdx.x & ((1 << bits) - 1);
    }
    return true;
  }

  /// Calls result(segment, value) once for each segment that is known, behind next(). Contains a barrier
  /// where groups are larger than warps.
  template <class Result>
  __device__ __forceinline__ void finish(Shared& shared, const Result& result) {
    KELPIE_UNROLL
    for (int bit = 0; bit < 5; ++bit)
      if (bit < bits) own = L::combine(own, shuffleXor(own, 1 << bit), false);
    if (bits > 5) {
      if (laneIndex() == 0) shared.totals[warpIndex()] = own;
      __syncthreads();
      KELPIE_UNROLL
      for (int warp = 1; warp < kWarps; ++warp)
        if (warp >> (bits - 5) == 0)
          own = L::combine(own, shared.totals[(warpIndex() + warp) % kWarps], false);
    }
    // The segment of the group, then an empty one of this thread: what becomes of them may be long.
    int known = (threadIdx.x & ((1 << bits) - 1)) == 0 ? number : -1;
    KELPIE_NO_UNROLL
    for (int turn = 0; turn < 2; ++turn) {
      if (known >= 0) {
        if (from.segment + known == to.segment) {
          shared.carry = own;
        } else if (known == 0 && beganBelow()) {
          shared.pending = own;
        } else {
          result(from.segment + known, L::combine(L::identity(), own, false));
        }
      }
      known = empty_;
      own = L::identity();
    }
    empty_ = -1;
  }

  /// Behind all others: the segment that began in a lower piece and ends in this one. Contains a barrier.
  template <class Result>
  __device__ __forceinline__ void settle(int64_t order, const States<Value>& states, Shared& shared,
                                         const Result& result) {
    if (!pieces_) return;
    __syncthreads();
    if (warpIndex() != 0) return;
    const bool ended = to.segment > from.segment, needed = ended && beganBelow();
    const Value lower = lookBack<L>(states, order, shared.carry, ended, needed);
    if (laneIndex() == 0 && needed)
      result(from.segment, L::combine(L::identity(), L::combine(lower, shared.pending, false), false));
  }

 private:
  uint32_t most_;           ///< elements of a thread
  uint32_t limit_;          ///< the same, of segments that groups are dealt to
  bool pieces_ = false;     ///< blocks have pieces of the merged list
  bool alone_;              ///< there are many segments, and each gets a thread
  int batch_ = -kThreads;   ///< first of as many segments as there are threads, which are worked on
  int left_ = 0;            ///< of these, to which no group has been dealt that suits them
  int length_;              ///< of the one of this thread
  bool waits_;              ///< it is one of those
  bool announced_ = false;  ///< how many wait is in shared memory
  bool fresh_;              ///< nothing has been dealt in this batch
  int empty_ = -1;          ///< an empty segment of this thread
  uint32_t waiting_;        ///< lanes of the warp whose segments wait

  /// The segments, of which the last may end in a higher piece.
  __device__ __forceinline__ int count() const {
    return int(to.segment - from.segment) + (to.element > to.begin ? 1 : 0);
  }
  __device__ __forceinline__ bool beganBelow() const { return from.element > from.begin; }
  /// Where a segment begins, as far as it lies in the block.
  template <class Segments>
  __device__ __forceinline__ int place(const Segments& segments, int at) const {
    const int64_t begin = segments.begin(from.segment + at);
    return int(k_min(k_max(begin, from.element), to.element) - from.element);
  }
  __device__ __forceinline__ bool isTooLong(int length) const { return uint32_t(length) >> bits > limit_; }

  template <class Segments>
  __device__ __forceinline__ void measure(const Segments& segments, int batch) {
    const int own = batch + int(threadIdx.x);
    length_ = own < count() ? place(segments, own + 1) - place(segments, own) : 0;
    waits_ = length_ > 0;
    fresh_ = true;
  }

  /// Tells how many segments wait. Contains a barrier.
  __device__ __forceinline__ void announce(Shared& shared) {
    waiting_ = __ballot_sync(kFullWarp, waits_);
    if (laneIndex() == 0) shared.dealt[warpIndex()] = __popc(waiting_);
    __syncthreads();
    announced_ = true;
  }

  /// Deals groups to the segments that wait; those that are too long for theirs go on to do so, and the next
  /// time may be twice as long. Contains a barrier.
  __device__ __forceinline__ void deal(Shared& shared) {
    int before = __popc(waiting_ & ((1u << laneIndex()) - 1)), groups = 0;
    KELPIE_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) {
      if (warp < warpIndex()) before += shared.dealt[warp];
      groups += shared.dealt[warp];
    }
    if (waits_) shared.segments[before] = uint16_t(threadIdx.x);
    bits = __clz(groups > 1 ? groups - 1 : 0) - __clz(kThreads - 1);
    limit_ = fresh_ ? most_ : 2 * limit_;
    waits_ = waits_ && isTooLong(length_);
    const int own = batch_ + int(threadIdx.x);
    if (fresh_ && own < count() && length_ == 0) empty_ = own;
    const uint32_t left = __ballot_sync(kFullWarp, waits_);
    if (laneIndex() == 0) shared.left[warpIndex()] = __popc(left);
    __syncthreads();
    left_ = 0;
    KELPIE_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) left_ += shared.left[warp];
    const int group = threadIdx.x >> bits;
    number = group < groups ? batch_ + shared.segments[group] : -1;
    announced_ = fresh_ = false;
  }
};

}  // namespace kelpie

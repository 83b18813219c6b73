// Reductions of few, long segments by whole warps, for small inputs.
//
// A block has as many segments as warps, or fewer, and each gets an equal, contiguous group of them. These
// take turns at chunks of it: kOfThread elements of a thread, 32 apart, all of which are on the way at once,
// at distances that the compiler knows. (With distances that depend on the launch, or elements dealt in
// parts, there are about twice as many instructions: sums of 2^22 float32 in segments of 4096 took 5.2 us on
// an H200, and 4.4 this way.) Nothing is waited for but where segments begin. Lengths are compared on the
// way: where they differ too much, what there is so far is dropped, and ranges (segment_ranges.cuh) do the
// work: of all blocks, if some block has too many elements, or else of the block alone. That depends on the
// offsets alone, so results are reproducible.
//
// L as in segment_reduce.cuh; its operator commutes.
#pragma once

#include "segment_groups.cuh"

namespace kelpie {

template <class L, int kWarps, int kOfThread>
struct SegmentWarps {
  using Value = typename L::Value;
  struct Shared {
    Value totals[kWarps];
  };
  static constexpr int kThreads = 32 * kWarps, kAtOnce = kOfThread, kChunk = 32 * kOfThread;

  Cut from, to;            ///< of the block, if lengths differ too much
  bool even = true;        ///< no block has too many elements; until finish(): as far as the thread saw
  bool suited = true;      ///< the segment does not
  int64_t segment;         ///< of the warp
  bool exists;             ///< this one does
  int first = 0, end = 0;  ///< the elements of the thread: the next, and where its segment ends
  int begin = 0;           ///< where its segment begins
  int warps, within;       ///< warps of the segment, and the number of this one among them
  Value own = L::identity();

  /// Takes segments block * together and so on, of `extent` < 2^31 elements; `together` is a power of two,
  /// and not more than kWarps.
  template <class Segments>
  __device__ __forceinline__ SegmentWarps(int64_t block, int64_t blocks, int together,
                                          const Segments& segments, int64_t extent) {
    warps = kWarps / together;
    within = warpIndex() & (warps - 1);
    segment = block * together + int(uint32_t(warpIndex()) / uint32_t(warps));
    exists = segment < segments.count;
    if (exists) {
      begin = int(segments.begin(segment));
      end = int(segments.begin(segment + 1));
    }
    const int most = SegmentGroups<L, kWarps, kOfThread>::mostOfThread(extent, blocks);
    KELPIE_UNROLL_4
    for (int k = threadIdx.x; k < int(blocks); k += kThreads) {
      const int64_t from = int64_t(k) * together, to = from + together;
      even &= segments.begin(to < segments.count ? to : segments.count) - segments.begin(from) <=
              int64_t(most) * kThreads;
    }
    suited = end - begin <= most * 32 * warps;
    if (!suited) end = begin;  // for it is dropped
    first = begin + within * kChunk + laneIndex();
  }

  /// Whether the thread has kAtOnce elements: first, first + 32 ...
  __device__ __forceinline__ bool hasAll() const { return first + (kAtOnce - 1) * 32 < end; }
  __device__ __forceinline__ void advance() { first += warps * kChunk; }
  /// Whether it has any, which are fewer, behind these.
  __device__ __forceinline__ bool more() const { return first < end; }
  __device__ __forceinline__ bool has(int k) const { return first + k * 32 < end; }
  /// Element k, or the last one of the segment, if the thread has fewer.
  __device__ __forceinline__ int element(int k) const { return k_min(first + k * 32, end - 1); }

  /// Calls result(segment, value) once for each segment of the block, if lengths do not differ too much, and
  /// returns whether they do not. Contains barriers.
  template <class Segments, class Result>
  __device__ __forceinline__ bool finish(const Segments& segments, Shared& shared, const Result& result) {
    KELPIE_UNROLL
    for (int bit = 0; bit < 5; ++bit) own = L::join(own, shuffleXor(own, 1 << bit));
    if (laneIndex() == 0) shared.totals[warpIndex()] = own;
    if (!__syncthreads_and(even && suited)) {
      even = __syncthreads_and(even);
      const auto cut = [&](int64_t s) {
        s = s < segments.count ? s : segments.count;
        const int64_t element = segments.begin(s);
        return Cut{s, element, element};
      };
      const int64_t together = kWarps / warps;
      from = cut(blockIdx.x * together);
      to = cut((blockIdx.x + 1) * together);
      return false;
    }
    if (laneIndex() != 0 || within != 0 || !exists) return true;
    for (int warp = 1; warp < warps; ++warp) own = L::join(own, shared.totals[warpIndex() + warp]);
    result(segment, L::combine(L::identity(), own, false));
    return true;
  }
};

}  // namespace kelpie

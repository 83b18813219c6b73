// Segments that are sorted by a group of threads each, of one up to a block, by CUB's merge sorts of these,
// with a word (grade_words.cuh) for each element, which is made of its key as that is loaded.
// CUB's own segmented sort has a block for each segment of more than 64 of 8 bytes, which goes through all of
// their bits, and looks for these segments first.
//
// Segments are of classes by their lengths; a launch sorts those of one class. A warp looks at some segments
// at a time, and its groups take those that are of the class; so does a block whose group it is. Of few
// elements one launch sorts all segments.
#pragma once

#include <cub/block/block_exchange.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <type_traits>

#include "runtime/cuda/grade_words.cuh"

namespace kelpie::grade {

constexpr int kWarp = 32;

/// Segments of the first class have up to kFirst elements, those of each other up to twice as many as those
/// of the one before.
constexpr int kClasses = 11;
constexpr int64_t kFirst = 4, kLongest = kFirst << (kClasses - 1);
/// The class of a length above 0; kClasses: none.
__host__ __device__ inline int classOf(int64_t length) {
  int k = 0;
  while (k < kClasses && length > kFirst << k) ++k;
  return k;
}

/// What is sorted, and what is wanted of it; each of the results may be null.
struct SegmentsJob {
  const void* keys;
  int kind;       ///< of the keys (grade_cub.h)
  Layout layout;  ///< of words
  Segments segments;
  int64_t *order, *ranks;
  void* sorted;

  /// `body` is called with a value of the type that keys have.
  template <class Body>
  __device__ void withKeyType(const Body& body) const {
    switch (kind) {
      case 1:
        return body(uint8_t());
      case 2:
        return body(int32_t());
      case 3:
        return body(int64_t());
      case 4:
        return body(float());
      default:
        return body(double());
    }
  }
};

/// What is sorted: words that end with places, words and places beside them, or words without places, for the
/// sorted keys alone.
enum class Sorted : uint8_t { Words, Pairs, Keys };

/// A group of `kSize` threads, which have `kItems` elements each.
template <class Word, Sorted kSorted, int kSize, int kItems>
struct Group {
  static constexpr int kMost = kSize * kItems;  ///< elements
  static constexpr bool kOfWarp = kSize <= kWarp;
  static constexpr int kThreadsOfBlock = kOfWarp ? 4 * kWarp : kSize;
  static constexpr int kGroups = kThreadsOfBlock / kSize;
  static constexpr int kLooks = kOfWarp ? kWarp : 4;  ///< so many segments at a time, at most
  using Value = std::conditional_t<kSorted == Sorted::Pairs, uint32_t, cub::NullType>;
  /// What is handed to the threads that write it.
  using Result = std::conditional_t<kSorted == Sorted::Keys, Word, uint32_t>;
  using Sort = std::conditional_t<kOfWarp, cub::WarpMergeSort<Word, kItems, kOfWarp ? kSize : kWarp, Value>,
                                  cub::BlockMergeSort<Word, kThreadsOfBlock, kItems, Value>>;
  using Exchange = std::conditional_t<kOfWarp, cub::WarpExchange<Result, kItems, kOfWarp ? kSize : kWarp>,
                                      cub::BlockExchange<Result, kThreadsOfBlock, kItems>>;
  union Shared {
    typename Sort::TempStorage sort;
    typename Exchange::TempStorage exchange;
  };

  /// Sorts the segment that begins there.
  static __device__ void sort(const SegmentsJob& job, int64_t begin, int length, Shared& shared) {
    const int thread = static_cast<int>(threadIdx.x) % kSize;
    const int placeBits = job.layout.placeBits;
    constexpr Word kBeyond = ~Word{0};
    const auto less = [](Word a, Word b) { return a < b; };
    Word mine[kItems];
    job.withKeyType([&](auto type) {
      const auto* keys = static_cast<const decltype(type)*>(job.keys) + begin;
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int at = thread * kItems + k;
        mine[k] = at < length ? keyBitsOf<Word>(keys[at], job.layout) : kBeyond;
      }
    });
    Result results[kItems];
    if constexpr (kSorted == Sorted::Words) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int at = thread * kItems + k;
        if (at < length) mine[k] = mine[k] << placeBits | static_cast<Word>(at);
      }
    }
    if constexpr (kSorted == Sorted::Pairs) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) results[k] = static_cast<uint32_t>(thread * kItems + k);
      Sort(shared.sort).StableSort(mine, results, less, length, kBeyond);
    } else {
      Sort(shared.sort).StableSort(mine, less, length, kBeyond);
#pragma unroll
      for (int k = 0; k < kItems; ++k)
        results[k] =
            kSorted == Sorted::Keys ? mine[k] : static_cast<Result>(mine[k] & lowest<Word>(placeBits));
    }
    barrier();
    if constexpr (kSize > 1) Exchange(shared.exchange).BlockedToStriped(results, results);
    if constexpr (kSorted == Sorted::Keys) {
      job.withKeyType([&](auto type) {
        using Key = decltype(type);
        if constexpr (std::is_integral_v<Key>) {
          const Key any = *static_cast<const Key*>(job.keys);
          auto* sorted = static_cast<Key*>(job.sorted) + begin;
#pragma unroll
          for (int k = 0; k < kItems; ++k) {
            const int at = k * kSize + thread;
            if (at < length) sorted[at] = keyOfBits(results[k], any, job.layout);
          }
        }
      });
    } else {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int at = k * kSize + thread;
        if (at >= length) continue;
        if (job.order) job.order[begin + at] = results[k];
        if (job.ranks) job.ranks[begin + results[k]] = at;
      }
    }
    barrier();
  }

 private:
  static __device__ void barrier() {
    if constexpr (kOfWarp) {
      constexpr unsigned kMine = kSize == kWarp ? 0xffffffffu : (1u << (kSize % kWarp)) - 1;
      __syncwarp(kMine << (threadIdx.x % kWarp / kSize * kSize));
    } else {
      __syncthreads();
    }
  }
};

/// Sorts segments of more than `least` elements, and no more than a group has, `looks` of them at a time.
template <class G>
__global__ void __launch_bounds__(G::kThreadsOfBlock)
    sortSegments(SegmentsJob job, int64_t least, int looks) {
  // Warps that have groups look for themselves; those of a block that is a group all see the same.
  constexpr int kWarps = G::kThreadsOfBlock / kWarp, kApart = G::kOfWarp ? kWarps : 1;
  constexpr int kGroupsOfWarp = G::kGroups / kApart;
  constexpr unsigned kAll = 0xffffffffu;
  __shared__ typename G::Shared shared[G::kGroups];
  __shared__ uint8_t lanes[kWarps][kWarp];  // that have found segments of the class
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int group = G::kOfWarp ? lane * kGroupsOfWarp / kWarp : 0;  // of the warp
  const int64_t step = int64_t(gridDim.x) * kApart * looks;
  const Segments segments = job.segments.sound();
  for (int64_t first = (int64_t(blockIdx.x) * kApart + warp % kApart) * looks; first < segments.count;
       first += step) {
    const int64_t segment = first + lane;
    int64_t begin = 0, length = 0;
    if (lane < looks && segment < segments.count) {
      begin = segments.begin(segment);
      length = segments.begin(segment + 1) - begin;
    }
    const bool suits = length > least && length <= G::kMost;
    const unsigned suited = __ballot_sync(kAll, suits);
    const int found = __popc(suited);
    if (suits) lanes[warp][__popc(suited & ((1u << lane) - 1))] = static_cast<uint8_t>(lane);
    __syncwarp();
    for (int next = 0; next < found; next += kGroupsOfWarp) {
      const bool has = next + group < found;
      const int from = lanes[warp][has ? next + group : 0];
      const int64_t at = __shfl_sync(kAll, begin, from);
      const auto elements = static_cast<int>(__shfl_sync(kAll, length, from));
      if (has) G::sort(job, at, elements, shared[(warp % kApart) * kGroupsOfWarp + group]);
    }
    __syncwarp();
  }
}

/// Sorts segments of up to kLongest elements, whatever their classes are: a block `together` of them at a
/// time, those that are short by a warp each, the longer ones one after the other. *beyond becomes 1 if there
/// are any that are too long.
constexpr int kFewWarps = 8;
template <class Word, Sorted kSorted>
__global__ void __launch_bounds__(kFewWarps* kWarp)
    sortFewElements(SegmentsJob job, int together, volatile unsigned* beyond) {
  using Short = Group<Word, kSorted, kWarp, 8>;
  using Longer = Group<Word, kSorted, kFewWarps * kWarp, 4>;
  using Longest = Group<Word, kSorted, kFewWarps * kWarp, 16>;
  static_assert(Longest::kMost == kLongest);
  __shared__ union {
    typename Short::Shared warps[kFewWarps];
    typename Longer::Shared longer;
    typename Longest::Shared longest;
  } shared;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const Segments segments = job.segments.sound();
  for (int64_t first = int64_t(blockIdx.x) * together; first < segments.count;
       first += int64_t(gridDim.x) * together) {
    const auto lengthOf = [&](int k) -> int64_t {
      if (k >= together || first + k >= segments.count) return 0;
      return segments.begin(first + k + 1) - segments.begin(first + k);
    };
    const int64_t length = lengthOf(warp);
    if (length > kLongest) *beyond = 1;
    if (length > 0 && length <= Short::kMost)
      Short::sort(job, segments.begin(first + warp), static_cast<int>(length), shared.warps[warp]);
    if (__syncthreads_or(length > Short::kMost) == 0) continue;
    for (int k = 0; k < together; ++k) {
      const int64_t elements = lengthOf(k);
      if (elements <= Short::kMost || elements > kLongest) continue;
      const int64_t begin = segments.begin(first + k);
      if (elements <= Longer::kMost) {
        Longer::sort(job, begin, static_cast<int>(elements), shared.longer);
      } else {
        Longest::sort(job, begin, static_cast<int>(elements), shared.longest);
      }
    }
  }
}

/// Sorts segments, by some launches.
template <class Word, Sorted kSorted>
class SegmentSorts {
 public:
  SegmentSorts(const SegmentsJob& job, cudaStream_t stream) : job_(job), stream_(stream) {}

  /// Those of all `classes`, a bit for each. `few` elements: launches are for several classes, by groups for
  /// the longest, as each takes some microseconds.
  void run(unsigned classes, bool few) const {
    sort<0, 1, 4>(classes, few);
    sort<1, 1, 8>(classes, few);
    sort<2, 2, 8>(classes, few);
    sort<3, 4, 8>(classes, few);
    sort<4, 8, 8>(classes, few);
    sort<5, 16, 8>(classes, few);
    sort<6, 32, 8>(classes, few);
    sort<7, 32, 16>(classes, few);
    sort<8, 128, 8>(classes, few);
    sort<9, 256, 8>(classes, few);
    sort<10, 256, 16>(classes, few);
  }
  /// Those of few elements in all, up to kLongest, by one launch, whatever their classes are. `beyond`: on
  /// the device, becomes 1 if any are longer.
  void runFew(unsigned* beyond) const {
    // So many blocks that all multiprocessors have some, of which each takes long for long segments.
    constexpr int64_t kMostBlocks = 1 << 12, kBlocks = 264;
    const auto together = static_cast<int>(job_.segments.count < kBlocks * kFewWarps
                                               ? (job_.segments.count + kBlocks - 1) / kBlocks
                                               : kFewWarps);
    const int64_t blocks = (job_.segments.count + together - 1) / together;
    sortFewElements<Word, kSorted><<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
                                     kFewWarps * kWarp, 0, stream_>>>(job_, together, beyond);
  }

 private:
  template <int kClass, int kSize, int kItems>
  void sort(unsigned classes, bool few) const {
    using G = Group<Word, kSorted, kSize, kItems>;
    static_assert(G::kMost == kFirst << kClass);
    // Up to 32 elements, 256, 1024 and kLongest.
    constexpr int kBegin = kClass < 4 ? 0 : kClass < 7 ? 4 : kClass < 9 ? 7 : 9;
    constexpr int kEnd = kClass < 4 ? 4 : kClass < 7 ? 7 : kClass < 9 ? 9 : kClasses;
    constexpr unsigned kLonger = (1u << kEnd) - (2u << kClass);
    if ((classes >> kClass & 1) == 0 || (few && (classes & kLonger) != 0)) return;
    const int shortest = few ? kBegin : kClass;
    launch<G>(shortest == 0 ? 0 : (kFirst << shortest) / 2);
  }
  template <class G>
  void launch(int64_t least) const {
    constexpr int64_t kApart = G::kOfWarp ? G::kThreadsOfBlock / kWarp : 1, kMostBlocks = 1 << 14;
    // So few that all multiprocessors have some.
    constexpr int64_t kChunks = 1 << 14;
    const int64_t count = job_.segments.count;
    const auto looks =
        static_cast<int>(count < kChunks * G::kLooks ? (count + kChunks - 1) / kChunks : G::kLooks);
    const int64_t blocks = (count + looks * kApart - 1) / (looks * kApart);
    sortSegments<G><<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), G::kThreadsOfBlock,
                      0, stream_>>>(job_, least, looks);
  }

  SegmentsJob job_;
  cudaStream_t stream_;
};

}  // namespace kelpie::grade

// Segments that are sorted by a group of threads each, of one up to a block, by CUB's merge sorts of these,
// with a word (grade_words.cuh) for each element, to which its place comes. CUB's own segmented sort has a
// block for each segment of more than 64 of 8 bytes, which goes through all of their bits, and looks for
// these segments first.
//
// Segments are of classes by their lengths; a launch sorts those of one class. A warp looks at some segments
// at a time, and its groups take those that are of the class; so does a block whose group it is.
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

/// A group of `kSize` threads, which have `kItems` elements each. `kPlaces`: words have no room for places,
/// which are sorted along.
template <class Word, bool kPlaces, int kSize, int kItems>
struct Group {
  static constexpr int kMost = kSize * kItems;  ///< elements
  static constexpr bool kOfWarp = kSize <= kWarp;
  static constexpr int kThreadsOfBlock = kOfWarp ? 4 * kWarp : kSize;
  static constexpr int kGroups = kThreadsOfBlock / kSize;
  static constexpr int kLooks = kOfWarp ? kWarp : 4;  ///< so many segments at a time, at most
  using Value = std::conditional_t<kPlaces, uint32_t, cub::NullType>;
  using Sort = std::conditional_t<kOfWarp, cub::WarpMergeSort<Word, kItems, kOfWarp ? kSize : kWarp, Value>,
                                  cub::BlockMergeSort<Word, kThreadsOfBlock, kItems, Value>>;
  using Exchange = std::conditional_t<kOfWarp, cub::WarpExchange<uint32_t, kItems, kOfWarp ? kSize : kWarp>,
                                      cub::BlockExchange<uint32_t, kThreadsOfBlock, kItems>>;
  union Shared {
    typename Sort::TempStorage sort;
    typename Exchange::TempStorage exchange;
  };

  /// Sorts one segment; gives the place that each of its elements had, and as which each one comes. Either
  /// may be null.
  static __device__ void sort(const Word* words, int64_t* order, int64_t* ranks, int length, int placeBits,
                              Shared& shared) {
    const int thread = static_cast<int>(threadIdx.x) % kSize;
    constexpr Word kBeyond = ~Word{0};
    const auto less = [](Word a, Word b) { return a < b; };
    Word mine[kItems];
    uint32_t found[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int at = thread * kItems + k;
      mine[k] = at < length ? words[at] : kBeyond;
      if constexpr (kPlaces) {
        found[k] = static_cast<uint32_t>(at);
      } else if (at < length) {
        mine[k] = mine[k] << placeBits | static_cast<Word>(at);
      }
    }
    if constexpr (kPlaces) {
      Sort(shared.sort).StableSort(mine, found, less, length, kBeyond);
    } else {
      Sort(shared.sort).StableSort(mine, less, length, kBeyond);
#pragma unroll
      for (int k = 0; k < kItems; ++k) found[k] = static_cast<uint32_t>(mine[k] & lowest<Word>(placeBits));
    }
    barrier();
    Exchange(shared.exchange).BlockedToStriped(found, found);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int at = k * kSize + thread;
      if (at >= length) continue;
      if (order) order[at] = found[k];
      if (ranks) ranks[found[k]] = at;
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
template <class G, class Word>
__global__ void __launch_bounds__(G::kThreadsOfBlock)
    sortSegments(const Word* words, int64_t* order, int64_t* ranks, Segments segments, int64_t least,
                 int looks, int placeBits) {
  // Warps that have groups look for themselves; those of a block that is a group all see the same.
  constexpr int kWarps = G::kThreadsOfBlock / kWarp, kApart = G::kOfWarp ? kWarps : 1;
  constexpr int kGroupsOfWarp = G::kGroups / kApart;
  constexpr unsigned kAll = 0xffffffffu;
  __shared__ typename G::Shared shared[G::kGroups];
  __shared__ uint8_t lanes[kWarps][kWarp];  // that have found segments of the class
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int group = G::kOfWarp ? lane * kGroupsOfWarp / kWarp : 0;  // of the warp
  const int64_t step = int64_t(gridDim.x) * kApart * looks;
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
      if (has)
        G::sort(words + at, order ? order + at : nullptr, ranks ? ranks + at : nullptr, elements, placeBits,
                shared[(warp % kApart) * kGroupsOfWarp + group]);
    }
    __syncwarp();
  }
}

/// Sorts segments, by some launches.
template <bool kPlaces, class Word>
class SegmentSorts {
 public:
  SegmentSorts(const Word* words, int64_t* order, int64_t* ranks, const Segments& segments, int placeBits,
               cudaStream_t stream)
      : words_(words),
        order_(order),
        ranks_(ranks),
        segments_(segments),
        placeBits_(placeBits),
        stream_(stream) {}

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
  /// Those of few elements in all, up to kLongest, whatever their classes are.
  void runFew() const {
    launch<Group<Word, kPlaces, 32, 8>>(0);
    launch<Group<Word, kPlaces, 256, 16>>(Group<Word, kPlaces, 32, 8>::kMost);
  }

 private:
  template <int kClass, int kSize, int kItems>
  void sort(unsigned classes, bool few) const {
    using G = Group<Word, kPlaces, kSize, kItems>;
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
    const auto looks = static_cast<int>(
        segments_.count < kChunks * G::kLooks ? (segments_.count + kChunks - 1) / kChunks : G::kLooks);
    const int64_t blocks = (segments_.count + looks * kApart - 1) / (looks * kApart);
    sortSegments<G><<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), G::kThreadsOfBlock,
                      0, stream_>>>(words_, order_, ranks_, segments_, least, looks, placeBits_);
  }

  const Word* words_;
  int64_t *order_, *ranks_;
  const Segments& segments_;
  int placeBits_;
  cudaStream_t stream_;
};

}  // namespace kelpie::grade

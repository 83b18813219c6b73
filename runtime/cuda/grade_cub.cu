// lcu::Grade by CUB: a sort of words (grade_words.cuh). Segments of up to kLongest elements are sorted by a
// group of threads each (grade_segments.cuh); one of all, or the longer ones together, which takes the same
// time whatever their lengths are,
//
//   where words have room for all    by a radix sort
//   for segments and keys            by one with places beside the words
//   not for these                    by two, by key, then, stable, by segment
//
// Of long arrays only the bits are sorted by in which keys differ. As two radix sorts of all, 5*10^7 float64
// in segments of 100 took 5.6 ms on an H200 and take 1.7, 1.5*10^8 in segments of 0 to 12 40 and 3.7
// (h200-2026-11-29-sorts.txt).
#include <cub/device/device_radix_sort.cuh>
#include <type_traits>

#include "runtime/cuda/grade_cub.h"
#include "runtime/cuda/grade_segments.cuh"
#include "runtime/cuda/grade_words.cuh"

namespace {

using namespace kelpie::grade;

unsigned blocksFor(int64_t n, int64_t each = kThreads) {
  return static_cast<unsigned>((n + each - 1) / each);
}
/// For numbers below `values`, which is at least 1.
int bitsFor(int64_t values) {
  int bits = 0;
  while ((values - 1) >> bits != 0) ++bits;
  return bits;
}

/// What is looked at before a sort.
struct Seen {
  unsigned long long mask;    ///< bits in which keys differ
  unsigned longest, classes;  ///< of segments: their classes as bits
  unsigned long long beyond;  ///< of segments longer than kLongest: how many, kBeyond times, plus elements
  static constexpr unsigned long long kBeyond = 1ull << 40;
};
/// `offsets`, `origins`: of segments longer than kLongest, in any order, one after the other and in all.
template <class Key>
__global__ void see(const Key* keys, int64_t n, Segments segments, Seen* seen, int64_t* offsets,
                    int64_t* origins) {
  segments = segments.sound();
  const int64_t begin = int64_t(blockIdx.x) * kThreads + threadIdx.x, step = int64_t(gridDim.x) * kThreads;
  const auto first = ordered(keys[0]);
  auto mine = first ^ first;
  constexpr int kTogether = 4;  // loads that are on the way together
  int64_t k = begin;
  for (; n - k > (kTogether - 1) * step; k += kTogether * step) {
#pragma unroll
    for (int next = 0; next < kTogether; ++next) mine |= ordered(keys[k + next * step]) ^ first;
  }
  for (; k < n; k += step) mine |= ordered(keys[k]) ^ first;
  unsigned longest = 0, classes = 0;
  for (int64_t s = begin; segments.offsets && s < segments.count; s += step) {
    const int64_t length = segments.begin(s + 1) - segments.begin(s);
    longest = max(longest, static_cast<unsigned>(length));
    if (length > 0) classes |= 1u << classOf(length);
    if (length <= kLongest) continue;
    const unsigned long long before = atomicAdd(&seen->beyond, Seen::kBeyond + length);
    offsets[before / Seen::kBeyond] = static_cast<int64_t>(before % Seen::kBeyond);
    origins[before / Seen::kBeyond] = segments.begin(s);
  }
  // Each block adds to what all have seen once.
  __shared__ unsigned low, high, ofBlock, longestOfBlock;
  if (threadIdx.x == 0) low = high = ofBlock = longestOfBlock = 0;
  __syncthreads();
  constexpr unsigned kAll = 0xffffffffu;
  const auto wide = static_cast<unsigned long long>(mine);
  const unsigned lowest = __reduce_or_sync(kAll, static_cast<unsigned>(wide));
  const unsigned highest = __reduce_or_sync(kAll, static_cast<unsigned>(wide >> 32));
  longest = __reduce_max_sync(kAll, longest);
  classes = __reduce_or_sync(kAll, classes);
  if (threadIdx.x % 32 == 0) {
    atomicOr(&low, lowest);
    atomicOr(&high, highest);
    atomicOr(&ofBlock, classes);
    atomicMax(&longestOfBlock, longest);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicOr(&seen->mask, static_cast<unsigned long long>(high) << 32 | low);
  if (!segments.offsets) return;
  atomicMax(&seen->longest, longestOfBlock);
  atomicOr(&seen->classes, ofBlock);
}
/// Memory of the host that the device can write to, and that copies from it need not go around; null: none.
/// Of one thread, until that ends.
Seen* seenByHost() {
  struct Pinned {
    Seen* place = nullptr;
    Pinned() {
      if (cudaHostAlloc(reinterpret_cast<void**>(&place), sizeof(Seen), cudaHostAllocDefault) != cudaSuccess)
        place = nullptr;
    }
    ~Pinned() { cudaFreeHost(place); }
  };
  thread_local const Pinned pinned;
  return pinned.place;
}

__global__ void segmentsOfPlaces(const uint32_t* places, const uint32_t* segmentOf, uint32_t* out, int64_t n,
                                 Segments segments) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= n) return;
  out[k] =
      segmentOf ? segmentOf[places[k]] : static_cast<uint32_t>(segments.of(places[k], 0, segments.count));
}
/// `sorted`: null, or for those of `keys`.
template <class Key>
__global__ void placesInSegments(const uint32_t* places, const uint32_t* segmentOf, int64_t* order,
                                 int64_t* ranks, const Key* keys, Key* sorted, int64_t n, Segments segments) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= n) return;
  const int64_t begin = segments.begin(segmentOf[k]), original = segments.original(begin, segmentOf[k]);
  const int64_t place = places[k] - begin;
  if (order) order[original + k - begin] = place;
  if (ranks) ranks[original + place] = k - begin;
  if (sorted) sorted[original + k - begin] = keys[original + place];
}
/// Places beside the numbers of their elements.
template <class Word>
__global__ void findPlaces(const Word* words, const uint32_t* places, uint32_t* outPlaces,
                           uint32_t* outNumbers, int64_t n, Layout layout) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= n) return;
  outPlaces[k] = places ? places[k] : static_cast<uint32_t>(words[k] & lowest<Word>(layout.placeBits));
  outNumbers[k] = static_cast<uint32_t>(k);
}
__global__ void writeRanks(const uint32_t* places, const uint32_t* numbers, int64_t* ranks, int64_t n) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k < n) ranks[places[k]] = numbers[k];
}

/// Scratch memory from its beginning; without any, only how much there should be.
struct Arena {
  char* begin;
  size_t total = 0;
  template <class T>
  T* take(size_t count) {
    T* place = begin ? reinterpret_cast<T*>(begin + total) : nullptr;
    total += (count * sizeof(T) + 255) / 256 * 256;
    return place;
  }
};

template <class Key>
struct Grading {
  const Key* keys;
  int64_t* order;
  Key* sorted;
  int64_t* ranks;
  int64_t n;
  Segments segments;
  int kind;  ///< of keys (grade_cub.h)
  cudaStream_t stream;
  unsigned classes = 0;  ///< of segments

  bool ofPlaces() const { return order || ranks; }
  unsigned blocks() const { return blocksFor(n); }
};

// Each of these does nothing without memory but to take what it would need.

/// What is wanted of sorted words. Ranks write to places that are far from each other: of 10^8 elements each
/// fetches and stores a piece of memory, which takes 6.2 ms on an H200. So, of many of one segment, those
/// whose places have the same highest bits are brought together first, by one pass of a radix sort.
template <class Key>
class Results {
 public:
  Results(const Grading<Key>& g, Arena& arena) : g_(g), bits_(bitsFor(g.n)) {
    constexpr int64_t kMany = 1 << 23;
    bringsTogether_ = g.ranks && !g.segments.several() && g.n >= kMany;
    if (!bringsTogether_) return;
    for (int k = 0; k < 2; ++k) {
      places_.d_buffers[k] = arena.take<uint32_t>(g.n);
      numbers_.d_buffers[k] = arena.take<uint32_t>(g.n);
    }
    error_ = sort(nullptr);
    memory_ = arena.take<char>(bytes_);
  }
  /// What came of asking how much memory that needs.
  cudaError_t error() const { return error_; }

  /// `places`: null, or those of words that have none.
  template <class Word>
  cudaError_t unpack(const Word* words, const uint32_t* places, const Layout& layout) {
    int64_t* ranks = bringsTogether_ ? nullptr : g_.ranks;
    if (g_.order || ranks)
      unpackPlaces<<<g_.blocks(), kThreads, 0, g_.stream>>>(words, places, g_.order, ranks, g_.n, g_.segments,
                                                            layout);
    if constexpr (std::is_integral_v<Key>) {
      if (g_.sorted)
        unpackKeys<<<g_.blocks(), kThreads, 0, g_.stream>>>(words, g_.keys, g_.sorted, g_.n, g_.segments,
                                                            layout);
    }
    if (!bringsTogether_) return cudaGetLastError();
    findPlaces<<<g_.blocks(), kThreads, 0, g_.stream>>>(words, places, places_.Current(), numbers_.Current(),
                                                        g_.n, layout);
    const cudaError_t error = sort(memory_);
    if (error != cudaSuccess) return error;
    writeRanks<<<g_.blocks(), kThreads, 0, g_.stream>>>(places_.Current(), numbers_.Current(), g_.ranks,
                                                        g_.n);
    return cudaGetLastError();
  }

 private:
  cudaError_t sort(void* memory) {
    constexpr int kDigit = 8;  // bits of a pass
    return cub::DeviceRadixSort::SortPairs(memory, bytes_, places_, numbers_, static_cast<int>(g_.n),
                                           bits_ - kDigit, bits_, g_.stream);
  }

  const Grading<Key>& g_;
  int bits_;
  bool bringsTogether_;
  cub::DoubleBuffer<uint32_t> places_, numbers_;
  size_t bytes_ = 0;
  void* memory_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

/// Of fewer, to launch kernels for each class of segments does not pay.
constexpr int64_t kFewElements = 1 << 22;

/// Each segment by itself. `beyond`: null, or as for SegmentSorts::runFew.
template <class Word, Sorted kSorted, class Key>
cudaError_t gradeSegments(const Grading<Key>& g, const Layout& layout, unsigned* beyond) {
  const SegmentsJob job{g.keys, g.kind, layout, g.segments, g.order, g.ranks, g.sorted};
  const SegmentSorts<Word, kSorted> sorts(job, g.stream);
  if (g.segments.offsets && g.n < KELPIE_CUB_LOOKS) {
    sorts.runFew(beyond);
  } else {
    sorts.run(g.classes, g.n < kFewElements);
  }
  return cudaGetLastError();
}

/// All by words that have all.
template <class Word, class Key>
cudaError_t gradeWords(const Grading<Key>& g, const Layout& layout, Arena& arena) {
  Word* a = arena.take<Word>(g.n);
  Word* b = arena.take<Word>(g.n);
  cub::DoubleBuffer<Word> words(a, b);
  size_t bytes = 0;
  const auto sort = [&](void* memory) {
    return cub::DeviceRadixSort::SortKeys(memory, bytes, words, static_cast<int>(g.n), layout.placeBits,
                                          layout.bits(), g.stream);
  };
  cudaError_t error = sort(nullptr);
  if (error != cudaSuccess) return error;
  void* memory = arena.take<char>(bytes);
  Results<Key> results(g, arena);
  if (!arena.begin || results.error() != cudaSuccess) return results.error();
  packWords<<<blocksFor(g.n, kTile), kThreads, 0, g.stream>>>(g.keys, a, nullptr, false, nullptr, g.n,
                                                              g.segments, layout);
  error = sort(memory);
  if (error != cudaSuccess) return error;
  return results.unpack(words.Current(), nullptr, layout);
}

/// All by words without places, which are beside them; or, `kTwice`, without segments, and then by these.
template <class Word, bool kTwice, class Key>
cudaError_t gradePairs(const Grading<Key>& g, Layout layout, Arena& arena) {
  Word* wordsA = arena.take<Word>(g.n);
  Word* wordsB = arena.take<Word>(g.n);
  auto* placesA = arena.take<uint32_t>(g.n);
  auto* placesB = arena.take<uint32_t>(g.n);
  constexpr int64_t kFew = 4096;  // are found as fast as loaded
  const bool many = kTwice && g.segments.offsets && g.segments.count > kFew;
  auto* segmentOf = many ? arena.take<uint32_t>(g.n) : nullptr;
  cub::DoubleBuffer<Word> words(wordsA, wordsB);
  cub::DoubleBuffer<uint32_t> places(placesA, placesB);
  // Words have had their time when segments are sorted by.
  cub::DoubleBuffer<uint32_t> segments(reinterpret_cast<uint32_t*>(wordsA),
                                       reinterpret_cast<uint32_t*>(wordsB));
  const int segmentBits = layout.segmentBits;
  layout.placeBits = 0;
  if (kTwice) layout.segmentBits = 0;
  const auto count = static_cast<int>(g.n);
  size_t bytes = 0, segmentBytes = 0;
  const auto sort = [&](void* memory) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, words, places, count, 0, layout.bits(), g.stream);
  };
  const auto sortSegments = [&](void* memory) {
    return cub::DeviceRadixSort::SortPairs(memory, segmentBytes, segments, places, count, 0, segmentBits,
                                           g.stream);
  };
  cudaError_t error = sort(nullptr);
  if (error == cudaSuccess && kTwice) error = sortSegments(nullptr);
  if (error != cudaSuccess) return error;
  void* memory = arena.take<char>(std::max(bytes, segmentBytes));
  Results<Key> results(g, arena);
  if (!arena.begin || results.error() != cudaSuccess) return results.error();

  packWords<<<blocksFor(g.n, kTile), kThreads, 0, g.stream>>>(g.keys, wordsA, placesA, kTwice, segmentOf, g.n,
                                                              g.segments, layout);
  error = sort(memory);
  if (error != cudaSuccess) return error;
  if constexpr (kTwice) {
    segmentsOfPlaces<<<g.blocks(), kThreads, 0, g.stream>>>(places.Current(), segmentOf, segments.Current(),
                                                            g.n, g.segments);
    error = sortSegments(memory);
    if (error != cudaSuccess) return error;
    placesInSegments<<<g.blocks(), kThreads, 0, g.stream>>>(places.Current(), segments.Current(), g.order,
                                                            g.ranks, g.keys, g.sorted, g.n, g.segments);
    return cudaGetLastError();
  } else {
    return results.unpack(words.Current(), places.Current(), layout);
  }
}

/// Keys alone, of one segment.
template <class Key>
cudaError_t sortKeys(const Grading<Key>& g, const Layout& layout, Arena& arena) {
  size_t bytes = 0;
  const auto sort = [&](void* memory) {
    return cub::DeviceRadixSort::SortKeys(memory, bytes, g.keys, g.sorted, static_cast<int>(g.n), layout.low,
                                          layout.low + layout.keyBits, g.stream);
  };
  const cudaError_t error = sort(nullptr);
  if (error != cudaSuccess) return error;
  void* memory = arena.take<char>(bytes);
  return arena.begin ? sort(memory) : cudaSuccess;
}

/// How the elements of one segment, or of several together, are sorted: as the head of this file has it.
enum class How : uint8_t { Words32, Words64, Pairs32, Pairs64, Twice };

/// 32 bits beside places are sorted in 0.9 of the time that 64 with places take.
How howFor(const Layout& l) {
  if (l.bits() <= 32) return How::Words32;
  if (l.keyBits + l.segmentBits <= 32) return How::Pairs32;
  if (l.bits() <= 64) return How::Words64;
  return l.keyBits + l.segmentBits <= 64 ? How::Pairs64 : How::Twice;
}
template <class Key>
cudaError_t gradeTogether(How how, const Grading<Key>& g, const Layout& layout, Arena arena, size_t& bytes) {
  cudaError_t error = cudaErrorInvalidValue;
  switch (how) {
    case How::Words32:
      error = gradeWords<uint32_t>(g, layout, arena);
      break;
    case How::Words64:
      error = gradeWords<uint64_t>(g, layout, arena);
      break;
    case How::Pairs32:
      error = gradePairs<uint32_t, false>(g, layout, arena);
      break;
    case How::Pairs64:
      error = gradePairs<uint64_t, false>(g, layout, arena);
      break;
    case How::Twice:
      error = gradePairs<uint64_t, true>(g, layout, arena);
  }
  bytes = std::max(bytes, arena.total);
  return error;
}
template <class Key>
cudaError_t gradeApart(const Grading<Key>& g, Layout layout, int64_t longest, unsigned* beyond) {
  cudaError_t error = cudaSuccess;
  if constexpr (std::is_integral_v<Key>) {
    if (g.sorted)
      error = layout.keyBits <= 32 ? gradeSegments<uint32_t, Sorted::Keys>(g, layout, beyond)
                                   : gradeSegments<uint64_t, Sorted::Keys>(g, layout, beyond);
  }
  if (error != cudaSuccess || !g.ofPlaces()) return error;
  layout.placeBits = bitsFor(std::min(longest, kLongest));
  const int bits = layout.keyBits + layout.placeBits;
  if (bits <= 32) return gradeSegments<uint32_t, Sorted::Words>(g, layout, beyond);
  if (bits <= 64) return gradeSegments<uint64_t, Sorted::Words>(g, layout, beyond);
  return gradeSegments<uint64_t, Sorted::Pairs>(g, layout, beyond);
}

/// Segments that are too long for groups, and elements in all of them.
struct Beyond {
  Segments segments;
  int64_t elements = 0;
};

/// Looks at keys and segments; waits.
template <class Key>
cudaError_t look(Grading<Key>& g, Arena& arena, Layout& layout, int64_t& longest, Beyond& beyond) {
  auto* place = arena.take<Seen>(1);
  const int64_t most = g.segments.offsets ? g.n / kLongest : 0;  // segments that are too long
  auto* offsets = arena.take<int64_t>(most);
  auto* origins = arena.take<int64_t>(most);
  if (!arena.begin) return cudaSuccess;
  Seen* seen = seenByHost();
  if (!seen) return cudaErrorMemoryAllocation;
  cudaError_t error = cudaMemsetAsync(place, 0, sizeof *place, g.stream);
  if (error != cudaSuccess) return error;
  constexpr unsigned kMostBlocks = 1024;
  see<<<std::min(g.blocks(), kMostBlocks), kThreads, 0, g.stream>>>(g.keys, g.n, g.segments, place, offsets,
                                                                    origins);
  error = cudaMemcpyAsync(seen, place, sizeof *seen, cudaMemcpyDeviceToHost, g.stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(g.stream);
  if (error != cudaSuccess) return error;
  if (g.segments.offsets) {
    longest = seen->longest;
    g.classes = seen->classes;
    const auto count = static_cast<int64_t>(seen->beyond / Seen::kBeyond);
    if (count > 0 && g.n < kFewElements) {
      g.classes = 0;
    } else {
      beyond = {{offsets, 0, count, origins}, static_cast<int64_t>(seen->beyond % Seen::kBeyond)};
    }
  }
  layout.mask = seen->mask != 0 ? seen->mask : 1;
  while ((layout.mask >> layout.low & 1) == 0) ++layout.low;
  layout.keyBits = 64 - layout.low;
  while (layout.keyBits > 1 && (layout.mask >> (layout.low + layout.keyBits - 1) & 1) == 0) --layout.keyBits;
  return cudaSuccess;
}

/// Segments of few elements, whatever their lengths are; waits. `sorted`: whether that did it, or some were
/// too long.
template <class Key>
cudaError_t gradeUnseen(const Grading<Key>& g, const Layout& layout, bool& sorted) {
  Seen* seen = seenByHost();
  if (!seen) return cudaErrorMemoryAllocation;
  seen->classes = 0;
  cudaError_t error = gradeApart(g, layout, kLongest, &seen->classes);
  if (error == cudaSuccess) error = cudaStreamSynchronize(g.stream);
  sorted = seen->classes == 0;
  return error;
}

template <class Key>
int grade(Grading<Key> g, void* scratch, uint64_t* scratchBytes, int* waits) {
  Arena arena{static_cast<char*>(scratch)};
  arena.take<char>(1);  // none at all would ask
  Layout layout;
  layout.keyBits = 8 * static_cast<int>(sizeof(Key));
  layout.mask = ~0ull;
  // No segment is longer; those of one length are all too long for groups, or none is.
  int64_t longest = g.segments.length > 0 ? g.segments.length : g.n;
  Beyond beyond{g.segments, longest > kLongest || !g.segments.several() ? g.n : 0};
  g.classes = 1u << classOf(longest);
  static_assert(KELPIE_CUB_FEW <= kLongest);
  const bool looks = g.n >= KELPIE_CUB_LOOKS;
  const bool unseen = !looks && g.segments.offsets && g.n > KELPIE_CUB_FEW;
  cudaError_t error = cudaSuccess;
  if (looks) error = look(g, arena, layout, longest, beyond);
  if (unseen && scratch) {
    bool sorted = false;
    error = gradeUnseen(g, layout, sorted);
    if (sorted) beyond.elements = 0;
  }
  if (error != cudaSuccess) return error;
  *waits = scratch && (looks || unseen) ? 1 : 0;
  if constexpr (std::is_integral_v<Key>) {
    if (!g.ofPlaces() && !g.segments.several()) {
      error = sortKeys(g, layout, arena);
      if (!scratch) *scratchBytes = arena.total;
      return error;
    }
  }
  size_t bytes = arena.total;
  if (scratch && !unseen && g.segments.several() && (g.classes & ((1u << kClasses) - 1)) != 0)
    error = gradeApart(g, layout, longest, nullptr);
  if (beyond.elements > 0) {
    layout.segmentBits = beyond.segments.several() ? bitsFor(beyond.segments.count) : 0;
    layout.placeBits = g.ofPlaces() ? bitsFor(longest) : 0;
    g.segments = beyond.segments;
    g.n = beyond.elements;
    const How hows[] = {How::Words32, How::Words64, How::Pairs32, How::Pairs64, How::Twice};
    for (const How how : hows) {
      // Without memory, all that looking may come to.
      const bool possible =
          scratch || !looks ? how == howFor(layout) : how != How::Twice || g.segments.several();
      if (possible && error == cudaSuccess) error = gradeTogether(how, g, layout, arena, bytes);
    }
  }
  if (!scratch) *scratchBytes = bytes;
  return error;
}

template <class Key>
int gradeKeys(int kind, const void* keys, int64_t* order, void* sorted, int64_t* ranks, int64_t n,
              const Segments& segments, void* scratch, uint64_t* scratchBytes, void* stream, int* waits) {
  return grade(Grading<Key>{static_cast<const Key*>(keys), order, static_cast<Key*>(sorted), ranks, n,
                            segments, kind, static_cast<cudaStream_t>(stream)},
               scratch, scratchBytes, waits);
}

}  // namespace

extern "C" int kelpie_cub_grade(int kind, const void* keys, int64_t* order, void* sorted, int64_t* ranks,
                                int64_t elements, int64_t segments, const int64_t* offsets, int64_t length,
                                const void* failure, void* scratch, uint64_t* scratchBytes, void* stream,
                                int* waits) {
  constexpr decltype(&gradeKeys<uint8_t>) kByKind[] = {
      gradeKeys<uint8_t>, gradeKeys<int32_t>, gradeKeys<int64_t>, gradeKeys<float>, gradeKeys<double>};
  if (kind < 1 || kind > 5) return cudaErrorInvalidValue;
  *waits = 0;
  const Segments all{offsets, length, segments, nullptr, static_cast<const unsigned long long*>(failure)};
  const int error = kByKind[kind - 1](kind, keys, order, sorted, ranks, elements, all, scratch, scratchBytes,
                                      stream, waits);
  // The runtime would keep it, and give it as that of a later call.
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

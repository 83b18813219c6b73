// What lcu::Grade sorts by: a word for each element, whose bits hold, from the most significant on,
//
//   the number of its segment | those bits of its key in which keys differ | its place in its segment
//
// as far as they fit. One sort of such words is stable, whatever sorts them, and needs no second array for
// the places. Keys are unsigned integers in the same order (NaN after all numbers, -0.0 equal to 0.0).
#pragma once

#include <cstdint>
#include <type_traits>

namespace kelpie::grade {

__device__ inline uint32_t ordered(uint8_t x) { return x; }
__device__ inline uint32_t ordered(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000u; }
__device__ inline uint64_t ordered(int64_t x) { return static_cast<uint64_t>(x) ^ 0x8000000000000000ull; }
__device__ inline uint32_t ordered(float x) {
  if (x != x) return 0xffffffffu;
  const uint32_t bits = __float_as_uint(x == 0.0f ? 0.0f : x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline uint64_t ordered(double x) {
  if (x != x) return 0xffffffffffffffffull;
  const uint64_t bits = static_cast<uint64_t>(__double_as_longlong(x == 0.0 ? 0.0 : x));
  return bits & 0x8000000000000000ull ? ~bits : bits | 0x8000000000000000ull;
}

/// The keys that `ordered` gave.
__device__ inline uint8_t unordered(uint32_t x, uint8_t) { return static_cast<uint8_t>(x); }
__device__ inline int32_t unordered(uint32_t x, int32_t) { return static_cast<int32_t>(x ^ 0x80000000u); }
__device__ inline int64_t unordered(uint64_t x, int64_t) {
  return static_cast<int64_t>(x ^ 0x8000000000000000ull);
}

/// Segments of elements: one, or those of equal length, or those that offsets tell.
struct Segments {
  const int64_t* offsets = nullptr;
  int64_t length = 0, count = 1;
  /// Null, or where each begins in another array, of which these elements are a part.
  const int64_t* origins = nullptr;
  /// Null, or a word that is not 0 once the launch has failed that was to make `offsets`.
  const unsigned long long* error = nullptr;

  /// These; after an error, all without elements.
  __device__ Segments sound() const {
    if (!error || *error == 0) return *this;
    return {nullptr, 0, count, nullptr, nullptr};
  }
  __host__ __device__ bool several() const { return offsets || length > 0; }
  /// The segment of an element, which is one of low..high-1.
  __device__ int64_t of(int64_t element, int64_t low, int64_t high) const {
    if (!offsets) return length > 0 ? static_cast<uint32_t>(element) / static_cast<uint32_t>(length) : 0;
    while (high - low > 1) {  // the last segment that begins at or before the element
      const int64_t middle = (low + high) / 2;
      (offsets[middle] <= element ? low : high) = middle;
    }
    return low;
  }
  __device__ int64_t begin(int64_t segment) const { return offsets ? offsets[segment] : segment * length; }
  /// Where an element of a segment is in the other array.
  __device__ int64_t original(int64_t element, int64_t segment) const {
    return origins ? origins[segment] + element - begin(segment) : element;
  }
};

/// Which bits a word has.
struct Layout {
  int low = 0, keyBits = 0;     ///< of keys
  int segmentBits = 0;          ///< 0: no segments
  int placeBits = 0;            ///< 0: no places, or none but 0
  unsigned long long mask = 0;  ///< the bits in which keys differ are among these
  __host__ __device__ int bits() const { return segmentBits + keyBits + placeBits; }
};
/// The lowest bits of a word.
template <class Word>
__host__ __device__ Word lowest(int bits) {
  return bits >= 8 * static_cast<int>(sizeof(Word)) ? ~Word(0) : (Word(1) << bits) - 1;
}

/// Those bits of a key that words have.
template <class Word, class Key>
__device__ Word keyBitsOf(Key key, const Layout& layout) {
  return static_cast<Word>(ordered(key) >> layout.low) & lowest<Word>(layout.keyBits);
}
/// The key that has them; bits beside the mask are those of `any` key.
template <class Word, class Key>
__device__ Key keyOfBits(Word bits, Key any, const Layout& layout) {
  auto key = ordered(any);
  using Bits = decltype(key);
  key &= ~static_cast<Bits>(layout.mask);
  key |= static_cast<Bits>(bits & lowest<Word>(layout.keyBits)) << layout.low;
  return unordered(key, Key());
}

constexpr int kThreads = 256;
constexpr int kTile = 16 * kThreads;  ///< elements of a block

/// Words of elements. `places`, null or not: elements' places in their segments, or, `wholePlaces`, in all.
/// `segmentOf`, null or not: the numbers of their segments.
template <class Key, class Word>
__global__ void packWords(const Key* keys, Word* words, uint32_t* places, bool wholePlaces,
                          uint32_t* segmentOf, int64_t n, Segments segments, Layout layout) {
  // The segments of a tile are found once; those of its elements are among them.
  __shared__ int64_t ends[2];
  const int64_t from = int64_t(blockIdx.x) * kTile, to = from + kTile < n ? from + kTile : n;
  if (segments.offsets) {
    if (threadIdx.x % 32 == 0 && threadIdx.x < 64)
      ends[threadIdx.x / 32] = segments.of(threadIdx.x == 0 ? from : to - 1, 0, segments.count);
    __syncthreads();
  }
  for (int64_t k = from + threadIdx.x; k < to; k += kThreads) {
    int64_t segment = 0, place = k;
    if (segments.several()) {
      segment = segments.of(k, ends[0], ends[1] + 1);
      place = k - segments.begin(segment);
    }
    Word word = keyBitsOf<Word>(keys[segments.original(k, segment)], layout);
    if (layout.segmentBits > 0) word |= static_cast<Word>(segment) << layout.keyBits;
    if (layout.placeBits > 0) word = word << layout.placeBits | static_cast<Word>(place);
    words[k] = word;
    if (places) places[k] = static_cast<uint32_t>(wholePlaces ? k : place);
    if (segmentOf) segmentOf[k] = static_cast<uint32_t>(segment);
  }
}

/// The places that words end with, or those beside them, as order; and, where they are, the numbers of
/// elements in their segments as ranks. Either may be null.
template <class Word>
__global__ void unpackPlaces(const Word* words, const uint32_t* places, int64_t* order, int64_t* ranks,
                             int64_t n, Segments segments, Layout layout) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= n) return;
  int64_t segment = 0;
  if (layout.segmentBits > 0 && (ranks || segments.origins))
    segment = static_cast<int64_t>(words[k] >> (layout.keyBits + layout.placeBits));
  const uint32_t place =
      places ? places[k] : static_cast<uint32_t>(words[k] & lowest<Word>(layout.placeBits));
  const int64_t begin = segments.begin(segment), original = segments.original(begin, segment);
  if (order) order[original + k - begin] = place;
  if (ranks) ranks[original + place] = k - begin;
}
/// The keys that words have.
template <class Key, class Word>
__global__ void unpackKeys(const Word* words, const Key* keys, Key* out, int64_t n, Segments segments,
                           Layout layout) {
  const int64_t k = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (k >= n) return;
  int64_t segment = 0;
  if (layout.segmentBits > 0 && segments.origins)
    segment = static_cast<int64_t>(words[k] >> (layout.keyBits + layout.placeBits));
  out[segments.original(k, segment)] = keyOfBits(words[k] >> layout.placeBits, keys[0], layout);
}

}  // namespace kelpie::grade

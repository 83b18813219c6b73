#include "runtime/host_grade.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace kelpie::runtime {
namespace {

constexpr int64_t kRadixThreshold = 4096;       ///< longer segments are sorted digit by digit
constexpr int64_t kParallelThreshold = 131072;  ///< longer segments by all threads together
constexpr int64_t kWorthThreads = 32768;        ///< fewer elements are not worth waking threads for
constexpr size_t kBuckets = 256;

template <typename Unsigned>
constexpr Unsigned topBit() {
  return Unsigned{1} << (sizeof(Unsigned) * 8 - 1);
}

template <typename Unsigned, typename Int>
Unsigned orderedInt(Int v) {
  return static_cast<Unsigned>(v) ^ topBit<Unsigned>();
}

template <typename Unsigned, typename Float>
Unsigned orderedFloat(Float v) {
  if (std::isnan(v)) return std::numeric_limits<Unsigned>::max();
  if (v == 0) v = 0;  // -0.0 as 0.0
  Unsigned bits;
  std::memcpy(&bits, &v, sizeof bits);
  return (bits & topBit<Unsigned>()) != 0 ? ~bits : bits | topBit<Unsigned>();
}

uint8_t ordered(uint8_t v) { return v; }
uint32_t ordered(int32_t v) { return orderedInt<uint32_t>(v); }
uint64_t ordered(int64_t v) { return orderedInt<uint64_t>(v); }
uint32_t ordered(float v) { return orderedFloat<uint32_t>(v); }
uint64_t ordered(double v) { return orderedFloat<uint64_t>(v); }

template <typename Key>
struct Item {
  Key key;
  int64_t position;
};

/// Stable sort of items by one digit: counts by chunk, prefix over (digit, chunk), scatter by chunk.
template <typename Key>
void digitPass(const Item<Key>* from, Item<Key>* to, int64_t n, int shift, int64_t chunks) {
  const int64_t chunk = (n + chunks - 1) / chunks;
  std::vector<std::array<int64_t, kBuckets>> counts(static_cast<size_t>(chunks));
#pragma omp parallel for schedule(static) if (chunks > 1)
  for (int64_t c = 0; c < chunks; ++c) {
    auto& count = counts[static_cast<size_t>(c)];
    count.fill(0);
    const int64_t end = std::min(n, (c + 1) * chunk);
    for (int64_t e = c * chunk; e < end; ++e) ++count[(from[e].key >> shift) & 0xff];
  }
  int64_t position = 0;
  for (size_t d = 0; d < kBuckets; ++d) {
    for (auto& count : counts) {
      const int64_t here = count[d];
      count[d] = position;
      position += here;
    }
  }
#pragma omp parallel for schedule(static) if (chunks > 1)
  for (int64_t c = 0; c < chunks; ++c) {
    auto& next = counts[static_cast<size_t>(c)];
    const int64_t end = std::min(n, (c + 1) * chunk);
    for (int64_t e = c * chunk; e < end; ++e) to[next[(from[e].key >> shift) & 0xff]++] = from[e];
  }
}

template <typename Key, typename T>
void radixSort(const T* keys, int64_t* order, int64_t n) {
  const bool parallel = n > kParallelThreshold;
  std::vector<Item<Key>> items(static_cast<size_t>(n)), other(static_cast<size_t>(n));
  Key all = std::numeric_limits<Key>::max(), any = 0;
#pragma omp parallel for schedule(static) reduction(& : all) reduction(| : any) if (parallel)
  for (int64_t e = 0; e < n; ++e) {
    const Key key = ordered(keys[e]);
    items[static_cast<size_t>(e)] = {key, e};
    all &= key;
    any |= key;
  }
  const Key differing = all ^ any;
  const int64_t chunks = parallel ? std::clamp<int64_t>(n / 65536, 1, 64) : 1;
  for (int shift = 0; shift < static_cast<int>(sizeof(Key) * 8); shift += 8) {
    if (((differing >> shift) & 0xff) == 0) continue;
    digitPass(items.data(), other.data(), n, shift, chunks);
    items.swap(other);
  }
#pragma omp parallel for schedule(static) if (parallel)
  for (int64_t e = 0; e < n; ++e) order[e] = items[static_cast<size_t>(e)].position;
}

template <typename T>
void comparisonSort(const T* keys, int64_t* order, int64_t n) {
  for (int64_t e = 0; e < n; ++e) order[e] = e;
  if (n < 2) return;
  auto less = [&](int64_t a, int64_t b) { return ordered(keys[a]) < ordered(keys[b]); };
  if (n <= 32) {  // without the memory that stable_sort asks for
    for (int64_t e = 1; e < n; ++e) {
      const int64_t item = order[e];
      int64_t to = e;
      for (; to > 0 && less(item, order[to - 1]); --to) order[to] = order[to - 1];
      order[to] = item;
    }
    return;
  }
  std::stable_sort(order, order + n, less);
}

template <typename T>
void gradeTyped(const GradeRequest& r, int64_t* order) {
  using Key = decltype(ordered(T{}));
  const T* keys = static_cast<const T*>(r.keys);
  const auto* offsets = static_cast<const int64_t*>(r.offsets);
  const bool flat = r.space == lcu::SpaceKind::Flat;
  const int64_t segments = flat ? 1 : r.extents.segments;
  auto start = [&](int64_t s) {
    if (flat) return s == 0 ? 0 : r.extents.elements;
    return offsets ? offsets[s] : s * r.extents.length;
  };
#pragma omp parallel for schedule(dynamic, 16) if (segments > 1 && r.extents.elements > kWorthThreads)
  for (int64_t s = 0; s < segments; ++s) {
    const int64_t begin = start(s), n = start(s + 1) - begin;
    if (n <= kRadixThreshold) {
      comparisonSort(keys + begin, order + begin, n);
    } else if (n <= kParallelThreshold) {
      radixSort<Key>(keys + begin, order + begin, n);
    }
  }
  if (r.extents.elements > kParallelThreshold) {
    for (int64_t s = 0; s < segments; ++s) {
      const int64_t begin = start(s), n = start(s + 1) - begin;
      if (n > kParallelThreshold) radixSort<Key>(keys + begin, order + begin, n);
    }
  }
  if (!r.sorted) return;
  T* sorted = static_cast<T*>(r.sorted);
  const int64_t n = r.extents.elements;
#pragma omp parallel for schedule(static) if (n > kWorthThreads)
  for (int64_t e = 0; e < n; ++e) sorted[e] = keys[order[e]];
}

template <typename T>
void gradeTyped(const GradeRequest& request) {
  if (request.order) return gradeTyped<T>(request, static_cast<int64_t*>(request.order));
  std::vector<int64_t> order(static_cast<size_t>(request.extents.elements));
  gradeTyped<T>(request, order.data());
}

}  // namespace

void gradeOnHost(const GradeRequest& request) {
  switch (request.type) {
    case ScalarType::Bool:
    case ScalarType::Char:
      return gradeTyped<uint8_t>(request);
    case ScalarType::Int32:
      return gradeTyped<int32_t>(request);
    case ScalarType::Int64:
      return gradeTyped<int64_t>(request);
    case ScalarType::Float32:
      return gradeTyped<float>(request);
    case ScalarType::Float64:
      return gradeTyped<double>(request);
  }
}

}  // namespace kelpie::runtime

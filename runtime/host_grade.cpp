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
void digitPass(const Item<Key>* from, Item<Key>* to, int64_t n, int shift, int64_t chunks, ThreadTeam& team) {
  const int64_t chunk = (n + chunks - 1) / chunks;
  std::vector<std::array<int64_t, kBuckets>> counts(static_cast<size_t>(chunks));
  team.forEach(chunks, [&](int64_t c) {
    auto& count = counts[static_cast<size_t>(c)];
    count.fill(0);
    const int64_t end = std::min(n, (c + 1) * chunk);
    for (int64_t e = c * chunk; e < end; ++e) ++count[(from[e].key >> shift) & 0xff];
  });
  int64_t position = 0;
  for (size_t d = 0; d < kBuckets; ++d) {
    for (auto& count : counts) {
      const int64_t here = count[d];
      count[d] = position;
      position += here;
    }
  }
  team.forEach(chunks, [&](int64_t c) {
    auto& next = counts[static_cast<size_t>(c)];
    const int64_t end = std::min(n, (c + 1) * chunk);
    for (int64_t e = c * chunk; e < end; ++e) to[next[(from[e].key >> shift) & 0xff]++] = from[e];
  });
}

/// `team` is used for long sequences only: shorter ones are sorted by one of its threads.
template <typename Key, typename T>
void radixSort(const T* keys, int64_t* order, int64_t n, ThreadTeam& team) {
  const int64_t chunks = n > kParallelThreshold ? std::clamp<int64_t>(n / 65536, 1, 64) : 1;
  std::vector<Item<Key>> items(static_cast<size_t>(n)), other(static_cast<size_t>(n));
  std::vector<Key> all(static_cast<size_t>(chunks)), any(static_cast<size_t>(chunks));
  const int64_t chunk = (n + chunks - 1) / chunks;
  team.forEach(chunks, [&](int64_t c) {
    Key inAll = std::numeric_limits<Key>::max(), inAny = 0;
    for (int64_t e = c * chunk; e < std::min(n, (c + 1) * chunk); ++e) {
      const Key key = ordered(keys[e]);
      items[static_cast<size_t>(e)] = {key, e};
      inAll &= key;
      inAny |= key;
    }
    all[static_cast<size_t>(c)] = inAll;
    any[static_cast<size_t>(c)] = inAny;
  });
  Key inAll = std::numeric_limits<Key>::max(), inAny = 0;
  for (Key k : all) inAll &= k;
  for (Key k : any) inAny |= k;
  const Key differing = inAll ^ inAny;
  for (int shift = 0; shift < static_cast<int>(sizeof(Key) * 8); shift += 8) {
    if (((differing >> shift) & 0xff) == 0) continue;
    digitPass(items.data(), other.data(), n, shift, chunks, team);
    items.swap(other);
  }
  team.forEach(chunks, [&](int64_t c) {
    for (int64_t e = c * chunk; e < std::min(n, (c + 1) * chunk); ++e)
      order[e] = items[static_cast<size_t>(e)].position;
  });
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
void gradeTyped(const GradeRequest& r, int64_t* order, ThreadTeam& team) {
  using Key = decltype(ordered(T{}));
  const T* keys = static_cast<const T*>(r.keys);
  const auto* offsets = static_cast<const int64_t*>(r.offsets);
  const bool flat = r.space == lcu::SpaceKind::Flat;
  const int64_t segments = flat ? 1 : r.extents.segments;
  auto start = [&](int64_t s) {
    if (flat) return s == 0 ? 0 : r.extents.elements;
    return offsets ? offsets[s] : s * r.extents.length;
  };
  constexpr int64_t kSegmentsAtOnce = 16;
  team.forEach((segments + kSegmentsAtOnce - 1) / kSegmentsAtOnce, [&](int64_t part) {
    ThreadTeam alone(1);
    for (int64_t s = part * kSegmentsAtOnce; s < std::min(segments, (part + 1) * kSegmentsAtOnce); ++s) {
      const int64_t begin = start(s), n = start(s + 1) - begin;
      if (n <= kRadixThreshold) {
        comparisonSort(keys + begin, order + begin, n);
      } else if (n <= kParallelThreshold) {
        radixSort<Key>(keys + begin, order + begin, n, alone);
      }
    }
  });
  if (r.extents.elements > kParallelThreshold) {
    for (int64_t s = 0; s < segments; ++s) {
      const int64_t begin = start(s), n = start(s + 1) - begin;
      if (n > kParallelThreshold) radixSort<Key>(keys + begin, order + begin, n, team);
    }
  }
  if (!r.sorted) return;
  T* sorted = static_cast<T*>(r.sorted);
  const int64_t n = r.extents.elements;
  constexpr int64_t kElementsAtOnce = 4096;
  team.forEach((n + kElementsAtOnce - 1) / kElementsAtOnce, [&](int64_t part) {
    const int64_t end = std::min(n, (part + 1) * kElementsAtOnce);
    for (int64_t e = part * kElementsAtOnce; e < end; ++e) sorted[e] = keys[order[e]];
  });
}

template <typename T>
void gradeTyped(const GradeRequest& request, ThreadTeam& team) {
  if (request.order) return gradeTyped<T>(request, static_cast<int64_t*>(request.order), team);
  std::vector<int64_t> order(static_cast<size_t>(request.extents.elements));
  gradeTyped<T>(request, order.data(), team);
}

}  // namespace

void gradeOnHost(const GradeRequest& request, ThreadTeam& team) {
  switch (request.type) {
    case ScalarType::Bool:
    case ScalarType::Char:
      return gradeTyped<uint8_t>(request, team);
    case ScalarType::Int32:
      return gradeTyped<int32_t>(request, team);
    case ScalarType::Int64:
      return gradeTyped<int64_t>(request, team);
    case ScalarType::Float32:
      return gradeTyped<float>(request, team);
    case ScalarType::Float64:
      return gradeTyped<double>(request, team);
  }
}

}  // namespace kelpie::runtime

#include "runtime/host_grade.h"

#include <algorithm>
#include <memory>

#include "runtime/host_radix_sort.h"

namespace kelpie::runtime {
namespace {

constexpr int64_t kRadixThreshold = 4096;       ///< longer segments are sorted digit by digit
constexpr int64_t kParallelThreshold = 131072;  ///< longer segments by all threads together

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
void gradeSegments(const GradeRequest& r, int64_t* order, ThreadTeam& team) {
  auto* ranks = static_cast<int64_t*>(r.ranks);
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
    SortingMemory memory;
    for (int64_t s = part * kSegmentsAtOnce; s < std::min(segments, (part + 1) * kSegmentsAtOnce); ++s) {
      const int64_t begin = start(s), n = start(s + 1) - begin;
      if (n <= kRadixThreshold) {
        comparisonSort(keys + begin, order + begin, n);
        for (int64_t e = 0; ranks && e < n; ++e) ranks[begin + order[begin + e]] = e;
      } else if (n <= kParallelThreshold) {
        RadixSort<T>(keys + begin, n, alone, memory).grade(order + begin, ranks ? ranks + begin : nullptr);
      }
    }
  });
  if (r.extents.elements <= kParallelThreshold) return;
  SortingMemory memory(r.scratch);
  for (int64_t s = 0; s < segments; ++s) {
    const int64_t begin = start(s), n = start(s + 1) - begin;
    if (n > kParallelThreshold)
      RadixSort<T>(keys + begin, n, team, memory).grade(order + begin, ranks ? ranks + begin : nullptr);
  }
}

template <typename T>
void gradeTyped(const GradeRequest& r, ThreadTeam& team) {
  const T* keys = static_cast<const T*>(r.keys);
  T* sorted = static_cast<T*>(r.sorted);
  auto* ranks = static_cast<int64_t*>(r.ranks);
  const int64_t n = r.extents.elements;
  const bool flat = r.space == lcu::SpaceKind::Flat;
  SortingMemory memory(r.scratch);
  if (flat && n > kParallelThreshold && !(sorted && (r.order || ranks))) {
    if constexpr (std::is_integral_v<T>) {
      if (sorted) return RadixSort<T>(keys, n, team, memory).sort(sorted);
    }
    if (!sorted) return RadixSort<T>(keys, n, team, memory).grade(static_cast<int64_t*>(r.order), ranks);
  }
  std::unique_ptr<int64_t[]> own;
  if (!r.order) own = std::make_unique_for_overwrite<int64_t[]>(static_cast<size_t>(n));
  int64_t* order = r.order ? static_cast<int64_t*>(r.order) : own.get();
  gradeSegments<T>(r, order, team);
  if (!sorted) return;
  constexpr int64_t kElementsAtOnce = 4096;
  team.forEach((n + kElementsAtOnce - 1) / kElementsAtOnce, [&](int64_t part) {
    const int64_t end = std::min(n, (part + 1) * kElementsAtOnce);
    for (int64_t e = part * kElementsAtOnce; e < end; ++e) sorted[e] = keys[order[e]];
  });
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

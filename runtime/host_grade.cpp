#include "runtime/host_grade.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

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

/// What is wanted of one segment, or of all: each null or where its results begin.
template <typename T>
struct Results {
  int64_t *order, *ranks;
  T* sorted;
  Results at(int64_t begin) const {
    return {order ? order + begin : nullptr, ranks ? ranks + begin : nullptr,
            sorted ? sorted + begin : nullptr};
  }
};

/// Of a short segment. `space`: for an order that nobody wants.
template <typename T>
void gradeShort(const T* keys, int64_t n, const Results<T>& to, std::vector<int64_t>& space) {
  if constexpr (std::is_integral_v<T>) {
    if (!to.order && !to.ranks) {
      std::copy_n(keys, n, to.sorted);
      std::sort(to.sorted, to.sorted + n);
      return;
    }
  }
  if (!to.order) space.resize(static_cast<size_t>(n));
  int64_t* order = to.order ? to.order : space.data();
  comparisonSort(keys, order, n);
  for (int64_t e = 0; e < n; ++e) {
    if (to.ranks) to.ranks[order[e]] = e;
    if (to.sorted) to.sorted[e] = keys[order[e]];
  }
}

/// Of a long one.
template <typename T>
void gradeLong(const T* keys, int64_t n, const Results<T>& to, ThreadTeam& team, SortingMemory& memory) {
  const RadixSort<T> sort(keys, n, team, memory);
  if (to.order || to.ranks) sort.grade(to.order, to.ranks);
  if constexpr (std::is_integral_v<T>) {
    if (!to.sorted) return;
    if (!to.order) return sort.sort(to.sorted);
    constexpr int64_t kElementsAtOnce = 4096;
    team.forEach((n + kElementsAtOnce - 1) / kElementsAtOnce, [&](int64_t part) {
      const int64_t end = std::min(n, (part + 1) * kElementsAtOnce);
      for (int64_t e = part * kElementsAtOnce; e < end; ++e) to.sorted[e] = keys[to.order[e]];
    });
  }
}

template <typename T>
void gradeTyped(const GradeRequest& r, ThreadTeam& team) {
  const T* keys = static_cast<const T*>(r.keys);
  const auto* offsets = static_cast<const int64_t*>(r.offsets);
  const Results<T> to{static_cast<int64_t*>(r.order), static_cast<int64_t*>(r.ranks),
                      static_cast<T*>(r.sorted)};
  const bool flat = r.space == lcu::SpaceKind::Flat;
  const int64_t segments = flat ? 1 : r.extents.segments;
  auto start = [&](int64_t s) {
    if (flat) return s == 0 ? 0 : r.extents.elements;
    return offsets ? offsets[s] : s * r.extents.length;
  };
  constexpr int64_t kSegmentsAtOnce = 16;
  const auto gradePart = [&](int64_t part) {
    ThreadTeam alone(1);
    SortingMemory memory;
    std::vector<int64_t> space;
    for (int64_t s = part * kSegmentsAtOnce; s < std::min(segments, (part + 1) * kSegmentsAtOnce); ++s) {
      const int64_t begin = start(s), n = start(s + 1) - begin;
      if (n <= kRadixThreshold) {
        gradeShort(keys + begin, n, to.at(begin), space);
      } else if (n <= kParallelThreshold) {
        gradeLong(keys + begin, n, to.at(begin), alone, memory);
      }
    }
  };
  std::atomic<bool> outOfMemory = false;  // work of a team must not throw
  team.forEach((segments + kSegmentsAtOnce - 1) / kSegmentsAtOnce, [&](int64_t part) {
    try {
      gradePart(part);
    } catch (const std::bad_alloc&) {
      outOfMemory = true;
    }
  });
  if (outOfMemory) throw std::bad_alloc();
  if (r.extents.elements <= kParallelThreshold) return;
  SortingMemory memory(r.scratch);
  for (int64_t s = 0; s < segments; ++s) {
    const int64_t begin = start(s), n = start(s + 1) - begin;
    if (n > kParallelThreshold) gradeLong(keys + begin, n, to.at(begin), team, memory);
  }
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

// Sorting in the memory of the host against std::stable_sort.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "runtime/host_grade.h"
#include "tests/runtime/no_memory.h"

namespace kelpie::testing {
namespace {

using runtime::GradeRequest;

template <typename T>
bool before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  }
  return a < b;
}

template <typename T>
void expectGraded(ScalarType type, std::vector<T> keys, const std::vector<int64_t>& offsets) {
  std::vector<int64_t> order(keys.size() + 1, -1), expected(keys.size() + 1, -1);
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    auto begin = expected.begin() + offsets[s], end = expected.begin() + offsets[s + 1];
    std::iota(begin, end, 0);
    std::stable_sort(begin, end, [&](int64_t a, int64_t b) {
      return before(keys[static_cast<size_t>(offsets[s] + a)], keys[static_cast<size_t>(offsets[s] + b)]);
    });
  }
  GradeRequest request{};
  request.type = type;
  request.keys = keys.data();
  request.space = offsets.size() == 2 ? lcu::SpaceKind::Flat : lcu::SpaceKind::Offsets;
  request.extents.elements = static_cast<int64_t>(keys.size());
  request.extents.segments = static_cast<int64_t>(offsets.size()) - 1;
  request.offsets = const_cast<int64_t*>(offsets.data());
  std::vector<T> sorted(keys.size() + 1, T{}), inOrder = sorted;
  std::vector<int64_t> ranks(keys.size() + 1, -1), inPlace = ranks;
  for (size_t s = 0; s + 1 < offsets.size(); ++s)
    for (int64_t e = offsets[s]; e < offsets[s + 1]; ++e) {
      const auto place = static_cast<size_t>(offsets[s] + expected[static_cast<size_t>(e)]);
      inPlace[place] = e - offsets[s];
      inOrder[static_cast<size_t>(e)] = keys[place];
    }
  const std::vector<int64_t> noPlaces(keys.size() + 1, -1);
  const std::vector<T> noKeys(keys.size() + 1, T{});
  runtime::ThreadTeam team(2);
  // Bits: the order, the ranks, the sorted keys; of floats these are not sorted for their bits.
  for (unsigned wanted = 1; wanted < (std::is_integral_v<T> ? 8U : 4U); ++wanted) {
    request.order = (wanted & 1) != 0 ? order.data() : nullptr;
    request.ranks = (wanted & 2) != 0 ? ranks.data() : nullptr;
    request.sorted = (wanted & 4) != 0 ? sorted.data() : nullptr;
    order = ranks = noPlaces;
    sorted = noKeys;
    runtime::gradeOnHost(request, team);
    const std::string what = std::string(toString(type)) + ", " + std::to_string(keys.size()) +
                             " keys, wanted " + std::to_string(wanted);
    EXPECT_EQ(order, request.order ? expected : noPlaces) << what;
    EXPECT_EQ(ranks, request.ranks ? inPlace : noPlaces) << what;
    const std::vector<T>& keysExpected = request.sorted ? inOrder : noKeys;
    EXPECT_EQ(std::memcmp(sorted.data(), keysExpected.data(), sorted.size() * sizeof(T)), 0) << what;
  }
}

template <typename T>
void everySize(ScalarType type, const std::function<T(std::mt19937_64&)>& key) {
  std::mt19937_64 random(5);
  for (size_t n : {0u, 1u, 2u, 31u, 33u, 1000u, 4097u, 200000u}) {
    std::vector<T> keys(n);
    for (T& k : keys) k = key(random);
    expectGraded<T>(type, keys, {0, static_cast<int64_t>(n)});
    std::vector<int64_t> offsets = {0};
    while (offsets.back() < static_cast<int64_t>(n)) {
      const int64_t length =
          random() % 3 == 0 ? static_cast<int64_t>(random() % 20000) : static_cast<int64_t>(random() % 40);
      offsets.push_back(std::min(offsets.back() + length, static_cast<int64_t>(n)));
    }
    offsets.push_back(static_cast<int64_t>(n));
    expectGraded<T>(type, keys, offsets);
  }
}

TEST(Grade, Ints) {
  everySize<int64_t>(ScalarType::Int64, [](auto& r) { return static_cast<int64_t>(r()); });
  everySize<int64_t>(ScalarType::Int64, [](auto& r) { return static_cast<int64_t>(r() % 7) - 3; });
  // A few bits in the middle differ, and others than these in other bytes.
  everySize<int64_t>(ScalarType::Int64,
                     [](auto& r) { return -(int64_t{5} << 40) + (static_cast<int64_t>(r() % 300) << 20); });
  everySize<int64_t>(ScalarType::Int64, [](auto& r) {
    return static_cast<int64_t>(r() % 3) << 50 | static_cast<int64_t>(r() % 5) << 9;
  });
  everySize<int64_t>(ScalarType::Int64, [](auto& /*r*/) { return int64_t{42}; });
  everySize<int32_t>(ScalarType::Int32, [](auto& r) { return static_cast<int32_t>(r()); });
}
TEST(Grade, Chars) {
  everySize<uint8_t>(ScalarType::Char, [](auto& r) { return static_cast<uint8_t>(r()); });
}
TEST(Grade, Floats) {
  auto key = [](auto& r) -> double {
    switch (r() % 10) {
      case 0:
        return std::nan("");
      case 1:
        return -0.0;
      case 2:
        return 0.0;
      case 3:
        return -INFINITY;
      case 4:
        return INFINITY;
      default:
        return (static_cast<double>(r() % 2000) - 1000) * 1e-3;
    }
  };
  everySize<double>(ScalarType::Float64, key);
  everySize<float>(ScalarType::Float32, [key](auto& r) { return static_cast<float>(key(r)); });
}
TEST(Grade, RegularSegments) {
  std::vector<int64_t> keys = {3, 1, 2, 9, 9, 8}, order(6);
  GradeRequest request{};
  request.type = ScalarType::Int64;
  request.keys = keys.data();
  request.order = order.data();
  request.space = lcu::SpaceKind::Regular;
  request.extents = {6, 2, 3, {}};
  runtime::ThreadTeam team(2);
  runtime::gradeOnHost(request, team);
  EXPECT_EQ(order, (std::vector<int64_t>{1, 2, 0, 2, 0, 1}));
}

/// What threads lack is told to the caller.
TEST(Grade, MemoryThatThreadsLackIsTold) {
  constexpr int64_t kShort = 2000, kLong = 20000, kSegments = 256;
  std::mt19937_64 random(7);
  std::vector<int64_t> offsets = {0};
  while (offsets.size() <= kSegments)  // the first ones are sorted before the caller asks for help
    offsets.push_back(offsets.back() + (offsets.size() < kSegments / 4 ? kShort : kLong));
  std::vector<int64_t> keys(static_cast<size_t>(offsets.back())), order(keys.size());
  for (int64_t& key : keys) key = static_cast<int64_t>(random());
  GradeRequest request{};
  request.type = ScalarType::Int64;
  request.keys = keys.data();
  request.order = order.data();
  request.space = lcu::SpaceKind::Offsets;
  request.extents.elements = offsets.back();
  request.extents.segments = kSegments;
  request.offsets = offsets.data();
  runtime::ThreadTeam team(4);
  {
    const tests::NoMemoryBeyond little(size_t{1} << 17);
    EXPECT_THROW(runtime::gradeOnHost(request, team), std::bad_alloc);
  }
  EXPECT_NO_THROW(runtime::gradeOnHost(request, team));
}

}  // namespace
}  // namespace kelpie::testing

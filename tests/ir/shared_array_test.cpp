#include "ir/shared_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace kelpie {
namespace {

/// Numbers of another memory; what was read of them; whether that memory still answers.
struct Elsewhere {
  std::vector<int64_t> numbers;
  std::vector<std::pair<size_t, size_t>> reads;  ///< begin and end, in bytes
  bool answers = true, readable = false, released = false;
};

class Source final : public ElementSource {
 public:
  explicit Source(Elsewhere& from) : from_(from) {}
  ~Source() override {
    from_.released = true;
    std::ranges::fill(from_.numbers, -1);
  }
  void read(std::byte* to, size_t begin, size_t size) override {
    if (!from_.answers) throw ElementsLost("no answer");
    from_.reads.emplace_back(begin, begin + size);
    std::memcpy(to, reinterpret_cast<const std::byte*>(from_.numbers.data()) + begin, size);
  }
  const std::byte* inPlace() const override {
    return from_.readable ? reinterpret_cast<const std::byte*>(from_.numbers.data()) : nullptr;
  }

 private:
  Elsewhere& from_;
};

constexpr size_t kCount = 100'000;

Elsewhere ascending() {
  Elsewhere from;
  from.numbers.resize(kCount);
  std::iota(from.numbers.begin(), from.numbers.end(), 0);
  return from;
}

SharedArray<int64_t> arrayOf(Elsewhere& from) {
  return {std::make_unique<Source>(from), from.numbers.size()};
}

TEST(SharedArray, OfAVector) {
  const SharedArray<int64_t> none, empty(std::vector<int64_t>{}), three(std::vector<int64_t>{4, 5, 6});
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none, empty);
  EXPECT_EQ(three.back(), 6);
  EXPECT_EQ(std::vector<int64_t>(three.begin(), three.end()), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(three, SharedArray<int64_t>(std::vector<int64_t>{4, 5, 6}));
  EXPECT_FALSE(three == SharedArray<int64_t>(std::vector<int64_t>{4, 5, 7}));
  EXPECT_FALSE(three == empty);
}

TEST(SharedArray, BringsWhatIsLookedAt) {
  Elsewhere from = ascending();
  const SharedArray<int64_t> array = arrayOf(from);
  EXPECT_EQ(array.size(), kCount);
  EXPECT_TRUE(from.reads.empty());
  const SharedArray<int64_t> copy = array;
  EXPECT_EQ(copy[7], 7);
  ASSERT_EQ(from.reads.size(), 1u);
  EXPECT_LT(from.reads[0].second, kCount);  // of 8 * kCount bytes
  EXPECT_EQ(array[8], 8);
  EXPECT_EQ(from.reads.size(), 1u);
  EXPECT_FALSE(from.released);
}

TEST(SharedArray, BringsEveryByteOnce) {
  Elsewhere from = ascending();
  const SharedArray<int64_t> array = arrayOf(from);
  for (size_t k = 0; k < kCount; ++k) ASSERT_EQ(array[k], static_cast<int64_t>(k));
  EXPECT_TRUE(from.released);
  EXPECT_LT(from.reads.size(), 10u);
  size_t end = 0;
  for (const auto& [begin, behind] : from.reads) {
    EXPECT_EQ(begin, end);
    end = behind;
  }
  EXPECT_EQ(end, kCount * sizeof(int64_t));
}

TEST(SharedArray, IsReadWhereItIs) {
  Elsewhere from = ascending();
  from.readable = true;
  const SharedArray<int64_t> array = arrayOf(from);
  EXPECT_EQ(array.data(), from.numbers.data());
  EXPECT_EQ(array.back(), static_cast<int64_t>(kCount) - 1);
  EXPECT_TRUE(from.reads.empty());
  array.bytes()->settle();
  EXPECT_TRUE(from.released);
  EXPECT_EQ(array.back(), static_cast<int64_t>(kCount) - 1);
  EXPECT_EQ(array[0], 0);
}

TEST(SharedArray, SettlesInTheMiddle) {
  Elsewhere from = ascending();
  const SharedArray<int64_t> array = arrayOf(from);
  EXPECT_EQ(array[0], 0);
  const int64_t* const begin = array.upTo(1);
  array.bytes()->settle();
  EXPECT_TRUE(array.bytes()->isSettled());
  EXPECT_EQ(array.data(), begin);
  EXPECT_EQ(std::accumulate(array.begin(), array.end(), int64_t{0}), int64_t{kCount} * (kCount - 1) / 2);
}

TEST(SharedArray, WhatIsLostIsAnError) {
  Elsewhere from = ascending(), never = ascending();
  const SharedArray<int64_t> array = arrayOf(from), other = arrayOf(never);
  EXPECT_EQ(array[0], 0);
  from.answers = never.answers = false;
  EXPECT_THROW(array.data(), ElementsLost);
  EXPECT_EQ(array[0], 0);
  EXPECT_THROW((void)(array == other), ElementsLost);
  other.bytes()->lose();
  EXPECT_TRUE(never.released);
  EXPECT_THROW((void)other[0], ElementsLost);
  array.bytes()->lose();
  EXPECT_EQ(array[1], 1);  // was brought with the first one
  EXPECT_THROW(array.data(), ElementsLost);
}

}  // namespace
}  // namespace kelpie

// Values of a warp's tile do not get into each other's way in shared memory (codegen/cuda/warp_items.cuh).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>

#define KELPIE_EMULATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "codegen/cuda/warp_items.cuh"
#pragma GCC diagnostic pop

namespace kelpie::tests {
namespace {

template <class T, int kColumns>
struct Columns {
  T of[kColumns];
};

/// How many turns shared memory takes for what 32 lanes ask for at once, `bytes` each, relative to the least:
/// of as many lanes as make 128 bytes, those that ask for different words of one bank take turns.
int turns(const std::array<int, 32>& addresses, int bytes) {
  const int lanes = std::min(32, 128 / bytes);
  size_t most = 1;
  for (int first = 0; first < 32; first += lanes) {
    std::map<int, std::set<int>> words;  // by bank
    for (int lane = first; lane < first + lanes; ++lane)
      for (int word = addresses[lane] / 4; word * 4 < addresses[lane] + bytes; ++word)
        words[word % 32].insert(word);
    for (const auto& [bank, different] : words) most = std::max(most, different.size());
  }
  return static_cast<int>(most);
}

/// Of rows of kWidth neighbours of each lane, kRows of them, and of the kRows * kWidth neighbours of a lane.
/// (Two, where fewer than 16 bytes are moved. Values of 32 bytes side by side took eight.)
template <class Value, int kRows, int kWidth>
void expectFewTurns() {
  using Items = WarpItems<Value, kRows * kWidth, kWidth>;
  SCOPED_TRACE(testing::Message() << sizeof(Value) << " bytes, " << kRows << " rows of " << kWidth);
  const auto ofLanes = [](int first, int stride) {
    std::array<int, 32> addresses{};
    for (int lane = 0; lane < 32; ++lane)
      addresses[lane] = Items::place(first + lane * stride) * Items::kUnitBytes;
    return turns(addresses, Items::kMoved * Items::kUnitBytes);
  };
  for (int first = 0; first < kWidth; first += Items::kMoved)
    for (int row = 0; row < kRows; ++row) EXPECT_LE(ofLanes(row * 32 * kWidth + first, kWidth), 2);
  for (int first = 0; first < kRows * kWidth; first += Items::kMoved)
    EXPECT_LE(ofLanes(first, kRows * kWidth), 2);
}

template <class T, int kColumns>
void expectFewTurnsOfShapes() {
  using Value = Columns<T, kColumns>;
  expectFewTurns<Value, 1, 1>();
  expectFewTurns<Value, 1, 2>();
  expectFewTurns<Value, 1, 4>();
  expectFewTurns<Value, 2, 2>();
  expectFewTurns<Value, 2, 4>();
  expectFewTurns<Value, 4, 2>();
}

TEST(WarpItems, LanesTakeFewTurns) {
  expectFewTurnsOfShapes<double, 1>();
  expectFewTurnsOfShapes<double, 2>();
  expectFewTurnsOfShapes<double, 3>();
  expectFewTurnsOfShapes<double, 4>();
  expectFewTurnsOfShapes<double, 6>();
  expectFewTurnsOfShapes<double, 7>();
  expectFewTurnsOfShapes<float, 1>();
  expectFewTurnsOfShapes<float, 3>();
  expectFewTurnsOfShapes<float, 4>();
}

/// What is put somewhere is found there, and nowhere else.
TEST(WarpItems, ValuesAreFoundAgain) {
  using Value = Columns<double, 7>;
  using Items = WarpItems<Value, 4, 2>;
  Items::Shared shared;
  for (int offset = 0; offset < 128; offset += Items::kMoved) {
    Items::Moved moved;
    for (int k = 0; k < Items::kMoved; ++k)
      for (int c = 0; c < 7; ++c) moved.item[k].of[c] = 10 * (offset + k) + c;
    Items::store(shared, offset, moved);
  }
  Value other = Items::loadOne(shared, 77);
  other.of[3] = -1;
  Items::storeOne(shared, 77, other);
  for (int offset = 0; offset < 128; offset += Items::kMoved) {
    const Items::Moved moved = Items::load(shared, offset);
    for (int k = 0; k < Items::kMoved; ++k)
      for (int c = 0; c < 7; ++c)
        EXPECT_EQ(moved.item[k].of[c], offset + k == 77 && c == 3 ? -1 : 10 * (offset + k) + c);
  }
}

}  // namespace
}  // namespace kelpie::tests

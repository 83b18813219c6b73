// What few draws tell of many: pieces that are drawn equally often, that differ, and that never come again.
#include "runtime/interp/repeated_draws.h"

#include <gtest/gtest.h>

#include <random>

namespace kelpie::runtime {
namespace {

constexpr int64_t kPieces = 1 << 17;

/// Different pieces among `factor` times as many draws, as foretold and as they then are, of one window.
template <typename Piece>
void expectForetold(int draws, int factor, double within, const Piece& piece) {
  std::mt19937_64 random(7);
  RepeatedDraws few(kPieces, 1), many(kPieces, 1);
  for (int k = 0; k < draws * factor; ++k) {
    const std::unordered_set<int64_t> drawn{piece(random, k)};
    if (k % factor == 0) few.add(drawn);
    many.add(drawn);
  }
  EXPECT_NEAR(few.among(factor) / many.distinct(), 1, within);
}

TEST(RepeatedDraws, PiecesDrawnEquallyOften) {
  expectForetold(6000, 40, 0.1, [](auto& random, int) { return static_cast<int64_t>(random() % kPieces); });
  expectForetold(6000, 40, 0.1, [](auto& random, int) { return static_cast<int64_t>(random() % 3000); });
}

/// Ways from the root of a tree to its leaves.
TEST(RepeatedDraws, NodesOfATree) {
  expectForetold(12000, 40, 0.2, [](auto& random, int) {
    const int level = static_cast<int>(random() % 17);
    return (int64_t{1} << level) + static_cast<int64_t>(random() % (uint64_t{1} << level));
  });
}

TEST(RepeatedDraws, PiecesThatNeverComeAgain) {
  expectForetold(3000, 40, 0.05, [](auto&, int k) { return int64_t{k}; });
}

TEST(RepeatedDraws, NothingDrawn) {
  const RepeatedDraws none(kPieces, 2);
  EXPECT_EQ(none.among(10), 0);
  EXPECT_EQ(none.all(), 0);
}

/// Windows are counted together, but what is drawn in one says nothing of the pieces of another.
TEST(RepeatedDraws, Windows) {
  RepeatedDraws draws(kPieces, 2);
  draws.add({1, 2, 3}, 0);
  draws.add({1, 2}, 1);
  draws.add({2}, 1);
  EXPECT_EQ(draws.number(), 6);
  EXPECT_EQ(draws.distinct(), 5);
}

}  // namespace
}  // namespace kelpie::runtime

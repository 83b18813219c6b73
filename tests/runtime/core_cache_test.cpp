// The simulated cache of one multiprocessor.
#include "runtime/interp/core_cache.h"

#include <gtest/gtest.h>

namespace kelpie::runtime {
namespace {

constexpr int64_t kSectors = CoreCache::kLine / CoreCache::kSector;

TEST(CoreCache, LoadsTheSectorsOfALineOneByOne) {
  CoreCache cache(2);
  for (int64_t sector = 0; sector < kSectors; ++sector) {
    EXPECT_TRUE(cache.misses(0, sector));
    EXPECT_FALSE(cache.misses(0, sector));
  }
  EXPECT_TRUE(cache.misses(1, 0)) << "of another array";
  EXPECT_FALSE(cache.misses(0, 0));
}

TEST(CoreCache, ForgetsTheLineThatWasUsedLongestAgo) {
  CoreCache cache(2);
  cache.misses(0, 0 * kSectors);
  cache.misses(0, 1 * kSectors);
  cache.misses(0, 0 * kSectors + 1);
  EXPECT_TRUE(cache.misses(0, 2 * kSectors));
  EXPECT_FALSE(cache.misses(0, 0 * kSectors));
  EXPECT_FALSE(cache.misses(0, 0 * kSectors + 1));
  EXPECT_TRUE(cache.misses(0, 1 * kSectors));
}

/// Lines of which one sector is there take as much room as whole ones.
TEST(CoreCache, HoldsAQuarterOfWhatIsScattered) {
  const auto share = [](int64_t step) {
    CoreCache cache(64);
    constexpr int64_t kLoads = 256;
    int found = 0;
    for (int round = 0; round < 2; ++round)
      for (int64_t k = 0; k < kLoads; ++k) found += !cache.misses(0, k * step);
    return found / static_cast<double>(kLoads);
  };
  EXPECT_EQ(share(1), 1);
  EXPECT_EQ(share(kSectors), 0);
}

TEST(CoreCache, WhatPassesTakesPlaces) {
  CoreCache cache(4);
  cache.misses(0, 0);
  cache.pass(3 * CoreCache::kLine);
  EXPECT_FALSE(cache.misses(0, 0));
  cache.pass(4.5 * CoreCache::kLine);
  EXPECT_TRUE(cache.misses(0, 0));
}

TEST(CoreCache, ForgetsWhenItBecomesSmaller) {
  CoreCache cache(8);
  for (int64_t line = 0; line < 8; ++line) cache.misses(0, line * kSectors);
  cache.limit(2);
  EXPECT_FALSE(cache.misses(0, 7 * kSectors));
  EXPECT_FALSE(cache.misses(0, 6 * kSectors));
  EXPECT_TRUE(cache.misses(0, 5 * kSectors));
}

}  // namespace
}  // namespace kelpie::runtime

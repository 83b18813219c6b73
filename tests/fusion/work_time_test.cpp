// Searches count their time: they end at the same place, whatever runs beside them.
#include "fusion/work_time.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "fusion/deadline.h"
#include "fusion/fuse.h"
#include "fusion/lcu_reader.h"
#include "fusion/parallel.h"
#include "fusion/solve_ilp.h"
#include "tests/fusion/shaped_problem.h"

namespace kelpie::fusion {
namespace {

TEST(Deadline, PassesWhenItsTimeIsCounted) {
  const Deadline deadline(0.2);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(deadline.passed());
  WorkTime::spend(199'999'999);
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(deadline.nanosecondsLeft(), 1);
  WorkTime::spend(1);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.secondsLeft(), 0);
}

TEST(Deadline, EndsByTheClockWhereCountsAreFarOff) {
  const Deadline deadline(0);
  EXPECT_TRUE(deadline.passed());
  const Deadline another(0.01);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'100));
  EXPECT_TRUE(another.passed());
  EXPECT_EQ(another.millisecondsLeft(), 1);
}

TEST(WorkTime, OfThreadsIsSharedAmongThem) {
  constexpr int kNumbers = 100;
  const auto spentBy = [](int mostThreads) {
    const int64_t before = WorkTime::spent();
    std::vector<int64_t> seen(kNumbers);
    forEachNumber(
        kNumbers,
        [&](int k) {
          seen[static_cast<size_t>(k)] = WorkTime::spent() - before;
          WorkTime::spend(k);
        },
        1, mostThreads);
    // With several threads no number sees what the others spent.
    for (int k = 0; k < kNumbers; ++k)
      EXPECT_EQ(seen[static_cast<size_t>(k)], mostThreads > 1 ? 0 : k * (k - 1) / 2);
    return WorkTime::spent() - before;
  };
  EXPECT_EQ(spentBy(1), 4950);
  EXPECT_EQ(spentBy(2), 2475);
}

/// Long pieces of a search look at the time, too: networks of what a chain of filters may share are large.
TEST(WorkTime, SearchesOfLongChainsEndInTime) {
  std::string text = "function chain(b0: [int64; 4]) {\n";
  constexpr int kFilters = 300;
  for (int k = 1; k <= kFilters; ++k)
    text += fmt::format(
        "  kernel f{0} {{\n    let n{0}: &int64, a{0}: [int64; n{0}] = FILTER flat {2} {{ i => b{1}[i] }}"
        " where {{ i => b{1}[i] != {0} }}\n    return n{0}, a{0}\n  }}\n"
        "  kernel m{0} {{\n    let b{0}: [int64; n{0}] = MAP flat n{0} {{ i => a{0}[i] + {0} }}\n"
        "    return b{0}\n  }}\n",
        k, k - 1, k == 1 ? "4" : fmt::format("n{}", k - 1));
  lcu::ReadResult read = lcu::readProgram(text + fmt::format("  return b{}\n}}\n", kFilters));
  ASSERT_TRUE(std::holds_alternative<lcu::Program>(read));
  FusionOptions options;
  options.seconds = 1;
  options.costs = cpuCosts();
  const int64_t before = WorkTime::spent();
  fuse(std::get<lcu::Program>(read), options);
  EXPECT_LT(1e-9 * static_cast<double>(WorkTime::spent() - before), 2);
}

/// Alone, and beside threads that take the processors; the search is cut short in either case.
TEST(WorkTime, SearchesThatAreCutShortFindTheSame) {
  const PartitionProblem problem = ShapedProblem(RegionShape::Dense, 90, 7).problem();
  const PairTable pairs(problem);
  const auto solved = [&] { return solveIlp(problem, pairs, {0.4, true, true}); };
  const Partition alone = solved();
  ASSERT_FALSE(alone.proven());
  std::atomic<bool> stop = false;
  std::vector<std::jthread> others;
  for (int k = 0; k < 2; ++k) {
    others.emplace_back([&] {
      while (!stop) {
      }
    });
  }
  const Partition crowded = solved();
  stop = true;
  EXPECT_EQ(alone.cluster, crowded.cluster);
  EXPECT_EQ(alone.bound, crowded.bound);
  EXPECT_EQ(alone.counted, crowded.counted);
}

}  // namespace
}  // namespace kelpie::fusion

// Every part of a loop is worked on once, in an order that lets parts wait for earlier ones.
#include "runtime/thread_team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>

#include "tests/runtime/no_threads.h"

namespace kelpie::testing {
namespace {

using runtime::ThreadTeam;

void workFor(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(ThreadTeam, EveryPartOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadTeam team(threads);
    for (int64_t parts : {0, 1, 2, 3, 17, 1000, 100000}) {
      std::vector<int> times(static_cast<size_t>(parts));
      team.forEach(parts, [&](int64_t part) { ++times[static_cast<size_t>(part)]; });
      EXPECT_EQ(std::count(times.begin(), times.end(), 1), parts) << threads << " threads";
    }
  }
}

TEST(ThreadTeam, ManyLoopsOneAfterTheOther) {
  ThreadTeam team(4);
  int64_t sum = 0;
  for (int64_t loop = 0; loop < 20000; ++loop) {
    std::atomic<int64_t> here{0};
    team.forEach(loop % 7, [&](int64_t part) {
      workFor(std::chrono::microseconds(3));
      here += part;
    });
    sum += here;
  }
  int64_t expected = 0;
  for (int64_t loop = 0; loop < 20000; ++loop) expected += (loop % 7) * (loop % 7 - 1) / 2;
  EXPECT_EQ(sum, expected);
}

TEST(ThreadTeam, LongLoopsAreShared) {
  ThreadTeam team(2);
  std::set<std::thread::id> threads;
  std::mutex mutex;
  team.forEach(200, [&](int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 2u);
}

TEST(ThreadTeam, ShortLoopsWakeNobody) {
  ThreadTeam team(2);
  const auto caller = std::this_thread::get_id();
  int elsewhere = 0;
  team.forEach(2, [&](int64_t) { elsewhere += std::this_thread::get_id() != caller ? 1 : 0; });
  EXPECT_EQ(elsewhere, 0);
}

TEST(ThreadTeam, PartsMayWaitForEarlierOnes) {
  ThreadTeam team(5);
  for (int64_t atOnce : {1, 3}) {
    std::atomic<int64_t> finished{0};
    const auto body = [&](int64_t part) {
      workFor(std::chrono::microseconds(part % 5));
      while (finished.load() != part) std::this_thread::yield();
      finished.store(part + 1);
    };
    team.run(
        3000, atOnce, [](void* what, int64_t part) { (*static_cast<const decltype(body)*>(what))(part); },
        const_cast<void*>(static_cast<const void*>(&body)));
    EXPECT_EQ(finished, 3000);
  }
}

TEST(ThreadTeam, WithoutThreadsTheCallerDoesAll) {
  const tests::NoThreads none;
  ThreadTeam team(8);
  for (int loop = 0; loop < 2; ++loop) {
    int64_t next = 0;
    team.forEach(100, [&](int64_t part) {
      workFor(std::chrono::microseconds(5));
      EXPECT_EQ(part, next++);
    });
    EXPECT_EQ(next, 100);
  }
}

}  // namespace
}  // namespace kelpie::testing

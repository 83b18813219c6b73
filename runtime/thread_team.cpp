#include "runtime/thread_team.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>

namespace kelpie::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kClosed = 1 << 30;
constexpr Clock::duration kAlone = std::chrono::microseconds(5);  ///< about what it costs to be helped
constexpr Clock::duration kLongestAlone = std::chrono::milliseconds(20);
constexpr int kTimesAlone = 32;  ///< after so many times the time alone half of it is tried
constexpr Clock::duration kLookOut = std::chrono::microseconds(50);   ///< by idle threads, before they sleep
constexpr Clock::duration kPatience = std::chrono::microseconds(20);  ///< before the caller sleeps

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Looks until `done` holds or the time is over; gives whether it holds.
template <typename Condition>
bool lookFor(Clock::duration time, const Condition& done) {
  constexpr int kLooks = 64;
  const auto end = Clock::now() + time;
  do {
    for (int k = 0; k < kLooks; ++k) {
      if (done()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return done();
}

}  // namespace

int usualThreads() {
  cpu_set_t set;
  int threads = sched_getaffinity(0, sizeof set, &set) == 0
                    ? CPU_COUNT(&set)
                    : static_cast<int>(std::thread::hardware_concurrency());
  if (const char* wanted = std::getenv("OMP_NUM_THREADS")) {
    const int number = std::atoi(wanted);
    if (number > 0) threads = std::min(threads, number);
  }
  return std::max(threads, 1);
}

ThreadTeam::ThreadTeam(int threads)
    : threads_(std::max(threads, 1)),
      mostOthers_(static_cast<size_t>(threads_) - 1),
      aloneFor_(kAlone),
      inside_(kClosed) {}

ThreadTeam::~ThreadTeam() {
  ending_.store(true, std::memory_order_relaxed);
  announce();
  for (std::thread& t : others_) t.join();
}

void ThreadTeam::run(int64_t parts, int64_t atOnce, Work work, void* what) {
  int64_t part = 0;
  if (mostOthers_ == 0 || parts <= 1) {
    for (; part < parts; ++part) work(what, part);
    return;
  }
  atOnce = std::max<int64_t>(atOnce, 1);
  const Clock::time_point start = Clock::now();
  Clock::time_point now = start;
  while (part < parts && now - start < aloneFor_) {
    for (const int64_t end = std::min(part + atOnce, parts); part < end; ++part) work(what, part);
    now = Clock::now();
  }
  if (parts - part <= 1) {
    if (part < parts) work(what, part);
    wasAlone(now - start);
    return;
  }
  work_ = work;
  what_ = what;
  parts_ = parts;
  atOnce_ = atOnce;
  next_.store(part, std::memory_order_relaxed);
  inside_.store(0, std::memory_order_release);
  announce();
  callOthers();
  const int64_t own = takeParts();
  const Clock::time_point done = Clock::now();
  waitForOthers();
  wasHelped(done - now, own, parts - part - own, Clock::now() - done);
}

/// On a busy machine who took a part may not get a processor for milliseconds, in which the caller waits for
/// it. Where that took longer than the parts, the caller goes on alone for some time.
void ThreadTeam::wasHelped(Clock::duration worked, int64_t own, int64_t others, Clock::duration waited) {
  const auto saved = own > 0 ? worked / own * others : worked;
  aloneFor_ = waited <= saved + kAlone ? kAlone : std::min(std::max(waited, aloneFor_ * 2), kLongestAlone);
  alone_ = {};
}
void ThreadTeam::wasAlone(Clock::duration time) {
  if (aloneFor_ <= kAlone) return;
  alone_ += time;
  if (alone_ < aloneFor_ * kTimesAlone) return;
  aloneFor_ = std::max(aloneFor_ / 2, kAlone);
  alone_ = {};
}

/// Whoever does not see the new number here is seen to sleep there, and the other way round.
void ThreadTeam::announce() {
  rounds_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) rounds_.notify_all();
}

/// Nothing may leave `run` while others work on what is in its frame.
void ThreadTeam::callOthers() {
  try {
    while (others_.size() < mostOthers_) others_.emplace_back([this] { help(); });
  } catch (const std::exception&) {  // system_error, or bad_alloc
    mostOthers_ = others_.size();
  }
}

int64_t ThreadTeam::takeParts() {
  // Less at a time towards the end, so that all end together.
  const int64_t parts = parts_, shares = int64_t{4} * threads_;
  int64_t taken = 0;
  for (;;) {
    const int64_t left = parts - next_.load(std::memory_order_relaxed);
    const int64_t count = std::clamp<int64_t>(left / shares, 1, atOnce_);
    const int64_t first = next_.fetch_add(count, std::memory_order_relaxed);
    if (first >= parts) return taken;
    const int64_t end = std::min(first + count, parts);
    for (int64_t part = first; part < end; ++part) work_(what_, part);
    taken += end - first;
  }
}

void ThreadTeam::waitForOthers() {
  int inside = inside_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
  const auto done = [&] { return (inside = inside_.load(std::memory_order_acquire)) == kClosed; };
  if (inside == kClosed || lookFor(kPatience, done)) return;
  while (!done()) inside_.wait(inside, std::memory_order_acquire);
}

bool ThreadTeam::enter() {
  int inside = inside_.load(std::memory_order_relaxed);
  while ((inside & kClosed) == 0) {
    if (inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void ThreadTeam::leave() {
  if (inside_.fetch_sub(1, std::memory_order_acq_rel) - 1 == kClosed) inside_.notify_one();
}

void ThreadTeam::help() {
  for (int seen = 0; !ending_.load(std::memory_order_relaxed);) {
    if (enter()) {
      takeParts();
      leave();
    }
    const auto news = [&] { return rounds_.load(std::memory_order_acquire) != seen; };
    if (!news() && !lookFor(kLookOut, news)) {
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      rounds_.wait(seen, std::memory_order_seq_cst);
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
    }
    seen = rounds_.load(std::memory_order_acquire);
  }
}

}  // namespace kelpie::runtime

// Threads that share the parts of a loop.
//
// Made for loops of a few microseconds to seconds, on machines that may be busy with other things:
//   - the caller begins alone and asks for help after some microseconds, so short loops wake nobody, and what
//     a part costs need not be known before;
//   - parts are taken one by one (or a few at a time) in ascending order, so whoever is slower does less, and
//     a part may wait for an earlier one;
//   - the caller waits for those that took a part, not for those that are still on their way; and where
//     that costs more than they do, because there is no processor for them, it stays alone for longer;
//   - idle threads look out for work for a moment, then sleep;
//   - where the system has no more threads, those that there are do the work, if need be the caller alone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace kelpie::runtime {

/// Processors that this process may use, or fewer if OMP_NUM_THREADS says so.
int usualThreads();

class ThreadTeam {
 public:
  using Work = void (*)(void* what, int64_t part);

  explicit ThreadTeam(int threads = usualThreads());  ///< the caller included; others start when needed
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return threads_; }

  /// Calls work(what, part) once for each part below `parts`, up to `atOnce` parts in a row by one thread.
  /// One caller at a time; the work must not throw, nor run loops of its own on the team.
  void run(int64_t parts, int64_t atOnce, Work work, void* what);

  template <typename Body>
  void forEach(int64_t parts, const Body& body) {
    run(
        parts, 1, [](void* what, int64_t part) { (*static_cast<const Body*>(what))(part); },
        const_cast<Body*>(&body));
  }

 private:
  using Duration = std::chrono::steady_clock::duration;

  void help();
  void announce();
  void callOthers();
  bool enter();
  void leave();
  int64_t takeParts();  ///< gives how many
  void waitForOthers();
  void wasHelped(Duration worked, int64_t own, int64_t others, Duration waited);
  void wasAlone(Duration time);

  const int threads_;
  size_t mostOthers_;  ///< fewer than were asked for once the system has refused one
  std::vector<std::thread> others_;
  Duration aloneFor_;  ///< how long the caller works before it asks for help
  Duration alone_{};   ///< how long loops took that ended before that

  // The loop under way. Others read it between enter() and leave() only.
  Work work_ = nullptr;
  void* what_ = nullptr;
  int64_t parts_ = 0, atOnce_ = 1;
  alignas(64) std::atomic<int64_t> next_{0};  ///< the first part that nobody has taken
  alignas(64) std::atomic<int> inside_;       ///< how many others work on it; kClosed when none may begin
  alignas(64) std::atomic<int> rounds_{0};    ///< changes when there is work, or the end
  std::atomic<int> sleeping_{0};              ///< how many others may have to be woken
  std::atomic<bool> ending_{false};
};

}  // namespace kelpie::runtime

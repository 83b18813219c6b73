#include "driver/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

namespace kelpie::driver {

namespace {

// Signal handlers can reach nothing but static storage.
std::atomic<bool> flag = false, evaluating = true;
std::atomic<int> eventsIn = -1, eventsOut = -1;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void tell(char event) {
  if (eventsIn >= 0) [[maybe_unused]]
    const ssize_t written = write(eventsIn, &event, 1);
}

void onSignal(int signal) {
  if (signal != SIGINT) return tell(signal == SIGWINCH ? 'W' : 'C');
  if (!evaluating && eventsIn >= 0) return tell('I');
  if (!evaluating || flag.exchange(true)) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
    return;
  }
  constexpr std::string_view text =
      "kelpie: stopping after the current operation; once more to end at once\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

void install(int signal) {
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;  // nothing else has to know about interrupted system calls
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void catchInterrupts() { install(SIGINT); }

void catchTerminalSignals() {
  int ends[2];
  if (eventsIn < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    eventsOut = ends[0];
    eventsIn = ends[1];
  }
  install(SIGWINCH);
  install(SIGCONT);
}

void setEvaluating(bool now) {
  flag = false;
  evaluating = now;
}

const std::atomic<bool>& interrupted() { return flag; }

int terminalEvents() { return eventsOut; }

}  // namespace kelpie::driver

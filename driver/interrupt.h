// Ctrl-C: the signal SIGINT, as a flag that evaluations look at and as a file descriptor that a prompt can
// wait for. Signals belong to the process, so there is one.
#pragma once

#include <atomic>

namespace kelpie::driver {

/// Catches SIGINT from now on. While `evaluating` is set the first one sets the flag and says so, and another
/// one ends the process: compiled code looks at the flag only between kernels.
void catchInterrupts();
/// Also reports changes of the terminal (SIGWINCH, SIGCONT) through terminalEvents().
void catchTerminalSignals();

/// Clears the flag and begins, or ends, an evaluation.
void setEvaluating(bool evaluating);
const std::atomic<bool>& interrupted();

/// Where each signal that comes outside of an evaluation can be read as one byte: 'I' for SIGINT, 'W' for a
/// new size of the window, 'C' when the process goes on after it was stopped.
int terminalEvents();

}  // namespace kelpie::driver

// Running other programs: a command is split at blanks and its first word looked up in PATH; no shell, no
// quoting.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <variant>

namespace kelpie {

struct ProcessError {
  std::string message;
};

/// Starts the command with the given files as standard input, output and error output.
std::variant<pid_t, ProcessError> startProcess(const std::string& command, const std::array<int, 3>& files);

/// Starts the command, feeds it `input` and waits for it to end. Yields its standard output.
std::variant<std::string, ProcessError> runProcess(const std::string& command, const std::string& input);

/// Both ends of a pipe, closed when they go out of scope.
struct Pipe {
  Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe();

  int read = -1, write = -1;
};
void closeEnd(int& end);

/// While it exists, writing to a process that does not read is an error instead of the end of this process.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked();
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;
  ~PipeSignalBlocked();

 private:
  sigset_t old_{};
};

}  // namespace kelpie

#include "runtime/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <vector>

namespace kelpie {

namespace {

/// Feeds and drains the process together, so that neither side waits for the other for ever.
std::string exchange(Pipe& toProcess, Pipe& fromProcess, std::string_view input) {
  std::string output;
  std::array<char, 65536> buffer;
  ::fcntl(toProcess.write, F_SETFL, O_NONBLOCK);
  if (input.empty()) closeEnd(toProcess.write);
  while (true) {
    std::array<pollfd, 2> waits = {pollfd{fromProcess.read, POLLIN, 0}, pollfd{toProcess.write, POLLOUT, 0}};
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return output;
    if (waits[1].revents != 0) {
      const ssize_t written = ::write(toProcess.write, input.data(), input.size());
      if (written > 0) input.remove_prefix(static_cast<size_t>(written));
      if (input.empty() || (written < 0 && errno != EAGAIN)) closeEnd(toProcess.write);
    }
    if (waits[0].revents != 0) {
      const ssize_t count = ::read(fromProcess.read, buffer.data(), buffer.size());
      if (count <= 0) return output;
      output.append(buffer.data(), static_cast<size_t>(count));
    }
  }
}

}  // namespace

void closeEnd(int& end) {
  if (end >= 0) ::close(end);
  end = -1;
}

Pipe::Pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) == 0) read = ends[0], write = ends[1];
}

Pipe::~Pipe() { closeEnd(read), closeEnd(write); }

PipeSignalBlocked::PipeSignalBlocked() {
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &old_);
}

PipeSignalBlocked::~PipeSignalBlocked() {
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  const timespec now{};
  while (::sigtimedwait(&pipe, nullptr, &now) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &old_, nullptr);
}

std::variant<pid_t, ProcessError> startProcess(const std::string& command, const std::array<int, 3>& files) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty()) return ProcessError{"no command"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int target = 0; target < 3; ++target) {
    ::posix_spawn_file_actions_adddup2(&actions, files[static_cast<size_t>(target)], target);
  }
  pid_t process = 0;
  const int failed = ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return ProcessError{std::strerror(failed)};
  return process;
}

std::variant<std::string, ProcessError> runProcess(const std::string& command, const std::string& input) {
  Pipe toProcess, fromProcess;
  if (toProcess.read < 0 || fromProcess.read < 0) return ProcessError{std::strerror(errno)};
  const auto started = startProcess(command, {toProcess.read, fromProcess.write, STDERR_FILENO});
  if (const auto* error = std::get_if<ProcessError>(&started)) return *error;
  const PipeSignalBlocked blocked;  // not before: processes inherit it
  closeEnd(toProcess.read), closeEnd(fromProcess.write);
  std::string output = exchange(toProcess, fromProcess, input);
  closeEnd(toProcess.write);
  int status = 0;
  while (::waitpid(std::get<pid_t>(started), &status, 0) < 0 && errno == EINTR) {
  }
  return output;
}

}  // namespace kelpie

// Processes that compile sources by NVRTC for this one: NVRTC reads one source at a time in a process, so
// threads alone wait for each other.
//
// A `CompilerServer` starts a command that gets NVRTC ready, which takes some time, and from then on forks
// as many copies of itself as are asked for, which takes none. Each copy is a `CompilerProcess`, which
// compiles one source after the other. `serveCompilers` is what the command does. Messages are numbers and
// texts of known lengths, on a socket for each process; the server is handed its end of that. All of them
// end when the process that they work for does.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/target.h"

namespace kelpie::runtime::cuda {

class NvrtcCompiler;

class CompilerProcess {
 public:
  /// `socket` leads to the process; it is closed in the end. Waits until the process can compile or has
  /// ended.
  explicit CompilerProcess(int socket);
  ~CompilerProcess();
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;

  /// As NvrtcCompiler::compile; nullopt: the process does not answer, now or ever again.
  std::optional<Failure> compile(const std::string& source, int architecture, std::vector<char>& code);

 private:
  int socket_;
};

class CompilerServer {
 public:
  /// `command`: as startProcess takes it.
  explicit CompilerServer(std::string command) : command_(std::move(command)) {}
  ~CompilerServer() { stop(); }
  CompilerServer(const CompilerServer&) = delete;
  CompilerServer& operator=(const CompilerServer&) = delete;

  /// Starts the command, unless it has been; waits for nothing.
  void start();
  /// Ends it, and the memory that it takes. Its processes live on.
  void stop();
  /// The socket of a new process, for CompilerProcess, or -1. Starts the command if need be; waits for
  /// nothing.
  int fork();

 private:
  const std::string command_;
  std::mutex mutex_;
  pid_t process_ = -1;
  int socket_ = -1;
};

/// Forks a process for each socket that comes by `socket`, which compiles what comes by that, until there are
/// no more.
void serveCompilers(const NvrtcCompiler& compiler, int socket);

}  // namespace kelpie::runtime::cuda

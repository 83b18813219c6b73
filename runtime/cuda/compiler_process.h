// A process that compiles sources by NVRTC for this one: NVRTC reads one source at a time in a process, so
// threads alone wait for each other.
//
// Both ends are here: `CompilerProcess` starts a command and hands it sources, `serveCompiler` is what the
// command does. Messages are numbers and texts of known lengths on its standard input and output. It ends
// when its input does.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/subprocess.h"
#include "runtime/target.h"

namespace kelpie::runtime::cuda {

class NvrtcCompiler;

class CompilerProcess {
 public:
  /// `command`: as startProcess takes it. Waits until the process can compile or has ended.
  explicit CompilerProcess(const std::string& command);
  /// Waits until the process has ended.
  ~CompilerProcess();
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;

  /// As NvrtcCompiler::compile; nullopt: the process does not answer, now or ever again.
  std::optional<Failure> compile(const std::string& source, int architecture, std::vector<char>& code);

 private:
  pid_t process_ = -1;
  bool ready_ = false;
  Pipe to_, from_;
};

/// Answers what comes from `input` on `output` until there is no more.
void serveCompiler(const NvrtcCompiler& compiler, int input, int output);

}  // namespace kelpie::runtime::cuda

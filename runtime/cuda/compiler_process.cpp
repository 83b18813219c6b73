#include "runtime/cuda/compiler_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "runtime/cuda/nvrtc_compiler.h"

namespace kelpie::runtime::cuda {

namespace {

constexpr int kFirstArchitecture = 80;

/// What goes before a text: with a source its architecture, with an answer whether it is code.
struct Heading {
  int64_t number = 0;
  uint64_t size = 0;
};

bool writeAll(int file, const void* from, size_t bytes) {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t written = ::write(file, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    next += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

bool readAll(int file, void* to, size_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::read(file, next, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool send(int file, int64_t number, const char* text, size_t size) {
  const Heading heading{number, size};
  return writeAll(file, &heading, sizeof heading) && writeAll(file, text, size);
}

/// Text: a string or a vector of bytes.
template <class Text>
bool receive(int file, int64_t& number, Text& text) {
  Heading heading;
  if (!readAll(file, &heading, sizeof heading)) return false;
  number = heading.number;
  text.resize(heading.size);
  return readAll(file, text.data(), text.size());
}

}  // namespace

CompilerProcess::CompilerProcess(const std::string& command) {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0 && to_.read >= 0 && from_.read >= 0) {
    const auto started = startProcess(command, {to_.read, from_.write, nowhere});
    if (const pid_t* process = std::get_if<pid_t>(&started)) process_ = *process;
  }
  if (nowhere >= 0) ::close(nowhere);
  closeEnd(to_.read);
  closeEnd(from_.write);
  int64_t number = 0;
  std::string greeting;
  ready_ = process_ > 0 && receive(from_.read, number, greeting);
}

CompilerProcess::~CompilerProcess() {
  closeEnd(to_.write);
  closeEnd(from_.read);
  int status = 0;
  while (process_ > 0 && ::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
}

std::optional<Failure> CompilerProcess::compile(const std::string& source, int architecture,
                                                std::vector<char>& code) {
  const PipeSignalBlocked blocked;
  int64_t isCode = 0;
  std::vector<char> answer;
  ready_ = ready_ && send(to_.write, architecture, source.data(), source.size()) &&
           receive(from_.read, isCode, answer);
  if (!ready_) return std::nullopt;
  if (isCode == 0) return std::string(answer.begin(), answer.end());
  code = std::move(answer);
  return Failure();
}

void serveCompiler(const NvrtcCompiler& compiler, int input, int output) {
  if (!compiler.available()) return;
  // The first source takes long to compile, whatever it is.
  std::vector<char> unused;
  compiler.compile("__global__ void first() {}", kFirstArchitecture, unused);
  if (!send(output, 0, nullptr, 0)) return;
  int64_t architecture = 0;
  std::string source;
  while (receive(input, architecture, source)) {
    std::vector<char> code;
    const Failure failure = compiler.compile(source, static_cast<int>(architecture), code);
    const bool sent = failure ? send(output, 0, failure->data(), failure->size())
                              : send(output, 1, code.data(), code.size());
    if (!sent) return;
  }
}

}  // namespace kelpie::runtime::cuda

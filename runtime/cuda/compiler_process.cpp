#include "runtime/cuda/compiler_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/cuda/nvrtc_compiler.h"
#include "runtime/subprocess.h"

namespace kelpie::runtime::cuda {

namespace {

/// What goes before a text: with a source its architecture, with an answer whether it is code.
struct Heading {
  int64_t number = 0;
  uint64_t size = 0;
};

bool sendAll(int socket, const void* from, size_t bytes) {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool receiveAll(int socket, void* to, size_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

/// Text: a string or a vector of bytes.
template <class Text>
bool sendText(int socket, int64_t number, const Text& text) {
  const Heading heading{number, text.size()};
  return sendAll(socket, &heading, sizeof heading) && sendAll(socket, text.data(), text.size());
}
template <class Text>
bool receiveText(int socket, int64_t& number, Text& text) {
  Heading heading;
  if (!receiveAll(socket, &heading, sizeof heading)) return false;
  number = heading.number;
  text.resize(heading.size);
  return receiveAll(socket, text.data(), text.size());
}

/// A message that carries nothing but a file.
struct FileMessage {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  FileMessage() {
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
};

bool sendFile(int socket, int file) {
  FileMessage sent;
  cmsghdr* const header = CMSG_FIRSTHDR(&sent.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  ssize_t bytes = -1;
  do bytes = ::sendmsg(socket, &sent.message, MSG_NOSIGNAL);
  while (bytes < 0 && errno == EINTR);
  return bytes == 1;
}

/// -1: there are no more.
int receiveFile(int socket) {
  FileMessage received;
  ssize_t bytes = -1;
  do bytes = ::recvmsg(socket, &received.message, MSG_CMSG_CLOEXEC);
  while (bytes < 0 && errno == EINTR);
  const cmsghdr* const header = CMSG_FIRSTHDR(&received.message);
  if (bytes != 1 || !header || header->cmsg_type != SCM_RIGHTS) return -1;
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}

/// Two sockets that lead to each other; -1 where there are none.
std::array<int, 2> twoSockets() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return {-1, -1};
  return ends;
}

/// Ends this process when the other end of a socket is closed, also while it compiles.
void endWith(int socket) {
  pollfd end{socket, POLLRDHUP, 0};
  while (::poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

/// Answers what comes by a socket until there is no more.
void serve(const NvrtcCompiler& compiler, int socket) {
  try {
    std::thread(endWith, socket).detach();
  } catch (const std::system_error&) {
    return;  // who waits for the greeting sees the end of this process
  }
  if (!sendText(socket, 0, std::string())) return;
  int64_t architecture = 0;
  std::string source;
  while (receiveText(socket, architecture, source)) {
    std::vector<char> code;
    const Failure failure = compiler.compile(source, static_cast<int>(architecture), code);
    if (!(failure ? sendText(socket, 0, *failure) : sendText(socket, 1, code))) return;
  }
}

}  // namespace

CompilerProcess::CompilerProcess(int socket) : socket_(socket) {
  int64_t number = 0;
  std::string greeting;
  if (socket_ >= 0 && !receiveText(socket_, number, greeting)) closeEnd(socket_);
}

CompilerProcess::~CompilerProcess() { closeEnd(socket_); }

std::optional<Failure> CompilerProcess::compile(const std::string& source, int architecture,
                                                std::vector<char>& code) {
  int64_t isCode = 0;
  std::vector<char> answer;
  if (socket_ < 0 || !sendText(socket_, architecture, source) || !receiveText(socket_, isCode, answer)) {
    closeEnd(socket_);
    return std::nullopt;
  }
  if (isCode == 0) return std::string(answer.begin(), answer.end());
  code = std::move(answer);
  return Failure();
}

void CompilerServer::start() {
  const std::lock_guard lock(mutex_);
  if (process_ > 0) return;
  auto [ours, theirs] = twoSockets();
  int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0 && theirs >= 0) {
    const auto started = startProcess(command_, {theirs, nowhere, nowhere});
    if (const pid_t* process = std::get_if<pid_t>(&started)) {
      process_ = *process;
      std::swap(socket_, ours);  // stop() has closed an earlier one
    }
  }
  closeEnd(nowhere);
  closeEnd(theirs);
  closeEnd(ours);
}

void CompilerServer::stop() {
  const std::lock_guard lock(mutex_);
  closeEnd(socket_);
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);  // it may still be getting ready
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

int CompilerServer::fork() {
  start();
  const std::lock_guard lock(mutex_);
  auto [ours, theirs] = twoSockets();
  if (socket_ < 0 || !sendFile(socket_, theirs)) closeEnd(ours);
  closeEnd(theirs);
  return ours;
}

void serveCompilers(const NvrtcCompiler& compiler, int socket) {
  if (!compiler.available()) return;
  compiler.getReady();            // copies of this process are then
  std::signal(SIGCHLD, SIG_IGN);  // nobody asks how copies end
  for (int file = receiveFile(socket); file >= 0; file = receiveFile(socket)) {
    if (::fork() == 0) {
      ::close(socket);
      serve(compiler, file);
      ::_exit(0);
    }
    ::close(file);
  }
}

}  // namespace kelpie::runtime::cuda

#include "runtime/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace kelpie {

namespace {

std::string lastError() { return std::strerror(errno); }

}  // namespace

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  discard();
  file_ = std::exchange(other.file_, nullptr);
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  oldSize_ = std::exchange(other.oldSize_, -1);
  return *this;
}

std::string OutputFile::open(const std::string& path, Mode mode) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool exists = fs::exists(path, ignored);
  const bool regular = !exists || fs::is_regular_file(path, ignored);
  path_ = exists ? fs::canonical(path, ignored).string() : path;
  if (path_.empty()) path_ = path;
  if (mode == Mode::Append || !regular) {
    if (regular) oldSize_ = exists ? static_cast<long>(fs::file_size(path_, ignored)) : 0;
    file_ = std::fopen(path_.c_str(), "ab");
    return file_ ? "" : lastError();
  }
  if (exists && ::access(path_.c_str(), W_OK) != 0) return lastError();
  temporary_ = path_ + "." + std::to_string(::getpid()) + ".partial";
  file_ = std::fopen(temporary_.c_str(), "wb");
  if (file_) return "";
  temporary_.clear();
  return lastError();
}

std::string OutputFile::write(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), file_) == text.size() ? "" : lastError();
}

std::string OutputFile::commit() {
  const bool wellWritten = std::fflush(file_) == 0 && !std::ferror(file_);
  if (!wellWritten) {
    std::string reason = lastError();
    discard();
    return reason;
  }
  std::fclose(std::exchange(file_, nullptr));
  if (temporary_.empty()) return "";
  const std::string temporary = std::exchange(temporary_, {});
  if (std::rename(temporary.c_str(), path_.c_str()) == 0) return "";
  std::string reason = lastError();
  ::unlink(temporary.c_str());
  return reason;
}

void OutputFile::discard() {
  if (!file_) return;
  std::fflush(file_);
  // A failing truncation leaves the file as it is; nothing better can be done with a file out of reach.
  if (temporary_.empty() && oldSize_ >= 0 && ::ftruncate(::fileno(file_), oldSize_) != 0) oldSize_ = -1;
  std::fclose(std::exchange(file_, nullptr));
  if (!temporary_.empty()) ::unlink(std::exchange(temporary_, {}).c_str());
}

}  // namespace kelpie

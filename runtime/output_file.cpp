#include "runtime/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/unique_name.h"

namespace kelpie {

namespace {

std::string lastError() { return std::strerror(errno); }

/// A new file, with the owner and the rights of another, if there is one; -1: errno says why not.
int createLike(const std::string& path, const std::string& other) {
  struct stat like {};
  const bool known = !other.empty() && ::stat(other.c_str(), &like) == 0;
  // Until it has its own rights nobody else may open it.
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, known ? 0600 : 0666);
  if (file < 0 || !known) return file;
  // Only a privileged user gives files away. The rights of a group that it cannot have are those of others.
  auto rights = like.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  if (::fchown(file, like.st_uid, like.st_gid) != 0 &&
      ::fchown(file, static_cast<uid_t>(-1), like.st_gid) != 0)
    rights = (rights & ~static_cast<mode_t>(S_IRWXG)) | (rights & S_IRWXO) << 3;
  ::fchmod(file, rights);
  return file;
}

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
  temporary_ = path_ + "." + uniqueName() + ".partial";
  const int descriptor = createLike(temporary_, exists ? path_ : "");
  file_ = descriptor >= 0 ? ::fdopen(descriptor, "wb") : nullptr;
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

// A file being written that appears under its name only when it is complete.
//
// A new file is written beside its place and renamed by `commit`; it keeps the rights of the file that it
// replaces, and its owner where the system allows that. An appended one is cut back to its old size by
// `discard`. Devices and pipes are written directly. Of several for one place each is whole, and the last to
// be committed stays.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace kelpie {

class OutputFile {
 public:
  enum class Mode { Replace, Append };

  OutputFile() = default;
  OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile() { discard(); }

  /// Each of these returns an empty string, or what went wrong ("No such file or directory").
  std::string open(const std::string& path, Mode mode);
  std::string write(std::string_view text);
  std::string commit();

  void discard();
  std::FILE* file() { return file_; }

 private:
  std::FILE* file_ = nullptr;
  std::string path_;       ///< where the file will be, links resolved
  std::string temporary_;  ///< where it is until commit; empty when written in place
  long oldSize_ = -1;      ///< of an appended file; -1 when there is nothing to restore
};

}  // namespace kelpie

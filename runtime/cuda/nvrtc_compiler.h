// Generated modules -> machine code for one architecture, by NVRTC, which needs no GPU and is opened at run
// time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/target.h"

namespace kelpie::runtime::cuda {

class NvrtcCompiler {
 public:
  NvrtcCompiler();
  ~NvrtcCompiler();
  bool available() const;
  /// "13.0"; part of what identifies compiled code.
  std::string version() const;
  /// Compiles for sm_<architecture> (90 for 9.0). The device library is included.
  Failure compile(const std::string& source, int architecture, std::vector<char>& code) const;

 private:
  struct Api;
  std::unique_ptr<Api> api_;
};

/// Compiled code kept on disk by content, for later runs. Failing to read or write it only costs time.
class CodeCache {
 public:
  /// `folder` empty: $KELPIE_CACHE, else $XDG_CACHE_HOME/kelpie, else ~/.cache/kelpie; none of them: no
  /// cache.
  explicit CodeCache(std::string folder = "");
  /// The name under which code for this text is kept.
  static std::string key(const std::string& text);
  bool read(const std::string& key, std::vector<char>& code) const;
  void write(const std::string& key, const std::vector<char>& code) const;

 private:
  std::string folder_;
};

}  // namespace kelpie::runtime::cuda

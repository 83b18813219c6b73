// Machine code of kernels on disk, by content.
//
// A key is the hash of everything the code depends on: the generated source without its comments, the device
// library, the options and the architecture; not the compiler, so code that was compiled ahead (`kelpie
// build`) is found where there is none. New files appear under their names by an atomic rename: any number
// of processes may share a folder. Failing to read or write only costs time, and what is not whole any more
// (runtime/sealed_file.h) is not there.
#pragma once

#include <string>
#include <vector>

namespace kelpie::runtime::cuda {

class CodeCache {
 public:
  explicit CodeCache(std::string folder) : folder_(std::move(folder)) {}
  /// Where code is kept for later runs with this version of the compiler: in $KELPIE_CACHE, else
  /// $XDG_CACHE_HOME/kelpie, else ~/.cache/kelpie; none of them: a cache that keeps nothing.
  static CodeCache ofUser(const std::string& compilerVersion);

  /// The name under which code for this source is kept.
  static std::string key(const std::string& source, int architecture);
  /// Whether there is a file. It may turn out to be damaged.
  bool has(const std::string& key) const;
  bool read(const std::string& key, std::vector<char>& code) const;
  /// Whether the code is on disk afterwards.
  bool write(const std::string& key, const std::vector<char>& code) const;

 private:
  std::string folder_;
};

}  // namespace kelpie::runtime::cuda

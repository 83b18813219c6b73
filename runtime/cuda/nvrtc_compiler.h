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
  /// Does what NVRTC does once in a process, before the first source, which takes as long as to compile some.
  void getReady() const;
  /// "13.0"
  std::string version() const;
  /// What every source is compiled with, beside the architecture.
  static const std::vector<std::string>& options();
  /// Compiles for sm_<architecture> (90 for 9.0). The device library is included. Threads may compile at the
  /// same time. A kernel whose registers do not suffice is compiled once more, for fewer blocks at once, one
  /// that has very many for more (kernel_resources.h).
  Failure compile(const std::string& source, int architecture, std::vector<char>& code) const;

 private:
  /// `macro`: "NAME=VALUE", or empty.
  Failure compile(const std::string& source, int architecture, const std::string& macro,
                  std::vector<char>& code) const;

  struct Api;
  std::unique_ptr<Api> api_;
};

}  // namespace kelpie::runtime::cuda

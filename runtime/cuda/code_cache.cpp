#include "runtime/cuda/code_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "codegen/cuda/device_library.h"
#include "runtime/cache_folders.h"
#include "runtime/cuda/kernel_resources.h"
#include "runtime/cuda/nvrtc_compiler.h"
#include "runtime/sealed_file.h"
#include "runtime/unique_name.h"

namespace kelpie::runtime::cuda {

namespace fs = std::filesystem;

namespace {

/// Two independent 64-bit FNV-style hashes: 128 bits of content.
class Hash {
 public:
  void add(std::string_view text) {
    for (unsigned char c : text) {
      a_ = (a_ ^ c) * 0x100000001b3ull;
      b_ = (b_ + c) * 0xff51afd7ed558ccdull;
      b_ ^= b_ >> 29;
    }
    size_ += text.size();
  }
  std::string text() const { return fmt::format("{:016x}{:016x}-{}", a_, b_, size_); }

 private:
  uint64_t a_ = 0xcbf29ce484222325ull, b_ = 0x9e3779b97f4a7c15ull;
  size_t size_ = 0;
};

/// What code for every source depends on.
const Hash& commonPart() {
  static const Hash kHash = [] {
    Hash hash;
    for (const std::string& option : NvrtcCompiler::options()) hash.add(option + "\n");
    hash.add(fmt::format("{}\n", kWayToChooseBlocks));
    for (const auto& file : codegen::cuda::deviceLibrary()) hash.add(file.text);
    return hash;
  }();
  return kHash;
}

/// Comments name places of the program, which move with every line that is added above.
bool isComment(std::string_view line) {
  const size_t first = line.find_first_not_of(' ');
  return first != std::string_view::npos && line.substr(first).starts_with("//");
}

}  // namespace

CodeCache CodeCache::ofUser(const std::string& compilerVersion) {
  const std::vector<std::string> folders = cacheFolders();
  return CodeCache(folders.empty() ? "" : folders.front() + "/nvrtc-" + compilerVersion);
}

std::string CodeCache::key(const std::string& source, int architecture) {
  Hash hash = commonPart();
  std::string_view rest = source;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (!isComment(line)) {
      hash.add(line);
      hash.add("\n");
    }
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return fmt::format("{}-sm_{}", hash.text(), architecture);
}

bool CodeCache::has(const std::string& key) const {
  return !folder_.empty() && ::access((fs::path(folder_) / (key + ".cubin")).c_str(), R_OK) == 0;
}

bool CodeCache::read(const std::string& key, std::vector<char>& code) const {
  if (folder_.empty()) return false;
  const auto sealed = readSealed(fs::path(folder_) / (key + ".cubin"));
  if (!sealed || sealed->empty()) return false;
  code.assign(sealed->begin(), sealed->end());
  return true;
}

bool CodeCache::write(const std::string& key, const std::vector<char>& code) const {
  if (folder_.empty()) return false;
  std::error_code error;
  fs::create_directories(folder_, error);
  // Renamed into place, so that a reader never sees half a file.
  const fs::path part = fs::path(folder_) / fmt::format("{}.{}.part", key, uniqueName());
  std::ofstream out(part, std::ios::binary);
  out.write(code.data(), static_cast<std::streamsize>(code.size()));
  out << sealOf({code.data(), code.size()});
  out.close();
  if (out) fs::rename(part, fs::path(folder_) / (key + ".cubin"), error);
  if (out && !error) return true;
  fs::remove(part, error);
  return false;
}

}  // namespace kelpie::runtime::cuda

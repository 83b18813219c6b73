#include "runtime/cuda/nvrtc_compiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/cuda/device_library.h"
#include "runtime/cuda/shared_library.h"

namespace kelpie::runtime::cuda {

namespace fs = std::filesystem;

/// The functions of NVRTC used here; its handles are pointers and its results ints, 0 for success.
struct NvrtcCompiler::Api {
  SharedLibrary library{toolkitLibrary({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})};
  int (*version)(int*, int*) = nullptr;
  int (*createProgram)(void**, const char*, const char*, int, const char* const*,
                       const char* const*) = nullptr;
  int (*compileProgram)(void*, int, const char* const*) = nullptr;
  int (*destroyProgram)(void**) = nullptr;
  int (*logSize)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*codeSize)(void*, size_t*) = nullptr;
  int (*code)(void*, char*) = nullptr;
  const char* (*errorString)(int) = nullptr;
  Api() {
    library.get(version, "nvrtcVersion");
    library.get(createProgram, "nvrtcCreateProgram");
    library.get(compileProgram, "nvrtcCompileProgram");
    library.get(destroyProgram, "nvrtcDestroyProgram");
    library.get(logSize, "nvrtcGetProgramLogSize");
    library.get(log, "nvrtcGetProgramLog");
    library.get(codeSize, "nvrtcGetCUBINSize");
    library.get(code, "nvrtcGetCUBIN");
    library.get(errorString, "nvrtcGetErrorString");
  }
};

NvrtcCompiler::NvrtcCompiler() : api_(std::make_unique<Api>()) {}
NvrtcCompiler::~NvrtcCompiler() = default;

bool NvrtcCompiler::available() const { return api_->library.isOpen() && api_->library.missing().empty(); }

std::string NvrtcCompiler::version() const {
  int major = 0, minor = 0;
  api_->version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

Failure NvrtcCompiler::compile(const std::string& source, int architecture, std::vector<char>& code) const {
  std::vector<const char*> texts, names;
  for (const auto& file : codegen::cuda::deviceLibrary()) {
    texts.push_back(file.text);
    names.push_back(file.name);
  }
  void* program = nullptr;
  if (int result = api_->createProgram(&program, source.c_str(), "kelpie.cu", static_cast<int>(texts.size()),
                                       texts.data(), names.data())) {
    return std::string("NVRTC: ") + api_->errorString(result);
  }
  std::string arch = fmt::format("--gpu-architecture=sm_{}", architecture);
  // Without fused multiply-add a float operation rounds as on every other target.
  const char* options[] = {arch.c_str(), "--std=c++17", "-default-device", "--disable-warnings",
                           "--fmad=false"};
  int result = api_->compileProgram(program, 5, options);
  Failure failure;
  if (result != 0) {
    size_t size = 0;
    std::string log;
    if (api_->logSize(program, &size) == 0 && size > 1) {
      log.resize(size);
      api_->log(program, log.data());
      log.resize(size - 1);
    }
    failure =
        fmt::format("NVRTC could not compile a generated module: {}\n{}", api_->errorString(result), log);
  } else {
    size_t size = 0;
    api_->codeSize(program, &size);
    code.resize(size);
    if (size > 0) api_->code(program, code.data());
  }
  api_->destroyProgram(&program);
  return failure;
}

CodeCache::CodeCache(std::string folder) : folder_(std::move(folder)) {
  auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  if (folder_.empty()) folder_ = variable("KELPIE_CACHE");
  if (folder_.empty() && !variable("XDG_CACHE_HOME").empty())
    folder_ = variable("XDG_CACHE_HOME") + "/kelpie";
  if (folder_.empty() && !variable("HOME").empty()) folder_ = variable("HOME") + "/.cache/kelpie";
}

std::string CodeCache::key(const std::string& text) {
  // Two independent 64-bit FNV-style hashes: 128 bits of content.
  uint64_t a = 0xcbf29ce484222325ull, b = 0x9e3779b97f4a7c15ull;
  for (unsigned char c : text) {
    a = (a ^ c) * 0x100000001b3ull;
    b = (b + c) * 0xff51afd7ed558ccdull;
    b ^= b >> 29;
  }
  return fmt::format("{:016x}{:016x}-{}", a, b, text.size());
}

bool CodeCache::read(const std::string& key, std::vector<char>& code) const {
  if (folder_.empty()) return false;
  std::ifstream in(fs::path(folder_) / (key + ".cubin"), std::ios::binary);
  if (!in) return false;
  code.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  return !code.empty();
}

void CodeCache::write(const std::string& key, const std::vector<char>& code) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  // Renamed into place, so that a reader never sees half a file.
  fs::path part = fs::path(folder_) / fmt::format("{}.{}.part", key, getpid());
  std::ofstream out(part, std::ios::binary);
  out.write(code.data(), static_cast<std::streamsize>(code.size()));
  out.close();
  if (out) {
    fs::rename(part, fs::path(folder_) / (key + ".cubin"), ignored);
  } else {
    fs::remove(part, ignored);
  }
}

}  // namespace kelpie::runtime::cuda

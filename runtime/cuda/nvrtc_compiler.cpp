#include "runtime/cuda/nvrtc_compiler.h"

#include <fmt/format.h>

#include <unordered_map>

#include "codegen/cuda/device_library.h"
#include "runtime/cuda/kernel_resources.h"
#include "runtime/cuda/shared_library.h"

namespace kelpie::runtime::cuda {

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

void NvrtcCompiler::getReady() const {
  if (!available()) return;
  constexpr int kArchitecture = 80;
  std::vector<char> unused;
  compile("__global__ void first() {}", kArchitecture, unused);
}

std::string NvrtcCompiler::version() const {
  int major = 0, minor = 0;
  api_->version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

const std::vector<std::string>& NvrtcCompiler::options() {
  // Without fused multiply-add a float operation rounds as on every other target.
  static const std::vector<std::string> kOptions = {"--std=c++17", "-default-device", "--disable-warnings",
                                                    "--fmad=false"};
  return kOptions;
}

Failure NvrtcCompiler::compile(const std::string& source, int architecture, std::vector<char>& code) const {
  std::unordered_map<std::string, std::vector<char>> tried;  // by macro
  // `found`: whether `code` is good now.
  const auto tryOne = [&](const OtherBlocks& blocks, bool& found) -> Failure {
    const auto [other, isNew] = tried.try_emplace(blocks.macro);
    if (isNew)
      if (auto failure = compile(source, architecture, blocks.macro, other->second)) return failure;
    const std::optional<KernelResources> changed = resourcesOf(other->second);
    found = changed && changed->frameBytes <= blocks.mostFrameBytes;
    if (found) code = std::move(other->second);
    return std::nullopt;
  };
  bool found = false;
  for (const OtherBlocks& blocks : blocksHopedFor(source))
    if (auto failure = tryOne(blocks, found); failure || found) return failure;
  if (auto failure = compile(source, architecture, "", code)) return failure;
  const std::optional<KernelResources> asPlanned = resourcesOf(code);
  if (!asPlanned) return std::nullopt;
  for (const OtherBlocks& blocks : blocksToTry(source, *asPlanned))
    if (auto failure = tryOne(blocks, found); failure || found) return failure;
  return std::nullopt;
}

Failure NvrtcCompiler::compile(const std::string& source, int architecture, const std::string& macro,
                               std::vector<char>& code) const {
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
  std::string definition = "--define-macro=" + macro;
  std::vector<const char*> arguments = {arch.c_str()};
  if (!macro.empty()) arguments.push_back(definition.c_str());
  for (const std::string& option : options()) arguments.push_back(option.c_str());
  // Fewer built-in declarations to read, which NVRTC does for one source at a time; and no cache of its own
  // beside ours.
  int major = 0, minor = 0;
  api_->version(&major, &minor);
  if (major >= 13) arguments.insert(arguments.end(), {"--minimal", "--no-cache"});
  int result = api_->compileProgram(program, static_cast<int>(arguments.size()), arguments.data());
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

}  // namespace kelpie::runtime::cuda

#include "runtime/object_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/cache_folders.h"

namespace kelpie::runtime {

namespace fs = std::filesystem;

namespace {

/// -fwrapv: ints wrap. -ffp-contract=off: no fused multiply-add, which would change results between targets.
std::vector<std::string> flags(bool quick) {
  return {"-x",
          "c++",
          "-std=c++17",
          quick ? "-O1" : "-O3",
          "-march=native",
          "-fno-math-errno",
          "-fwrapv",
          "-ffp-contract=off",
          "-fPIC",
          "-shared",
          "-fno-exceptions",
          "-fno-rtti",
          "-fno-asynchronous-unwind-tables",
          "-w"};
}

std::string environmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// FNV-1a, 64 bits, from the given start.
uint64_t fnv(const std::string& text, uint64_t hash) {
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ull;
  return hash;
}
std::string contentHash(const std::string& text) {
  return fmt::format("{:016x}{:016x}", fnv(text, 0xcbf29ce484222325ull), fnv(text, 0x9e3779b97f4a7c15ull));
}

std::string onPath(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0 ? program : "";
  std::istringstream folders(environmentVariable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = folder + "/" + program;
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

/// What -march=native depends on.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string model, features;
  for (std::string line; std::getline(file, line) && (model.empty() || features.empty());) {
    if (line.starts_with("model name") || line.starts_with("CPU part")) model = line;
    if (line.starts_with("flags") || line.starts_with("Features")) features = line;
  }
  return model + features;
}

std::string identityOf(const std::string& path) {
  struct stat info {};
  std::error_code error;
  const std::string real = fs::canonical(path, error).string();
  if (::stat(path.c_str(), &info) != 0) return path;
  return fmt::format("{} {} {} {}.{}", path, real, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

bool writable(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  return ::access(directory.c_str(), W_OK | X_OK) == 0;
}

/// Text as one word of a shell.
std::string shellWord(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string firstLines(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  int lines = 0;
  for (std::string line; lines < 5 && std::getline(file, line); ++lines)
    text += (lines > 0 ? "\n" : "") + line;
  return text;
}

}  // namespace

ObjectCache::ObjectCache(ObjectCacheOptions options) : options_(std::move(options)) {}

ObjectCache::~ObjectCache() {
  for (auto& [path, handle] : loaded_) dlclose(handle);
}

bool ObjectCache::locate() {
  if (located_) return !directory_.empty();
  located_ = true;
  std::vector<std::string> candidates = {"g++", "c++", "clang++"};
  if (std::string chosen = environmentVariable("KELPIE_CXX"); !chosen.empty()) candidates = {chosen};
  if (!options_.compiler.empty()) candidates = {options_.compiler};
  for (const auto& candidate : candidates) {
    compiler_ = onPath(candidate);
    if (!compiler_.empty()) break;
  }
  environment_ = (compiler_.empty() ? "none" : identityOf(compiler_)) + "\n" + processor() + "\n";
  for (const auto& flag : flags(options_.quick)) environment_ += flag + " ";

  std::vector<std::string> directories;
  if (!options_.directory.empty()) {
    directories = {options_.directory};
  } else {
    directories = cacheFolders();
    directories.push_back(fmt::format("{}/kelpie-{}", fs::temp_directory_path().string(), getuid()));
  }
  for (const auto& directory : directories) {
    if (!writable(directory)) continue;
    directory_ = directory;
    break;
  }
  return !directory_.empty();
}

std::string ObjectCache::keyOf(const std::string& source) {
  locate();
  return "cpu-" + contentHash(environment_ + "\n" + source);
}

void* ObjectCache::find(const std::string& key) {
  if (!locate()) return nullptr;
  const std::string path = pathOf(key);
  if (auto it = loaded_.find(path); it != loaded_.end()) return it->second;
  if (::access(path.c_str(), R_OK) != 0) return nullptr;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) {
    loaded_[path] = handle;
  } else {
    // A damaged object is made anew.
    ::unlink(path.c_str());
  }
  return handle;
}

std::optional<std::string> ObjectCache::start(const std::vector<std::string>& wanted) {
  if (!locate()) return "there is no folder to write compiled kernels to (set KELPIE_CACHE)";
  if (compiler_.empty()) return "no C++ compiler was found (set KELPIE_CXX)";
  if (!busy()) begun_.clear();
  std::vector<std::string> sources;
  for (const std::string& source : wanted)
    if (begun_.insert(pathOf(keyOf(source))).second) sources.push_back(source);
  // One shell for each core works through its share; a finished object gets its name in one step.
  const size_t shells = std::min<size_t>(sources.size(), std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::string> scripts(shells);
  std::string command = shellWord(compiler_);
  for (const auto& flag : flags(options_.quick)) command += " " + flag;
  for (size_t k = 0; k < sources.size(); ++k) {
    const std::string target = pathOf(keyOf(sources[k]));
    const std::string stem = fmt::format("{}.{}.{}", target, getpid(), started_++);
    std::ofstream file(stem + ".cpp");
    file << sources[k];
    file.close();
    if (!file) return "cannot write " + stem + ".cpp";
    const std::string name = shellWord(stem), final = shellWord(target);
    scripts[k % shells] += fmt::format(
        "if {0} -o {1}.tmp {1}.cpp -lm 2>{1}.log; then mv -f {1}.tmp {2}; rm -f {1}.log; else mv -f {1}.log "
        "{2}.failed; fi; rm -f {1}.cpp {1}.tmp\n",
        command, name, final);
  }
  for (std::string& script : scripts) {
    std::string shell = "/bin/sh", option = "-c";
    char* const arguments[] = {shell.data(), option.data(), script.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int stream : {0, 1, 2}) {
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", stream == 0 ? O_RDONLY : O_WRONLY, 0);
    }
    pid_t process = -1;
    const bool started = posix_spawn(&process, shell.c_str(), &actions, nullptr, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    if (!started) return "cannot start " + shell;
    workers_.push_back(process);
  }
  return std::nullopt;
}

bool ObjectCache::busy() {
  std::erase_if(workers_, [](int process) {
    const pid_t ended = waitpid(process, nullptr, WNOHANG);
    return ended == process || (ended < 0 && errno != EINTR);
  });
  return !workers_.empty();
}

void ObjectCache::wait() {
  for (int process : workers_) {
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  workers_.clear();
  begun_.clear();
}

std::optional<std::string> ObjectCache::failureOf(const std::string& source) {
  if (!locate()) return std::nullopt;
  const std::string log = pathOf(keyOf(source)) + ".failed";
  if (::access(log.c_str(), R_OK) != 0) return std::nullopt;
  std::string text = firstLines(log);
  ::unlink(log.c_str());
  return fmt::format("{} failed on a generated kernel:\n{}", compiler_, text);
}

}  // namespace kelpie::runtime

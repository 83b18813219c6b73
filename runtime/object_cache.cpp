#include "runtime/object_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/object_folder.h"
#include "runtime/sealed_file.h"
#include "runtime/unique_name.h"

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

/// Whether a compiler did not like a source: "<file>.cpp:<line>:<column>: error: ...". What it says of disks
/// and memory reads otherwise ("fatal error: ...").
bool isAboutSource(const std::string& complaints) {
  std::istringstream lines(complaints);
  for (std::string line; std::getline(lines, line);) {
    const size_t error = line.find(": error: ");
    if (error != std::string::npos && line.find(".cpp:") < error) return true;
  }
  return false;
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

  const auto folder = objectFolder(options_.directory);
  if (const auto* none = std::get_if<NoFolder>(&folder)) {
    noFolder_ = none->message;
  } else {
    directory_ = std::get<std::string>(folder);
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
  // What is damaged would end the process inside of dlopen. It is made anew.
  if (!readSealed(path)) {
    notLoaded_[path] = path + " is damaged";
  } else if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    return loaded_[path] = handle;
  } else {
    notLoaded_[path] = dlerror();
  }
  ::unlink(path.c_str());
  return nullptr;
}

/// `make <stem> <target>`. A finished object gets its name in one step, with its seal; what compilers say is
/// said in one language.
std::string ObjectCache::shellFunction() const {
  std::string command = "LC_ALL=C " + shellWord(compiler_);
  for (const auto& flag : flags(options_.quick)) command += " " + flag;
  return "make() {\n  if " + command + R"( -o "$1.tmp" "$1.cpp" -lm 2>"$1.log" &&
    seal=$(cksum <"$1.tmp") && echo "$seal" >>"$1.tmp"
  then mv -f "$1.tmp" "$2"
  else mv -f "$1.log" "$2.failed"
  fi
  rm -f "$1.cpp" "$1.tmp" "$1.log"
}
)";
}

void ObjectCache::forget(const Job& job) {
  ::unlink((job.stem + ".cpp").c_str());
  begun_.erase(job.target);
}

std::optional<std::string> ObjectCache::start(const std::vector<std::string>& wanted) {
  if (!locate()) return noFolder_;
  if (compiler_.empty()) return "no C++ compiler was found (set KELPIE_CXX)";
  if (!busy()) begun_.clear();
  std::vector<Job> jobs;
  for (const std::string& source : wanted) {
    const std::string target = pathOf(keyOf(source));
    if (!begun_.insert(target).second) continue;
    notLoaded_.erase(target);
    const std::string stem = target + "." + uniqueName();
    jobs.push_back({target, stem});
    errno = 0;
    std::ofstream file(stem + ".cpp");
    file << source;
    file.close();
    if (file) continue;
    const std::string reason = errno != 0 ? std::strerror(errno) : "it failed";
    for (const Job& job : jobs) forget(job);
    return "cannot write " + stem + ".cpp: " + reason;
  }
  // One shell for each core works through its share.
  const size_t shells = std::min<size_t>(jobs.size(), std::max(1u, std::thread::hardware_concurrency()));
  for (size_t first = 0; first < shells; ++first) {
    // Ctrl-C is for us: a terminal sends it to compilers, too, who would be given up for good.
    std::string shell = "/bin/sh", option = "-c", script = "trap '' INT\n" + shellFunction();
    for (size_t k = first; k < jobs.size(); k += shells)
      script += "make " + shellWord(jobs[k].stem) + " " + shellWord(jobs[k].target) + "\n";
    char* const arguments[] = {shell.data(), option.data(), script.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int stream : {0, 1, 2}) {
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", stream == 0 ? O_RDONLY : O_WRONLY, 0);
    }
    pid_t process = -1;
    const int failed = posix_spawn(&process, shell.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
      for (size_t k = 0; k < jobs.size(); ++k)
        if (k % shells >= first) forget(jobs[k]);
      return "cannot start " + shell + ": " + std::strerror(failed);
    }
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

std::string ObjectCache::failureOf(const std::string& source) {
  if (!locate()) return noFolder_;
  const std::string path = pathOf(keyOf(source)), log = path + ".failed";
  if (::access(log.c_str(), R_OK) == 0) {
    const std::string text = firstLines(log);
    ::unlink(log.c_str());
    if (text.empty())
      return fmt::format("{} failed on a generated kernel without a word; there may be no space in {}",
                         compiler_, directory_);
    return fmt::format(
        "{} failed on a generated kernel:\n{}{}", compiler_, text,
        isAboutSource(text) ? "\nThis is a mistake in Kelpie or of that compiler, not in your program." : "");
  }
  if (const auto problem = notLoaded_.find(path); problem != notLoaded_.end())
    return "a compiled kernel could not be loaded: " + problem->second;
  return fmt::format("{} was stopped, or could not write to {}", compiler_, directory_);
}

}  // namespace kelpie::runtime

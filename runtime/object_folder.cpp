#include "runtime/object_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/cache_folders.h"

namespace kelpie::runtime {

namespace fs = std::filesystem;

namespace {

/// Each of these gives what is wrong, or nothing.
std::string problemOf(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return error.message();
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return std::strerror(errno);
  struct statvfs system {};
  if (::statvfs(folder.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0)
    return "code may not be run from there (it is mounted with noexec)";
  return "";
}

/// Of a folder whose parent everybody can write to.
std::string problemAmongOthers(const std::string& folder) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return std::strerror(errno);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return std::strerror(errno);
  if (!S_ISDIR(info.st_mode)) return "it is no folder";
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "other users can write to it";
  return problemOf(folder);
}

}  // namespace

std::variant<std::string, NoFolder> objectFolder(const std::string& chosen) {
  std::string problems;
  const auto good = [&](const std::string& folder, const std::string& problem) {
    if (!problem.empty()) problems += (problems.empty() ? "" : "; ") + folder + ": " + problem;
    return problem.empty();
  };
  for (const std::string& folder : chosen.empty() ? cacheFolders() : std::vector{chosen})
    if (good(folder, problemOf(folder))) return folder;
  if (chosen.empty()) {
    std::error_code error;
    const fs::path temporary = fs::temp_directory_path(error);
    const std::string folder = fmt::format("{}/kelpie-{}", temporary.string(), ::geteuid());
    if (error) {
      good("TMPDIR", error.message());
    } else if (good(folder, problemAmongOthers(folder))) {
      return folder;
    }
  }
  return NoFolder{"there is no folder for compiled kernels (set KELPIE_CACHE): " + problems};
}

}  // namespace kelpie::runtime

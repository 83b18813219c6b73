#include "runtime/cache_folders.h"

#include <cstdlib>

namespace kelpie::runtime {

std::vector<std::string> cacheFolders() {
  std::vector<std::string> folders;
  const auto add = [&](const char* variable, const char* below) {
    const char* value = std::getenv(variable);
    if (value && *value != '\0') folders.push_back(std::string(value) + below);
  };
  add("KELPIE_CACHE", "");
  add("XDG_CACHE_HOME", "/kelpie");
  add("HOME", "/.cache/kelpie");
  return folders;
}

}  // namespace kelpie::runtime

#include "runtime/cuda/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace kelpie::runtime::cuda {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
  }
}

void* SharedLibrary::symbol(const char* name) {
  void* address = handle_ ? dlsym(handle_, name) : nullptr;
  if (!address && missing_.empty()) missing_ = name;
  return address;
}

std::vector<std::string> toolkitLibrary(const std::vector<std::string>& names) {
  std::vector<std::string> paths = names;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable))
      for (const std::string& name : names) paths.push_back(std::string(home) + "/lib64/" + name);
  }
  for (const std::string& name : names) paths.push_back("/usr/local/cuda/lib64/" + name);
  return paths;
}

}  // namespace kelpie::runtime::cuda

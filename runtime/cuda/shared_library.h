// A shared library opened at run time: the CUDA driver and NVRTC are used where they exist and needed
// nowhere.
#pragma once

#include <string>
#include <vector>

namespace kelpie::runtime::cuda {

class SharedLibrary {
 public:
  /// Opens the first of `names` that can be. It stays open: these libraries do not unload well.
  explicit SharedLibrary(const std::vector<std::string>& names);
  bool isOpen() const { return handle_ != nullptr; }

  /// Sets `function` to the symbol; remembers `name` as missing when there is none.
  template <class F>
  void get(F*& function, const char* name) {
    function = reinterpret_cast<F*>(symbol(name));
  }
  const std::string& missing() const { return missing_; }  ///< a symbol that was not found; empty: none

 private:
  void* symbol(const char* name);
  void* handle_ = nullptr;
  std::string missing_;
};

/// Where libraries of the CUDA toolkit may be: `name` alone first, then the usual folders.
std::vector<std::string> toolkitLibrary(const std::vector<std::string>& names);

}  // namespace kelpie::runtime::cuda

// Where compiled objects are kept on disk, from where this process loads them as code.
#pragma once

#include <string>
#include <variant>

namespace kelpie::runtime {

/// Why there is no folder: "there is no folder for compiled kernels (set KELPIE_CACHE): /a: Permission
/// denied".
struct NoFolder {
  std::string message;
};

/// The first folder that can be written to and that code may be loaded from, made if need be: `chosen`; where
/// that is empty, one of cacheFolders(), or else one in the folder for temporary files. There anybody could
/// have put code for this process to run, so it must belong to this user, who alone can write to it.
std::variant<std::string, NoFolder> objectFolder(const std::string& chosen);

}  // namespace kelpie::runtime

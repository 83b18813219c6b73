// Where compiled code is kept for a user's later runs, on the host and of GPUs: $KELPIE_CACHE,
// $XDG_CACHE_HOME/kelpie, ~/.cache/kelpie.
#pragma once

#include <string>
#include <vector>

namespace kelpie::runtime {

/// Those that the environment tells of, the first choice first; none needs to exist.
std::vector<std::string> cacheFolders();

}  // namespace kelpie::runtime

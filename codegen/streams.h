// Where a launch works at a time.
#pragma once

#include <cstdint>

namespace kelpie::codegen {

/// At so many places at the same time, each through neighbours; so often, for each part of its elements.
struct Streams {
  int64_t number = 1, rounds = 1;
};

}  // namespace kelpie::codegen

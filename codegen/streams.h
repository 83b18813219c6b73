// Where a launch works at a time.
#pragma once

#include <cstdint>

namespace kelpie::codegen {

/// At so many places at the same time, each through neighbours; so often, for each part of its elements.
struct Streams {
  int64_t number = 1, rounds = 1;
  /// Neighbours that a block works on at once, or a warp that has a stream; how many tiles of them a
  /// multiprocessor works on at a time (0: it is not known, or there are none), and how many multiprocessors
  /// there are: without streams, one of them has every so many-th tile.
  int64_t tile = 1, together = 0, cores = 1;
};

}  // namespace kelpie::codegen

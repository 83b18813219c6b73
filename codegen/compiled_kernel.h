// What a GPU tells of itself, and of a kernel that was compiled for it and launched.
//
// It comes from a run (runtime/target.h) and is kept in profiles; the figures let a cost model predict for
// this GPU (fusion/device_costs.h). Schedules do not depend on them: what `kelpie build` compiles on one
// machine serves on others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kelpie::codegen {

/// Numbers that are 0 are not known.
struct DeviceFigures {
  std::string name;
  int architecture = 0;  ///< compute capability: 90 is 9.0
  int multiprocessors = 0;
  double clock = 0;          ///< of a multiprocessor, in Hz
  double copyBandwidth = 0;  ///< bytes read plus bytes written in a second by a large copy, as measured
  double cacheBytes = 0;     ///< of the cache that all multiprocessors share
};

/// Of a pass (codegen/cuda/pass_split.h), as its largest launch ran it.
struct CompiledPass {
  int registers = 0;     ///< of a thread, of 4 bytes
  int frameBytes = 0;    ///< of a thread's memory of its own
  int threads = 0;       ///< of a block
  int blocksAtOnce = 0;  ///< of a multiprocessor
  int64_t blocks = 0;    ///< of the launch
};

}  // namespace kelpie::codegen

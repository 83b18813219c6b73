// What launches hand to kernels in words: mirrors of structures in codegen/cuda/base.cuh and
// support_kernels.cuh.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/cuda/cuda_module.h"
#include "runtime/target.h"

namespace kelpie::runtime::cuda {

struct ErrorWord {
  uint64_t launch;
  int64_t element;
  uint32_t binding, site;
  int64_t payload[2];
  uint32_t lock;
};
struct LaunchWord {
  uint64_t number;
  DevicePointer error, counters, states, values;
  int64_t tiles;
  uint32_t epoch;
  int32_t together;
  DevicePointer extent;
  DevicePointer records[codegen::cuda::kMostRecords];
  DevicePointer places[codegen::kMostFoundTogether];
};

struct RecordColumns {
  DevicePointer column[codegen::cuda::kMostColumns];
};
struct GatheredPlaces {
  DevicePointer places;
  int64_t bytes, count, window;
};
struct RankedSegments {
  DevicePointer offsets;
  int64_t isShort;
  int64_t length, count;
  DevicePointer kept;
  int64_t keptIsShort;
};

inline Failure outOfMemory(size_t bytes) {
  return "out of memory: " + std::to_string(bytes) + " bytes that launches need beside their results";
}

}  // namespace kelpie::runtime::cuda

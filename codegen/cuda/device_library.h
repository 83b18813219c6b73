// The device library (codegen/cuda/*.cuh), embedded in the compiler: headers of every generated module.
#pragma once

#include <string>
#include <vector>

namespace kelpie::codegen::cuda {

struct DeviceFile {
  const char* name;  ///< as included: "tile.cuh"
  const char* text;
};
const std::vector<DeviceFile>& deviceLibrary();

}  // namespace kelpie::codegen::cuda

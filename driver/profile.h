// What the kernels of a run took, and the sizes they ran over, as a file: written by `run --profile=FILE`,
// read back by `--fusion-sizes=FILE`, which lets fusion count with real sizes.
//
// A kernel is known by its name, which comes from the function and the operation it was made from, so the
// file serves as long as those stay; names it does not know are ignored, and kernels it does not have are
// estimated as without a file. A fused kernel tells the size of its members over its own elements; how many
// survive a filter inside is told by kernels that run over the survivors, or by a run with --fusion=none.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "fusion/fuse.h"
#include "runtime/executor.h"

namespace kelpie::driver {

class Profile {
 public:
  void add(const std::string& form, const fusion::FusionReport& report,
           const runtime::RunStatistics& statistics);
  std::unordered_map<std::string, fusion::KernelSizes> sizes() const;
  std::string toJson() const;

  /// Reads a file that toJson() wrote; false with the reason in `problem` when that is not possible.
  static bool read(const std::string& path, std::unordered_map<std::string, fusion::KernelSizes>& sizes,
                   std::string& problem);

 private:
  struct Entry {
    std::string form, region, kernel;
    std::vector<std::string> members;
    runtime::KernelStatistics statistics;
  };
  std::vector<Entry> entries_;
};

/// Puts what the kernels took beside what was predicted.
void addMeasured(fusion::FusionReport& report, const runtime::RunStatistics& statistics, bool countsBytes);

}  // namespace kelpie::driver

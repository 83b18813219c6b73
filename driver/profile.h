// What the kernels of a run took, and the sizes they ran over: a table for people, and a file, written by
// `run --profile=FILE` and read back by `--fusion-sizes=FILE`, which lets fusion count with real sizes.
//
// A kernel is known by its name, which comes from the function and the operation it was made from, so the
// file serves as long as those stay; names it does not know are ignored, and kernels it does not have are
// estimated as without a file. A fused kernel tells the size of its members over its own elements, and, if it
// has one filter, how many that keeps. docs/profile.md describes the file.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fusion/fuse.h"
#include "fusion/report.h"
#include "runtime/executor.h"

namespace kelpie::driver {

class Profile {
 public:
  explicit Profile(fusion::LineLookup lookup = nullptr) : lookup_(std::move(lookup)) {}
  /// One run of a form.
  void add(const std::string& form, const fusion::FusionReport& report,
           const runtime::RunStatistics& statistics);
  std::unordered_map<std::string, fusion::KernelSizes> sizes() const;

  /// Where it ran and how fast that copies, in bytes read plus bytes written a second; 0: not known.
  struct Machine {
    std::string target;
    double copyBandwidth = 0;
  };
  std::string toJson(const Machine& machine) const;
  /// A table, the kernels that took longest first; runs of the same kernel are one row.
  std::string toText(const Machine& machine) const;

  /// Reads a file that toJson() wrote; false with the reason in `problem` when that is not possible.
  static bool read(const std::string& path, std::unordered_map<std::string, fusion::KernelSizes>& sizes,
                   std::string& problem);

 private:
  struct Entry {
    std::string form, region, kernel;
    std::vector<std::string> members;  ///< that run over the kernel's own elements
    std::string filter;                ///< the member whose survivors are known; empty: none
    std::vector<fusion::SourceLine> lines;
    runtime::KernelStatistics statistics;
  };
  void addLine(Entry& entry, Span span) const;
  static bool samePlaces(const Entry& a, const Entry& b);

  fusion::LineLookup lookup_;
  std::vector<Entry> entries_;
  runtime::RunStatistics total_;  ///< of all runs, but for the kernels
};

/// Puts what the kernels took beside what was predicted: for kernels that were mostly evaluated, not run as
/// compiled code, that is what an evaluator should take.
void addMeasured(fusion::FusionReport& report, const runtime::RunStatistics& statistics);

}  // namespace kelpie::driver

// What the kernels of a run took, and the sizes they ran over: a table for people, and a file, written by
// `run --profile=FILE` and read back by `--fusion-sizes=FILE`, which lets fusion count with real sizes.
//
// A kernel is known by the place of its form and its own name, which comes from the function and the
// operation it was made from. Forms at other places are counted by the averages over all forms. Names that a
// file does not know are ignored, and kernels it does not have are estimated as without a file. A fused
// kernel tells the size of its members over its own elements, how many its filters keep, how long what its
// permutes write is, and how often the evaluator entered the branches and loops of its thunks.
// docs/profile.md describes the file.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "fusion/fuse.h"
#include "fusion/report.h"
#include "runtime/executor.h"

namespace kelpie::driver {

/// A form's place without the folder of its file: the same from wherever the program is run.
inline std::string formKey(const std::string& place) { return place.substr(place.rfind('/') + 1); }

/// Sizes by the form's key; under "" the averages of what all forms tell.
using SizesByForm = std::unordered_map<std::string, fusion::KnownSizes>;

class Profile {
 public:
  explicit Profile(fusion::LineLookup lookup = nullptr) : lookup_(std::move(lookup)) {}
  /// One run of a form. `place` as SourceManager::describe tells it.
  void add(const std::string& form, const std::string& place, const fusion::FusionReport& report,
           const runtime::RunStatistics& statistics);
  SizesByForm sizes() const;
  /// Samples of another run of the same kernels.
  void addSamples(const SizesByForm& sizes);

  /// Where it ran and how fast that copies, in bytes read plus bytes written a second; 0: not known.
  struct Machine {
    std::string target;
    double copyBandwidth = 0;
    codegen::DeviceFigures device;
  };
  std::string toJson(const Machine& machine) const;
  /// A table, the kernels that took longest first; runs of the same kernel are one row.
  std::string toText(const Machine& machine) const;

  /// Reads a file that toJson() wrote; false with the reason in `problem` when that is not possible.
  static bool read(const std::string& path, SizesByForm& sizes, std::string& problem) {
    codegen::DeviceFigures device;
    return read(path, sizes, device, problem);
  }
  /// The same, and where it ran.
  static bool read(const std::string& path, SizesByForm& sizes, codegen::DeviceFigures& device,
                   std::string& problem);

 private:
  struct Entry {
    std::string form, place, region, kernel, identity;
    std::vector<std::string> members;            ///< that run over the kernel's own elements
    std::vector<std::string> filters, permutes;  ///< members, in order of bindings
    std::vector<fusion::SourceLine> lines;
    runtime::KernelStatistics statistics;
  };
  using Json = nlohmann::ordered_json;
  static Json jsonOf(const Entry& entry);
  void addLine(Entry& entry, Span span) const;
  static bool samePlaces(const Entry& a, const Entry& b);

  /// What the file tells of an entry, and fusion wants to know.
  class Sizes;

  fusion::LineLookup lookup_;
  std::vector<Entry> entries_;
  runtime::RunStatistics total_;  ///< of all runs, but for the kernels
};

/// Puts what the kernels took beside what was predicted: for kernels that were mostly evaluated, not run as
/// compiled code, that is what an evaluator should take.
void addMeasured(fusion::FusionReport& report, const runtime::RunStatistics& statistics);

}  // namespace kelpie::driver

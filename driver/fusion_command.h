// `kelpie fusion`: what fusion made of a program, and why, as text, JSON, a graph or a page.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/backend.h"
#include "driver/options.h"
#include "driver/pipeline.h"
#include "fusion/report_html.h"
#include "runtime/executor.h"

namespace kelpie::driver {

/// The runs of `--run`, by the program of a form.
struct MeasuredRuns {
  std::unordered_map<const core::Program*, runtime::RunStatistics> byProgram;
  /// Why forms failed in some run; what they did before is in `byProgram`.
  std::unordered_map<const core::Program*, std::string> failed;
  bool reported = false;          ///< a run has told of its errors, which come again in the next
  std::set<std::string> kernels;  ///< of the last run, by place of the form and name
  /// Of the last run, as long as somebody may look at `cells`: what of these only its device has comes to the
  /// host where somebody looks, but all of it when the backend ends before them.
  std::unique_ptr<Backend> backend;
  std::unordered_map<uint32_t, Columns> cells;  ///< what global variables were in the end
};

struct FusionRequest {
  FusionFormat format = FusionFormat::Text;
  std::string function;  ///< only its regions; empty: all
  bool compare = false;  ///< at the end, what each strategy takes over all regions
  std::string title;
  std::string target;  ///< whose generated code JSON and pages have; empty: cuda
};

/// Whether the region is the function's, or has a kernel that comes from it; true if `function` is empty.
bool concerns(const fusion::RegionReport& region, const std::string& function);

/// What is wrong with `function` as the name of a function that the forms define, if anything is.
std::optional<Diagnostic> undefinedFunction(const std::vector<FormResult>& forms, const std::string& function,
                                            const Environment& environment);

/// The functions among the forms (only `function`, unless that is empty) as calls with arguments that are not
/// known: what to report where no form calls them.
std::vector<FormResult> callsOfFunctions(const std::vector<FormResult>& forms, const std::string& function,
                                         Session& session);

/// The reports of all forms that compute something, or of those with kernels from the function asked for. Set
/// `compare` and `explain` in the pipeline's options.
std::vector<fusion::FormReport> fusionReports(const std::vector<FormResult>& forms,
                                              const FusionRequest& request, const Pipeline& pipeline,
                                              const SourceManager& sources,
                                              const MeasuredRuns* runs = nullptr);

/// In the format asked for.
std::string writtenReports(const std::vector<fusion::FormReport>& reports, const FusionRequest& request,
                           const SourceManager& sources);

}  // namespace kelpie::driver

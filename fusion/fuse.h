// Fusion of a whole program: every block becomes a schedule of clusters, every cluster one kernel.
//
// In: λcu before fusion (each kernel one SOAC). Out: the program rewritten in place, obeying the rules for
// kernels after fusion (lcu::verify(program, true)), and a report of what was decided and why. Statements of
// a block come in dependence order, among those ready the one first in the source first: the same program
// gives the same result, as long as no search runs into its time limit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/compiled_kernel.h"
#include "codegen/thunk_sample.h"
#include "fusion/cost_model.h"
#include "fusion/dependence_graph.h"
#include "fusion/inline_maps.h"
#include "fusion/named_costs.h"
#include "fusion/solved_problems.h"
#include "ir/lcu.h"

namespace kelpie::fusion {

enum class Strategy : uint8_t { None, Greedy, Delayed, Ilp };
const char* toString(Strategy strategy);
std::optional<Strategy> strategyFromString(std::string_view name);

/// Sizes that a run has seen, of one kernel before fusion, on average; negative: it has not.
struct KernelSizes {
  double elements = -1, segments = -1;
  double survivors = -1;  ///< of a filter; negative: not counted
  double target = -1;     ///< elements of a permute's results
};

/// What a run has told of a program: of a launch, on average. Kernels after fusion are found by their
/// identity (ClusterReport), or by their name where that is all that is known.
struct KnownSizes {
  std::unordered_map<std::string, KernelSizes> kernels;  ///< by name, before fusion
  /// How often the blocks of its thunks were entered (runtime/target.h), by kernel after fusion.
  std::unordered_map<std::string, std::vector<double>> entered;
  /// Threads of each of its passes that a multiprocessor runs at a time, by kernel after fusion.
  std::unordered_map<std::string, std::vector<double>> threads;
  std::unordered_map<std::string, codegen::ThunkSample> samples;  ///< by kernel after fusion
};

struct RegionReport;

/// What a strategy chose before, to make its kernels without another search.
struct GivenSchedule {
  Strategy strategy = Strategy::None;
  std::vector<std::vector<int>> clusters;  ///< of each region in the order of the report: of each node
};

struct FusionOptions {
  Strategy strategy = Strategy::Ilp;
  TargetCosts costs = cudaCosts();
  /// Of kernels that an evaluator runs instead of compiled code; for the report.
  std::optional<TargetCosts> evaluator;
  SizeClasses sizes;
  double seconds = 5;  ///< limit of the searches of one region
  double totalSeconds =
      15;                ///< of all regions together; after that, regions are scheduled greedily and improved
  bool prepare = false;  ///< with `none`, too, run the passes that the other strategies have in front
  bool predict = true;   ///< fill the report's bytes and times, which takes a third of all
  bool compare = false;  ///< solve every region by every strategy, for the report
  bool explain = false;  ///< fill the report's pairs
  bool shares = false;   ///< ... and what predicted times are made of, which takes several times as long
  bool remodel = false;  ///< fill the report's `timeWith`
  /// Takes the place of the strategy where regions are solved; pairs are not explained. From the report of
  /// the same program with otherwise the same options.
  std::optional<GivenSchedule> given;
  KnownSizes known;  ///< from a profile
  /// Of variables that hold globals: the value of a host scalar, the number of elements of an array. Only for
  /// predictions; the schedule does not depend on them.
  std::unordered_map<lcu::VarId, double> globals;
  /// Where the program runs, if it is a GPU. Only for predictions, too: what was compiled on one machine
  /// serves on another.
  codegen::DeviceFigures device;
  /// Of programs before this one; null: each program begins anew.
  std::shared_ptr<SolvedProblems> solved;
  /// Called with every region that has kernels, before it is solved: its nodes and edges, and the problem.
  std::function<void(const RegionReport&, const PartitionProblem&, const PairTable&)> observe;
};

struct StrategyReport {
  Strategy strategy = Strategy::None;
  double objective = 0;       ///< modelled microseconds of launches, loads and stores
  double bound = 0, gap = 0;  ///< what is proven; of ilp only
  double seconds = 0;
  int launches = 0;
  double bytesRead = 0, bytesWritten = 0;
  double microseconds = 0;  ///< modelled, arithmetic and all, of kernels as they are before rewriting
  int contracted = 0, columns = 0, rows = 0, cuts = 0;  ///< ilp
  std::vector<int> cluster;                             ///< of each node
};

struct ClusterReport {
  std::vector<int> nodes;
  std::string kernel;              ///< name of the fused kernel; empty for host statements
  std::string identity;            ///< the name and a hash of its code: another schedule's has another one
  std::string space;               ///< what it runs over, as text
  std::vector<std::string> rules;  ///< applied, in order
  /// Of one launch of the kernel as it was rewritten (kernel_bytes.h); 0 for host statements.
  double bytesRead = 0, bytesWritten = 0;
  bool bytesExact = true;   ///< for exact sizes; otherwise loads under conditions or in loops were estimated
  double microseconds = 0;  ///< modelled, of one launch
  double evaluated = 0;     ///< the same in FusionOptions::evaluator
  std::vector<CostShare> shares;  ///< of the constants in `microseconds`; with FusionOptions::shares only
  /// What `microseconds` would be with other constants, as long as the program lives; with `remodel` only.
  std::function<double(const TargetCosts&)> timeWith;
  std::string text;  ///< the fused kernel, as λcu; with `explain` only
  std::string code;  ///< generated from it; fusion leaves it empty
  /// Members that run over the kernel's own elements, not over survivors or segments: the size of a launch is
  /// theirs.
  std::vector<std::string> anchored;
  /// The members behind its Filters and its Permutes, each in order of bindings; empty names: none alone.
  std::vector<std::string> filters, permutes;
  /// What a run measured; `launches` is 0 without one.
  struct Measured {
    bool ran = false;  ///< its form, though perhaps not this kernel
    uint64_t launches = 0, elements = 0;
    uint64_t evaluated = 0;                  ///< launches that ran in the evaluator, not as compiled code
    double microseconds = 0;                 ///< of one launch, on average
    double bytesRead = 0, bytesWritten = 0;  ///< of one launch
  } measured;
};

/// What decides about two kernels.
enum class PairCause : uint8_t {
  Together,     ///< they share a kernel
  Edge,         ///< one reads the other in a way that needs it complete
  Path,         ///< such an edge lies on a path between them
  Outsider,     ///< somebody on a path between them cannot share a kernel with both
  Requirement,  ///< they need somebody with them who cannot share a kernel with both
  Spaces,       ///< they run over different elements
  Budget,       ///< their scans, filters and partitions would take more than a kernel may
  Cycle,        ///< with all they need they would depend on themselves
  Cost,         ///< nothing forbids it; it gains nothing
};
const char* toString(PairCause cause);

/// Two kernels that could be thought to fuse, and what became of it.
struct PairReport {
  int a = 0, b = 0;
  bool together = false;
  PairCause cause = PairCause::Together;
  bool ofInterest = true;  ///< joined by an edge or a common input, or able to share
  std::string rule;        ///< that fuses them (or would)
  std::string reason;      ///< why they are apart: the constraint, the path, or what it would cost
};

struct NodeReport {
  std::string name;
  std::string kind;      ///< "REDUCE", "host scalars", ...
  std::string function;  ///< that it comes from, also where that was inlined; of kernels only
  std::string text;      ///< the SOAC, on one line
  Span span;
  bool kernel = false;
};

struct EdgeReport {
  int from = 0, to = 0;
  std::string edgeClass;
  bool fusible = false;
  std::string reason;
};

struct RegionReport {
  std::string function;
  std::vector<NodeReport> nodes;
  std::vector<EdgeReport> edges;
  std::vector<PairReport> pairs;
  std::vector<ClusterReport> clusters;  ///< of the strategy chosen, in order
  std::vector<StrategyReport> strategies;
  Strategy chosen = Strategy::Ilp;
  double explained = 0;  ///< seconds that the reasons of the pairs took
};

struct FusionReport {
  std::vector<InlinedMap> inlined;
  std::vector<RegionReport> regions;
  double seconds = 0;
};

FusionReport fuse(lcu::Program& program, const FusionOptions& options = {});

}  // namespace kelpie::fusion

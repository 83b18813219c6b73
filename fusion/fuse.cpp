#include "fusion/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "fusion/common_launches.h"
#include "fusion/common_values.h"
#include "fusion/dead_code.h"
#include "fusion/device_costs.h"
#include "fusion/early_launches.h"
#include "fusion/effects.h"
#include "fusion/explain.h"
#include "fusion/explain_pairs.h"
#include "fusion/graded_order.h"
#include "fusion/implied_checks.h"
#include "fusion/kernel_time.h"
#include "fusion/loop_bounds.h"
#include "fusion/merged_checks.h"
#include "fusion/merged_choices.h"
#include "fusion/paired_reductions.h"
#include "fusion/region_problem.h"
#include "fusion/rewrite.h"
#include "fusion/rules.h"
#include "fusion/scanned_lengths.h"
#include "fusion/scattered_writes.h"
#include "fusion/segment_choices.h"
#include "fusion/sizes.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_ilp.h"
#include "fusion/values_before_loops.h"
#include "ir/diagnostic.h"

namespace kelpie::fusion {

using lcu::VarId;

const char* toString(Strategy strategy) {
  switch (strategy) {
    case Strategy::None:
      return "none";
    case Strategy::Greedy:
      return "greedy";
    case Strategy::Delayed:
      return "delayed";
    case Strategy::Ilp:
      return "ilp";
  }
  return "";
}

std::optional<Strategy> strategyFromString(std::string_view name) {
  for (Strategy s : {Strategy::None, Strategy::Greedy, Strategy::Delayed, Strategy::Ilp}) {
    if (name == toString(s)) return s;
  }
  return std::nullopt;
}

namespace {

/// The name and a hash of the code (FNV-1a).
std::string identityOf(const lcu::Kernel& kernel, const lcu::Program& program, const lcu::Names& names) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : lcu::toString(kernel, program, names))
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return fmt::format("{} {:016x}", kernel.name, hash);
}

Partition solve(Strategy strategy, const RegionProblem& region, const PairTable& pairs, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  const PartitionProblem& problem = region.problem;
  if (strategy == Strategy::Ilp) return solveIlp(problem, pairs, {seconds, true, true});
  Partition result;
  switch (strategy) {
    case Strategy::Greedy:
      result.cluster = solveGreedy(problem, pairs);
      break;
    case Strategy::Delayed:
      result.cluster = solveDelayed(problem, pairs, region.elementwise);
      break;
    default:
      result.cluster = separate(problem.nodes);
      break;
  }
  result.cost = costOf(problem, result.cluster);  // of which nothing is proven
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

/// The same, found before where it was.
Partition solveOnce(Strategy strategy, const RegionProblem& region, const PairTable& pairs, double seconds,
                    SolvedProblem& known) {
  std::string way = toString(strategy);
  if (strategy == Strategy::Delayed)
    for (const bool elementwise : region.elementwise) way += elementwise ? '1' : '0';
  const double allowed = strategy == Strategy::Ilp ? seconds : 0;
  if (const Partition* partition = known.partition(way, allowed)) {
    Partition again = *partition;
    again.seconds = again.counted = 0;
    return again;
  }
  Partition partition = solve(strategy, region, pairs, seconds);
  known.add(way, allowed, partition);
  return partition;
}

class Fuser {
 public:
  Fuser(lcu::Program& program, const FusionOptions& options) : program_(program), options_(options) {}

  FusionReport run() {
    const auto start = std::chrono::steady_clock::now();
    normaliseSizes(program_);
    removeCommonLaunches(program_);
    if (options_.strategy != Strategy::None || options_.prepare) {
      useScannedLengths(program_);
      useGradedOrder(program_);
      scatterWrites(program_);
      pairReductions(program_);
      const std::set<VarId> values = storeCommonValues(program_);
      report_.inlined =
          inlineMaps(program_, CostModel(program_, options_.costs, options_.sizes, knownExtents()), values);
      chooseForSegments(program_);
    }
    forEachLaunch([&](lcu::Kernel& kernel) { dropImpliedChecks(kernel, *program_.arena, leftForChecks_); });
    removeDeadCode(program_);
    forEachLaunch([&](lcu::Kernel& kernel) { mergeChecks(kernel, *program_.arena); });
    const CostModel model(program_, options_.costs, options_.sizes, knownExtents());
    if (!options_.globals.empty() || !options_.device.name.empty())
      predictor_.emplace(program_, costsOn(options_.device, options_.costs), options_.sizes,
                         knownExtents(options_.globals));
    if (options_.evaluator)
      evaluator_.emplace(program_, *options_.evaluator, options_.sizes, knownExtents(options_.globals));
    const Effects effects(program_);
    const auto function = [&](lcu::HostFunction& f, const std::string& name) {
      block(f.body, name, model, effects);
    };
    function(program_.entry, program_.entry.name.empty() ? "main" : program_.entry.name);
    for (lcu::HostFunction& f : program_.functions) function(f, f.name);
    if (options_.strategy != Strategy::None) launchEarly(program_);
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  void forEachLaunch(const std::function<void(lcu::Kernel&)>& visit) {
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (lcu::Stmt& stmt : block.stmts)
        if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) visit(launch->kernel);
    });
  }

  /// The extents whose values a profile tells, or globals that have values.
  std::unordered_map<lcu::ExprRef, double> knownExtents(
      const std::unordered_map<VarId, double>& globals = {}) const {
    std::unordered_map<lcu::ExprRef, double> known;
    for (const auto& [var, value] : globals) {
      const lcu::VarInfo& info = program_.vars[var];
      known[info.kind == lcu::VarKind::Array ? program_.arena->size(var)
                                             : program_.arena->host(var, info.type)] = value;
    }
    if (options_.known.kernels.empty()) return known;
    lcu::forEachBlock(program_, [&](const lcu::Block& block) {
      for (const lcu::Stmt& stmt : block.stmts) {
        const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
        if (!launch) continue;
        const auto sizes = options_.known.kernels.find(launch->kernel.name);
        if (sizes == options_.known.kernels.end()) continue;
        const lcu::Space& space = launch->kernel.bindings[0].space;
        if (space.extent && sizes->second.elements >= 0) known[space.extent] = sizes->second.elements;
        if (space.segmented() && sizes->second.segments >= 0) known[space.segments] = sizes->second.segments;
        const lcu::Soac& soac = launch->kernel.bindings[0];
        if (soac.kind == lcu::SoacKind::Filter && sizes->second.survivors >= 0) {
          known[survivorExtent(soac, program_)] = sizes->second.survivors;
        }
        if (soac.kind == lcu::SoacKind::Permute && sizes->second.target >= 0)
          known[soac.target] = sizes->second.target;
      }
    });
    return known;
  }

  /// Nested regions first: the statements of this one move afterwards.
  void block(lcu::Block& block, const std::string& name, const CostModel& model, const Effects& effects) {
    for (lcu::Stmt& stmt : block.stmts) {
      if (auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
        this->block(*conditional->thenBlock, name + ", then", model, effects);
        this->block(*conditional->elseBlock, name + ", else", model, effects);
      } else if (auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
        this->block(*loop->condition, name + ", loop condition", model, effects);
        this->block(*loop->body, name + ", loop", model, effects);
      }
    }
    region(block, name, model, effects);
  }

  void region(lcu::Block& block, const std::string& name, const CostModel& model, const Effects& effects) {
    // A warp that reduces segments has the results of a few at a time: of 32 lanes these alone would loop.
    constexpr double kFewSegments = 4096;  // for which another launch takes longer
    const auto mayFinishSegments = [&](const lcu::Soac& map) {
      return !options_.costs.lockStep || model.elements(map.space.extent) <= kFewSegments ||
             !lcu::anyNode(thunksOf(map), lcu::isUnbounded);
    };
    const DependenceGraph graph = buildDependenceGraph(block, program_, effects, mayFinishSegments);
    const bool anyKernel =
        std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const GraphNode& n) { return n.soac; });
    if (!anyKernel) return;
    const RegionProblem problem = regionProblem(block, graph, program_, model);
    const PairTable pairs(problem.problem);
    const CostModel& predictor = predictor_ ? *predictor_ : model;
    const RegionProblem predicted = predictor_ ? regionProblem(block, graph, program_, predictor) : problem;
    RegionReport report = describeRegion(name, graph, program_, options_.explain ? &variables() : nullptr);
    if (options_.observe) options_.observe(report, problem.problem, pairs);
    if (options_.given) return given(block, graph, predicted, predictor, std::move(report));
    report.chosen = options_.strategy;
    SolvedProblem& known = (options_.solved ? *options_.solved : solved_).of(problem.problem);
    Partition chosen;
    std::vector<Partition> solved;
    for (Strategy s : {Strategy::None, Strategy::Delayed, Strategy::Greedy, Strategy::Ilp}) {
      if (s != options_.strategy && !options_.compare) continue;
      const double left = std::max(0.0, options_.totalSeconds - searched_);
      const Partition partition = solveOnce(s, problem, pairs, std::min(options_.seconds, left), known);
      if (s == Strategy::Ilp) searched_ += partition.counted;
      report.strategies.push_back(
          describeStrategy(s, partition, predicted, options_.predict ? &predictor : nullptr));
      if (s == options_.strategy) chosen = partition;
      solved.push_back(partition);
    }
    if (options_.explain) {
      const auto start = std::chrono::steady_clock::now();
      report.pairs = explainPairs(graph, problem, pairs, chosen.cluster, options_.strategy, solved,
                                  known.costs(chosen.cluster, solved));
      report.explained = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    schedule(block, graph, predicted, chosen.cluster, predictor, report);
    report_.regions.push_back(std::move(report));
  }

  void given(lcu::Block& block, const DependenceGraph& graph, const RegionProblem& problem,
             const CostModel& predictor, RegionReport report) {
    const size_t number = report_.regions.size();
    Partition partition;
    if (number < options_.given->clusters.size()) partition.cluster = options_.given->clusters[number];
    if (partition.cluster.size() != graph.nodes.size())
      throw InternalError("fusion: a given schedule is of another program");
    partition.cost = costOf(problem.problem, partition.cluster);
    report.chosen = options_.given->strategy;
    report.strategies.push_back(
        describeStrategy(report.chosen, partition, problem, options_.predict ? &predictor : nullptr));
    schedule(block, graph, problem, partition.cluster, predictor, report);
    report_.regions.push_back(std::move(report));
  }

  void schedule(lcu::Block& block, const DependenceGraph& graph, const RegionProblem& problem,
                const Assignment& cluster, const CostModel& model, RegionReport& report) {
    const std::optional<std::vector<int>> order = clusterOrder(problem.problem, cluster, waitingNodes(graph));
    if (!order) throw InternalError("fusion: the clusters cannot be ordered");
    std::vector<std::vector<int>> members(graph.nodes.size());
    for (size_t v = 0; v < graph.nodes.size(); ++v) members[cluster[v]].push_back(static_cast<int>(v));
    const std::map<VarId, std::set<int>> users = usersOf(block, graph, cluster);
    std::deque<lcu::Stmt> stmts;
    for (int c : *order) {
      ClusterReport clusterReport =
          describeCluster(c, cluster, graph, options_.explain ? &variables() : nullptr);
      const lcu::Stmt& first = *graph.nodes[members[c][0]].stmt;
      if (graph.nodes[members[c][0]].soac) {
        std::vector<const lcu::Kernel*> kernels;
        std::set<VarId> needed;
        for (int v : members[c]) {
          kernels.push_back(&std::get<lcu::Launch>(graph.nodes[v].stmt->node).kernel);
          for (VarId var : graph.nodes[v].stmt->results) {
            const auto it = users.find(var);
            if (it == users.end()) continue;
            const bool outside =
                std::any_of(it->second.begin(), it->second.end(), [&](int user) { return user != c; });
            if (outside) needed.insert(var);
          }
        }
        RewrittenKernel rewritten = rewriteCluster(kernels, needed, program_);
        if (rewritten.kernel.bindings.empty()) continue;
        mergeChecks(rewritten.kernel, *program_.arena);
        dropImpliedChecks(rewritten.kernel, *program_.arena, leftForChecks_);
        mergeChoices(rewritten.kernel, *program_.arena);
        computeBeforeLoops(rewritten.kernel, *program_.arena);
        markLoopVariables(rewritten.kernel, *program_.arena);
        rewritten.kernel.name = unused(kernelName(kernels));
        clusterReport.kernel = rewritten.kernel.name;
        clusterReport.identity = identityOf(rewritten.kernel, program_, variables());
        clusterReport.rules = std::move(rewritten.rules);
        nameSizes(clusterReport, kernels, rewritten.kernel);
        if (options_.predict) addPrediction(clusterReport, kernels, rewritten.kernel, model);
        if (options_.explain) clusterReport.text = lcu::toString(rewritten.kernel, program_, variables());
        lcu::Stmt stmt;
        stmt.results = rewritten.kernel.returns;
        stmt.span = first.span;
        stmt.node = lcu::Launch{std::move(rewritten.kernel)};
        stmts.push_back(std::move(stmt));
      } else {
        stmts.push_back(first);
      }
      report.clusters.push_back(std::move(clusterReport));
    }
    block.stmts = std::move(stmts);
  }

  /// The names of the members whose sizes a run of the kernel can tell.
  static void nameSizes(ClusterReport& report, const std::vector<const lcu::Kernel*>& members,
                        const lcu::Kernel& kernel) {
    std::unordered_map<VarId, std::string> names;  // by result
    for (const lcu::Kernel* member : members)
      for (VarId result : member->bindings[0].results) names[result] = member->name;
    for (const lcu::Soac& soac : kernel.bindings) {
      if (soac.results.empty()) continue;
      if (soac.kind == lcu::SoacKind::Filter) report.filters.push_back(names[soac.results[0]]);
      if (soac.kind == lcu::SoacKind::Permute) report.permutes.push_back(names[soac.results[0]]);
    }
  }

  /// What is known of the kernel of a cluster; as by default where nothing is.
  template <typename What>
  static What knownOf(const std::unordered_map<std::string, What>& known, const ClusterReport& report) {
    auto found = known.find(report.identity);
    if (found == known.end()) found = known.find(report.kernel);
    return found == known.end() ? What() : found->second;
  }

  /// Bytes and time of the kernel of a cluster.
  void addPrediction(ClusterReport& report, const std::vector<const lcu::Kernel*>& members,
                     const lcu::Kernel& kernel, const CostModel& model) const {
    LaunchSizes sizes;
    for (const lcu::Kernel* member : members) {
      const lcu::Soac& soac = member->bindings[0];
      const auto known = options_.known.kernels.find(member->name);
      if (known == options_.known.kernels.end()) continue;
      if (known->second.elements >= 0 &&
          std::find(report.anchored.begin(), report.anchored.end(), member->name) != report.anchored.end()) {
        sizes.elements = known->second.elements;
        sizes.segments = known->second.segments;
      }
      for (VarId result : soac.results) {
        if (known->second.survivors >= 0) sizes.survivors[result] = known->second.survivors;
        if (known->second.target >= 0) sizes.targets[result] = known->second.target;
      }
    }
    sizes.entered = knownOf(options_.known.entered, report);
    sizes.threads = knownOf(options_.known.threads, report);
    const KernelBytes bytes = kernelBytes(kernel, program_, model, sizes);
    report.bytesRead = bytes.read;
    report.bytesWritten = bytes.written;
    report.bytesExact = bytes.exact;
    const codegen::ThunkSample sampled = knownOf(options_.known.samples, report);
    const KernelTimer timer(kernel, program_, model, sizes, sampled);
    report.microseconds = timer.time(model);
    if (options_.shares) {
      report.shares = sharesOfCosts(model.costs(),
                                    [&](const TargetCosts& costs) { return timer.time(model.with(costs)); });
    }
    if (options_.remodel) {
      report.timeWith = [kernel, &program = program_, model, sizes, sampled](const TargetCosts& costs) {
        return kernelTime(kernel, program, model.with(costs), sizes, sampled);
      };
    }
    if (evaluator_) report.evaluated = kernelTime(kernel, program_, *evaluator_, sizes, sampled);
  }

  /// Statements of the host that wait for the device: better launched before them what can be.
  static std::vector<bool> waitingNodes(const DependenceGraph& graph) {
    std::vector<bool> waits(graph.nodes.size(), false);
    for (const GraphEdge& e : graph.edges) {
      if (e.edgeClass == EdgeClass::HostFetch && !graph.nodes[e.to].soac) waits[e.to] = true;
    }
    return waits;
  }

  /// For each variable made in the block the clusters that use it; -1 stands for the block's results.
  std::map<VarId, std::set<int>> usersOf(const lcu::Block& block, const DependenceGraph& graph,
                                         const Assignment& cluster) const {
    std::map<VarId, std::set<int>> users;
    const std::function<void(VarId, int)> use = [&](VarId var, int user) {
      if (!users[var].insert(user).second) return;
      // Whoever has an array outside of the kernel that makes it needs its size.
      const lcu::ExprRef extent = program_.vars[var].extent;
      if (!extent || user != -1) return;
      for (VarId read : lcu::freeVars(std::vector{extent})) use(read, user);
    };
    for (VarId var : block.results) use(var, -1);
    for (size_t v = 0; v < graph.nodes.size(); ++v) {
      for (VarId var : lcu::freeVars(*graph.nodes[v].stmt)) use(var, cluster[v]);
    }
    return users;
  }

  /// "norm2_reduce_1_filter_2_reduce_3": of names that begin with the same function, what is different.
  static std::string kernelName(const std::vector<const lcu::Kernel*>& kernels) {
    constexpr size_t kSpelledOut = 4;
    const std::string prefix = kernels[0]->bindings[0].origin + "_";
    std::string name = kernels[0]->name;
    for (size_t k = 1; k < std::min(kSpelledOut, kernels.size()); ++k) {
      const std::string& other = kernels[k]->name;
      name += "_" + (prefix.size() > 1 && other.starts_with(prefix) ? other.substr(prefix.size()) : other);
    }
    if (kernels.size() > kSpelledOut) name += fmt::format("_and_{}_more", kernels.size() - kSpelledOut);
    return name;
  }

  /// Kernels of a program have different names, so that a profile can tell them apart.
  /// Names of variables in text.
  const lcu::Names& variables() {
    if (!variables_ || !variables_->completeFor(program_)) variables_.emplace(program_);
    return *variables_;
  }

  std::string unused(const std::string& name) {
    std::string result = name;
    for (int k = 2; !names_.insert(result).second; ++k) result = fmt::format("{}_again_{}", name, k);
    return result;
  }

  lcu::Program& program_;
  const FusionOptions& options_;
  FusionReport report_;
  std::optional<CostModel> predictor_;  ///< knows more than what the schedule may depend on
  std::optional<CostModel> evaluator_;
  std::set<std::string> names_;  ///< of kernels
  std::optional<lcu::Names> variables_;
  SolvedProblems solved_;  ///< where no program came before
  double searched_ = 0;    ///< counted seconds of the integer programs so far
  int64_t leftForChecks_ = kMostForImpliedChecks;
};

}  // namespace

FusionReport fuse(lcu::Program& program, const FusionOptions& options) {
  return Fuser(program, options).run();
}

}  // namespace kelpie::fusion

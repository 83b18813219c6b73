#include "driver/backend.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "frontend/interpreter.h"
#include "runtime/executor.h"
#include "runtime/runtime.h"

namespace kelpie::driver {

namespace {

/// Lets allocations fail, which is reported, before the machine runs out of memory, which is not. Only for
/// the reference interpreter: the targets have limits of their own, and a GPU's driver reserves address space
/// freely.
class MemoryLimit {
 public:
  MemoryLimit() : known_(getrlimit(RLIMIT_AS, &before_) == 0) {
    const auto machine =
        static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
    rlimit limit = before_;
    limit.rlim_cur = std::min(limit.rlim_cur, machine / 4 * 3);
    if (known_) setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() {
    if (known_) setrlimit(RLIMIT_AS, &before_);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
  bool known_;
};

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(const std::atomic<bool>& interrupted) : options_{&interrupted} {}
  std::string name() const override { return "reference"; }
  std::variant<Columns, RuntimeError> run(const core::Program& program, const CellValues& cells,
                                          Services& services) override {
    return interpret(program, cells, services, options_);
  }

 private:
  MemoryLimit memoryLimit_;
  InterpreterOptions options_;
};

class CompilingBackend final : public Backend {
 public:
  CompilingBackend(std::unique_ptr<runtime::Target> target, Pipeline pipeline,
                   const std::atomic<bool>* interrupted)
      : executor_(std::move(target)), pipeline_(std::move(pipeline)) {
    options_.interrupt = interrupted;
  }
  std::string name() const override { return const_cast<runtime::Executor&>(executor_).target().name(); }
  std::variant<Columns, RuntimeError> run(const core::Program& program, const CellValues& cells,
                                          Services& services) override {
    lcu::Program compiled = pipeline_.flatten(program, cells);
    const fusion::FusionReport report = pipeline_.fuse(compiled);
    statistics_ = {};
    auto result = executor_.run(compiled, cells, services, options_, &statistics_);
    if (observer_) observer_(program, report, statistics_);
    return result;
  }
  void observe(RunObserver observer) override {
    observer_ = std::move(observer);
    options_.timeKernels = observer_ != nullptr;
  }
  std::string account() const override {
    return fmt::format("{} launches, {} waits, {} bytes up, {} down, peak {} bytes", statistics_.launches,
                       statistics_.synchronisations, statistics_.uploadedBytes, statistics_.downloadedBytes,
                       statistics_.peakBytes);
  }

  double copyBandwidth() override { return executor_.target().copyBandwidth(); }

 private:
  runtime::Executor executor_;
  Pipeline pipeline_;
  runtime::RunOptions options_;
  runtime::RunStatistics statistics_;
  RunObserver observer_;
};

}  // namespace

std::unique_ptr<Backend> makeBackend(const std::string& target, const Options& options,
                                     const std::atomic<bool>& interrupted, const SourceManager& sources,
                                     std::string& problem) {
  if (target == "reference") return std::make_unique<ReferenceBackend>(interrupted);

  const Pipeline pipeline(sources, pipelineOptions(options, target));
  runtime::TargetOptions targetOptions;
  targetOptions.cuda.describe = [pipeline](Span span) { return pipeline.describe(span); };
  std::unique_ptr<runtime::Target> found;
  std::string failure;
  if (target.empty()) found = runtime::makeTarget("cuda", problem, targetOptions);  // else `problem` says why
  if (!found) {
    found = runtime::makeTarget(target.empty() ? "cpu" : target, failure, targetOptions);
    if (!found) problem = failure;
  }
  if (!found) return nullptr;
  const PipelineOptions passes = pipelineOptions(options, found->name());
  return std::make_unique<CompilingBackend>(std::move(found), Pipeline(sources, passes), &interrupted);
}

}  // namespace kelpie::driver

#include "driver/backend.h"

#include <fmt/format.h>

#include "frontend/interpreter.h"
#include "runtime/executor.h"
#include "runtime/runtime.h"

namespace kelpie::driver {

namespace {

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(const std::atomic<bool>* interrupted) : options_{interrupted} {}
  std::string name() const override { return "reference"; }
  std::variant<Columns, RuntimeError> run(const core::Program& program, const CellValues& cells,
                                          Services& services) override {
    return interpret(program, cells, services, options_);
  }

 private:
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
    const lcu::Program compiled = pipeline_.compile(program);
    statistics_ = {};
    return executor_.run(compiled, cells, services, options_, &statistics_);
  }
  std::string account() const override {
    return fmt::format("{} launches, {} waits, {} bytes up, {} down, peak {} bytes", statistics_.launches,
                       statistics_.synchronisations, statistics_.uploadedBytes, statistics_.downloadedBytes,
                       statistics_.peakBytes);
  }

 private:
  runtime::Executor executor_;
  Pipeline pipeline_;
  runtime::RunOptions options_;
  runtime::RunStatistics statistics_;
};

}  // namespace

std::unique_ptr<Backend> makeBackend(BackendRequest request, const SourceManager& sources,
                                     std::string& problem) {
  if (request.target == "reference") return std::make_unique<ReferenceBackend>(request.interrupted);

  const Pipeline pipeline(sources, request.pipeline);
  runtime::TargetOptions options;
  options.describe = [pipeline](Span span) { return pipeline.describe(span); };
  std::unique_ptr<runtime::Target> target;
  if (request.target.empty()) {
    target = runtime::makeTarget("cuda", problem, options);
    if (!target) request.target = "cpu";  // `problem` says why
  }
  if (!target) {
    std::string failure;
    target = runtime::makeTarget(request.target, failure, options);
    if (!target) problem = failure;
  }
  if (!target) return nullptr;
  request.pipeline.fusion.costs = target->name() == "cuda" ? fusion::cudaCosts() : fusion::cpuCosts();
  return std::make_unique<CompilingBackend>(std::move(target), Pipeline(sources, request.pipeline),
                                            request.interrupted);
}

}  // namespace kelpie::driver

#include "driver/backend.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "driver/cell_shapes.h"
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
  std::unique_ptr<PreparedForm> prepare(const core::Program& program, const CellValues& cells) override;

 private:
  MemoryLimit memoryLimit_;
  InterpreterOptions options_;
};

class ReferenceForm final : public PreparedForm {
 public:
  ReferenceForm(Backend& backend, const core::Program& program) : backend_(backend), program_(program) {}
  std::variant<Columns, RuntimeError> run(const CellValues& cells, Services& services, const Options&,
                                          runtime::RunStatistics& statistics) override {
    const auto begin = std::chrono::steady_clock::now();
    auto result = backend_.run(program_, cells, services);
    statistics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  }

 private:
  Backend& backend_;
  const core::Program& program_;
};

std::unique_ptr<PreparedForm> ReferenceBackend::prepare(const core::Program& program, const CellValues&) {
  return std::make_unique<ReferenceForm>(*this, program);
}

/// A form as an executor runs it.
class CompiledForm final : public PreparedForm {
 public:
  CompiledForm(runtime::Executor& executor, lcu::Program program, const std::atomic<bool>* interrupted)
      : executor_(executor), program_(std::move(program)), interrupted_(interrupted) {}
  void fuse(const Pipeline& pipeline, bool later) {
    report_ = pipeline.fuse(program_);
    prepared_ = executor_.prepare(program_, later);
  }
  std::variant<Columns, RuntimeError> run(const CellValues& cells, Services& services, const Options& options,
                                          runtime::RunStatistics& statistics) override {
    runtime::RunOptions runOptions;
    runOptions.interrupt = interrupted_;
    runOptions.timeKernels = options.timeKernels;
    runOptions.sampleThunks = options.sampleThunks;
    runOptions.earlier = options.earlier;
    runOptions.discardResults = !options.keepResults;
    return executor_.run(*prepared_, cells, services, runOptions, &statistics);
  }
  bool canRun() const { return prepared_->canRun(); }
  const lcu::Program& program() const { return program_; }
  const fusion::FusionReport& report() const { return report_; }

 private:
  runtime::Executor& executor_;
  lcu::Program program_;
  const std::atomic<bool>* interrupted_;
  fusion::FusionReport report_;
  std::unique_ptr<runtime::PreparedProgram> prepared_;
};

class CompilingBackend final : public Backend {
 public:
  CompilingBackend(std::unique_ptr<runtime::Target> target, Pipeline pipeline,
                   const std::atomic<bool>* interrupted)
      : executor_(std::move(target)), pipeline_(std::move(pipeline)), interrupted_(interrupted) {}
  std::string name() const override { return const_cast<runtime::Executor&>(executor_).target().name(); }
  std::variant<Columns, RuntimeError> run(const core::Program& program, const CellValues& cells,
                                          Services& services) override {
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<CompiledForm> form = compiled(program, cells);
    statistics_ = {};
    PreparedForm::Options options{true, observer_ != nullptr, sample_, nullptr};
    if (const auto earlier = earlier_.find(&program); earlier != earlier_.end())
      options.earlier = &earlier->second;
    auto result = form->run(cells, services, options, statistics_);
    statistics_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (observer_) observer_(program, form->report(), statistics_);
    return result;
  }
  std::unique_ptr<PreparedForm> prepare(const core::Program& program, const CellValues& cells) override {
    return compiled(program, cells);
  }
  void expect(const std::vector<const FormResult*>& forms,
              const std::unordered_map<uint32_t, Columns>& values) override {
    expected_.clear();
    if (name() != "cuda") return;  // the others compile what turns out to be worth it
    ForeseenCells cells(values);
    for (const FormResult* form : forms) {
      const core::Program& program = *form->program;
      try {
        RegularCells read = cells.readBy(program);
        std::unique_ptr<CompiledForm> compiled = compile(program, read, true);
        cells.assign(form->assignments, compiled->program());
        expected_[&program] = {std::move(read), std::move(compiled)};
      } catch (const InternalError&) {
        // It comes again when the program runs, after those before it.
      }
    }
  }
  void observe(const RunObserver& observer) override { observer_ = observer; }
  void sample(const EarlierRuns& earlier) override {
    earlier_ = earlier;
    sample_ = true;
  }
  std::string account() const override {
    const runtime::CompilerStatistics& compiler = statistics_.compiler;
    const auto counted = [](uint64_t count, std::string_view one, std::string_view ending) {
      return fmt::format("{} {}{}", count, one, count == 1 ? "" : ending);
    };
    std::string text = fmt::format(
        "{}, {} ({:.3f} ms), {} up, {} down, {}, peak {}", counted(statistics_.launches, "launch", "es"),
        counted(statistics_.synchronisations, "wait", "s"), 1e3 * statistics_.waitedSeconds,
        counted(statistics_.uploadedBytes, "byte", "s"), statistics_.downloadedBytes,
        counted(statistics_.allocations, "allocation", "s"), counted(statistics_.peakBytes, "byte", "s"));
    if (statistics_.foretold > 0)
      text += fmt::format(", {} foretold", counted(statistics_.foretold, "condition", "s"));
    if (compiler.compiled + compiler.cached > 0)
      text += fmt::format(", {} compiled and {} found on disk in {:.1f} ms",
                          counted(compiler.compiled, "kernel", "s"), compiler.cached,
                          1e3 * compiler.waitedSeconds);
    if (statistics_.unexpected > 0)
      text += fmt::format(", {} for offsets or places of other widths than expected",
                          counted(statistics_.unexpected, "kernel", "s"));
    return text;
  }

  std::string takeComplaint() override { return executor_.target().takeComplaint(); }
  double copyBandwidth() override { return executor_.target().copyBandwidth(); }
  codegen::DeviceFigures figures() override { return executor_.target().figures(); }

 private:
  /// A form that was compiled before those before it have run: the shapes for which it was.
  struct Expected {
    RegularCells read;
    std::unique_ptr<CompiledForm> form;
  };
  std::unique_ptr<CompiledForm> compile(const core::Program& program, const RegularCells& cells, bool later) {
    auto form = std::make_unique<CompiledForm>(executor_, pipeline_.flatten(program, cells), interrupted_);
    form->fuse(pipeline_, later);
    return form;
  }
  std::unique_ptr<CompiledForm> compiled(const core::Program& program, const CellValues& cells) {
    const RegularCells read = shapesOfCells(program, cells);
    const auto expected = expected_.extract(&program);
    std::unique_ptr<CompiledForm> form = expected && expected.mapped().read == read
                                             ? std::move(expected.mapped().form)
                                             : compile(program, read, false);
    // Code that was compiled ahead knows no shapes.
    return form->canRun() || read.empty() ? std::move(form) : compile(program, {}, false);
  }

  runtime::Executor executor_;
  Pipeline pipeline_;
  const std::atomic<bool>* interrupted_;
  runtime::RunStatistics statistics_;
  RunObserver observer_;
  bool sample_ = false;
  EarlierRuns earlier_;
  std::unordered_map<const core::Program*, Expected> expected_;
};

}  // namespace

void tellComplaint(Backend& backend) {
  if (const std::string complaint = backend.takeComplaint(); !complaint.empty())
    fmt::print(stderr, "kelpie: kernels are interpreted, which takes longer: {}\nResults are right.\n",
               complaint);
}

std::unique_ptr<Backend> makeBackend(const std::string& target, const Options& options,
                                     const std::atomic<bool>& interrupted, const SourceManager& sources,
                                     std::string& problem) {
  if (target == "reference") return std::make_unique<ReferenceBackend>(interrupted);

  const Pipeline pipeline(sources, pipelineOptions(options, target));
  runtime::TargetOptions targetOptions;
  targetOptions.cuda.describe = [pipeline](Span span) { return pipeline.describe(span); };
  targetOptions.cuda.longOffsets = options.longOffsets;
  targetOptions.cuda.compiledAhead = options.kernelsFolder;
  // What is measured or reported is what compiled kernels do.
  targetOptions.cuda.evaluateMeanwhile =
      (options.command == Command::Run || options.command == Command::Repl) && !options.waitForKernels &&
      !options.verbose && options.profileFile.empty();
  targetOptions.cuda.compilerHelper = kCompilerHelper;
  if (options.command == Command::Bench) targetOptions.cpu.jit = runtime::Jit::Always;  // what it comes to
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

// The command `kelpie`.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "driver/backend.h"
#include "driver/bench_command.h"
#include "driver/build_command.h"
#include "driver/costs_file.h"
#include "driver/emit.h"
#include "driver/fusion_command.h"
#include "driver/interrupt.h"
#include "driver/options.h"
#include "driver/pipeline.h"
#include "driver/profile.h"
#include "driver/repl.h"
#include "driver/runner.h"
#include "driver/source_line.h"
#include "frontend/ast_print.h"
#include "frontend/parser.h"
#include "frontend/session.h"
#include "fusion/emit_lp.h"
#include "ir/deep_stack.h"
#include "runtime/cuda/cuda.h"
#include "runtime/services.h"

namespace kelpie::driver {
namespace {

class Driver {
 public:
  explicit Driver(Options options)
      : options_(std::move(options)), colour_(isatty(STDERR_FILENO)), output_(stdout) {}

  int execute();

 private:
  int executeCommand(uint32_t file);
  int run(const std::vector<FormResult>& forms);
  int bench(const std::vector<FormResult>& forms, Session& session, const Pipeline& pipeline);
  int compareResults();
  std::unique_ptr<Backend> openBackend(std::string& problem);
  int fusion(const std::vector<FormResult>& forms, Session& session);
  bool tell(const Profile& profile, Backend& backend);
  enum class Measured : uint8_t { Sizes, Samples, Times };
  bool measure(const std::vector<FormResult>& forms, Measured what, MeasuredRuns& runs);
  bool measureRepeatedly(const std::vector<FormResult>& forms, MeasuredRuns& runs);
  std::unique_ptr<Services> services(std::function<void(std::string_view)> output);
  bool canWriteResults() const;
  bool canWrite(const std::string& path) const;
  bool profileKnows(const std::vector<FormResult>& forms) const;  ///< the sizes of some of them
  bool writeFile(const std::string& path, const std::string& text) const;
  int check(const std::vector<FormResult>& forms);
  int printTrees(uint32_t file);

  bool report(const std::vector<FormResult>& forms);
  void print(const Diagnostic& diagnostic) const;
  Options options_;
  bool colour_;
  SourceManager sources_;
  Output output_;
};

void Driver::print(const Diagnostic& diagnostic) const {
  const std::string text = sources_.render(diagnostic, colour_);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

const std::string& nameOf(const std::vector<FormResult>& forms, const core::Program& program) {
  static const std::string none;
  for (const FormResult& form : forms) {
    if (form.program && &*form.program == &program) return form.name;
  }
  return none;
}

/// Prints all diagnostics; whether the program may go on.
bool Driver::report(const std::vector<FormResult>& forms) {
  bool good = true;
  size_t count = 0;
  for (const FormResult& form : forms) {
    for (const Diagnostic& diagnostic : form.diagnostics)
      if (diagnostic.shown && ++count <= kMaximalDiagnostics) print(diagnostic);
    good = good && !form.failed();
  }
  if (count > kMaximalDiagnostics)
    fmt::print(stderr, "kelpie: {} more messages are not shown\n", count - kMaximalDiagnostics);
  return good || options_.keepGoing;
}

int Driver::execute() {
  std::string problem;
  if (!options_.sizesFile.empty() && !Profile::read(options_.sizesFile, options_.knownSizes, problem)) {
    fmt::print(stderr, "kelpie: {}: {}\n", options_.sizesFile, problem);
    return 2;
  }
  if (!options_.costsFile.empty() && !readCosts(options_.costsFile, options_.costs, problem)) {
    fmt::print(stderr, "kelpie: {}: {}\n", options_.costsFile, problem);
    return 2;
  }
  if (options_.command == Command::Repl) return repl(options_);
  if (!options_.compared.empty()) return compareResults();
  if (!canWriteResults()) return 2;
  const std::optional<uint32_t> file = sources_.load(options_.file, problem);
  if (!file) {
    fmt::print(stderr, "kelpie: cannot read {}: {}\n",
               options_.file == "-" ? "standard input" : options_.file, problem);
    return 2;
  }
  int status = 1;
  try {
    status = executeCommand(*file);
  } catch (const std::bad_alloc&) {
    output_.flush();
    fmt::print(stderr, "kelpie: error: out of memory\n");
  } catch (const std::exception& error) {  // InternalError, or what a library throws
    output_.flush();
    fmt::print(stderr, "kelpie: internal error: {}\nThis is a mistake in Kelpie, not in your program.\n",
               error.what());
  }
  if (!output_.flush()) {
    fmt::print(stderr, "kelpie: error: the output could not be written\n");
    status = 1;
  }
  return status;
}

int Driver::executeCommand(uint32_t file) {
  if (options_.command == Command::Emit && options_.stage == Stage::Ast) return printTrees(file);

  runtime::Compilers compilers;
  if (options_.command == Command::Build) compilers = runtime::startCompilers(kCompilerHelper);
  Session session(sources_, {options_.widths, ""});
  const Pipeline pipeline(sources_,
                          pipelineOptions(options_, options_.stage == Stage::Cpu ? "cpu" : options_.target));
  const std::vector<FormResult> forms = pipeline.analyse(session, file);
  if (!report(forms)) return 1;
  bool good = true;
  for (const FormResult& form : forms) good = good && !form.failed();
  if (!options_.sizesFile.empty() && !profileKnows(forms))
    fmt::print(stderr, "kelpie: {} has none of the forms of {}: kernels are counted by their names\n",
               options_.sizesFile, options_.file);
  switch (options_.command) {
    case Command::Repl:
    case Command::Run:
      return run(forms);
    case Command::Check:
      return check(forms);
    case Command::Emit:
      output_.write(emitForms(forms, options_.stage, pipeline, sources_));
      break;
    case Command::Fusion:
      return std::max(fusion(forms, session), good ? 0 : 1);
    case Command::Build:
      if (const std::string problem = build(forms, options_, pipeline, compilers); !problem.empty()) {
        fmt::print(stderr, "kelpie: {}\n", problem);
        return 1;
      }
      break;
    case Command::Bench:
      return std::max(bench(forms, session, pipeline), good ? 0 : 1);
  }
  return good ? 0 : 1;
}

/// Where the options say, or nothing, after a message; `problem`: why it is another target than the first
/// choice.
std::unique_ptr<Backend> Driver::openBackend(std::string& problem) {
  auto backend = makeBackend(options_.target, options_, interrupted(), sources_, problem);
  if (!backend)
    fmt::print(stderr, "kelpie: the target {} cannot be used here: {}\n", options_.target, problem);
  return backend;
}

int Driver::run(const std::vector<FormResult>& forms) {
  std::string problem;
  const std::unique_ptr<Backend> backend = openBackend(problem);
  if (!backend) return 1;
  if (options_.verbose)
    fmt::print(stderr, "kelpie: target {}{}\n", backend->name(),
               problem.empty() ? "" : fmt::format(" ({})", problem));

  const std::unique_ptr<Services> services =
      this->services([this](std::string_view text) { output_.write(text); });
  Profile profile([this](Span span) { return sourceLine(span, sources_); });
  if (!options_.profileFile.empty()) {
    backend->observe([&](const core::Program& program, const fusion::FusionReport& report,
                         const runtime::RunStatistics& statistics) {
      profile.add(nameOf(forms, program), sources_.describe(program.span), report, statistics);
    });
  }
  catchInterrupts();
  Runner runner(sources_, *backend, *services, output_,
                {options_.printLength, options_.verbose, colour_, &interrupted()});
  bool good = runner.run(forms);
  if (!options_.profileFile.empty()) good = tell(profile, *backend) && good;
  return good ? 0 : 1;
}

int Driver::bench(const std::vector<FormResult>& forms, Session& session, const Pipeline& pipeline) {
  std::string problem;
  const std::unique_ptr<Backend> backend = openBackend(problem);
  if (!backend) return 1;
  const std::unique_ptr<Services> services = this->services([](std::string_view) {});
  catchInterrupts();
  const bool onlyJson = options_.jsonFile == "-";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/dev/null", "w"), std::fclose);
  Output nowhere(file.get());
  const BenchOutcome outcome = driver::bench(forms, options_, session, sources_, pipeline, *backend,
                                             *services, onlyJson ? nowhere : output_);
  bool written = true;
  if (onlyJson) {
    output_.write(outcome.results.toJson());
  } else if (!options_.jsonFile.empty() && !outcome.results.results.empty()) {
    written = writeFile(options_.jsonFile, outcome.results.toJson());
  }
  return outcome.good && written ? 0 : 1;
}

int Driver::compareResults() {
  std::vector<BenchResults> results;
  for (const std::string& path : options_.compared) {
    std::string problem;
    auto read = BenchResults::read(path, problem);
    if (!read) {
      fmt::print(stderr, "kelpie: {}: {}\n", path, problem);
      return 2;
    }
    results.push_back(std::move(*read));
  }
  output_.write(compare(results[0], results[1]));
  return output_.flush() ? 0 : 1;
}

/// With -v, a profile that is written to a file is shown, too.
bool Driver::tell(const Profile& profile, Backend& backend) {
  const Profile::Machine machine{backend.name(), backend.copyBandwidth(), backend.figures()};
  const bool toFile = options_.profileFile != "-";
  if (!toFile || options_.verbose) {
    output_.flush();
    const std::string text = profile.toText(machine);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  return !toFile || writeFile(options_.profileFile, profile.toJson(machine));
}

std::unique_ptr<Services> Driver::services(std::function<void(std::string_view)> output) {
  ServiceOptions options;
  options.output = std::move(output);
  options.messages = [this](std::string_view text) { output_.writeMessage(text); };
  options.generator = options_.generator;
  options.seed = options_.seed;
  return makeServices(std::move(options));
}

bool isSameFile(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::weakly_canonical(a, none) == std::filesystem::weakly_canonical(b, none);
}

/// Whether all results can be written, each to a file of its own, and none over the program or what else is
/// read.
bool Driver::canWriteResults() const {
  std::vector<std::pair<const char*, std::string>> results{
      {"--json", options_.jsonFile}, {"--profile", options_.profileFile}, {"--emit-lp", options_.lpFile}};
  if (options_.command == Command::Fusion)
    results.emplace_back("-o", options_.outputFile);  // of build: a folder
  std::erase_if(results, [](const auto& result) { return result.second.empty() || result.second == "-"; });
  std::vector<std::pair<const char*, std::string>> inputs{
      {"program", options_.file}, {"profile", options_.sizesFile}, {"constants", options_.costsFile}};
  for (const std::string& data : options_.data) inputs.emplace_back("data", data);
  for (auto result = results.begin(); result != results.end(); ++result) {
    const auto& [option, path] = *result;
    for (const auto& [what, input] : inputs) {
      if (!isSameFile(path, input)) continue;
      fmt::print(stderr, "kelpie: {} would write over the {}, {}\n", option, what, path);
      return false;
    }
    for (auto other = results.begin(); other != result; ++other) {
      if (!isSameFile(path, other->second)) continue;
      fmt::print(stderr, "kelpie: {} and {} would both write {}\n", other->first, option, path);
      return false;
    }
    if (!canWrite(path)) return false;
  }
  return true;
}

/// Whether a result can be written there, which is asked before it is worked for. Leaves the file as it is.
bool Driver::canWrite(const std::string& path) const {
  const std::filesystem::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  std::error_code none;
  if (std::filesystem::is_directory(file, none)) {
    errno = EISDIR;
  } else if (access(path.c_str(), F_OK) == 0 ? access(path.c_str(), W_OK) == 0
                                             : access(folder.c_str(), W_OK) == 0) {
    return true;
  }
  fmt::print(stderr, "kelpie: cannot write {}: {}\n", path, std::strerror(errno));
  return false;
}

bool Driver::writeFile(const std::string& path, const std::string& text) const {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) fmt::print(stderr, "kelpie: cannot write {}\n", path);
  return file.good();
}

/// "model.lp", "model-2.lp", "model-3.lp"
std::string numbered(const std::string& path, int number) {
  if (number == 1) return path;
  const std::filesystem::path name(path);
  return (name.parent_path() /
          fmt::format("{}-{}{}", name.stem().string(), number, name.extension().string()))
      .string();
}

bool Driver::profileKnows(const std::vector<FormResult>& forms) const {
  return std::any_of(forms.begin(), forms.end(), [this](const FormResult& form) {
    return form.program && options_.knownSizes.contains(formKey(sources_.describe(form.program->span)));
  });
}

/// What it took to solve and to explain the regions of a form.
void tellWork(const fusion::FormReport& form) {
  for (const fusion::RegionReport& region : form.report.regions) {
    std::string solved;
    for (const fusion::StrategyReport& s : region.strategies)
      solved += fmt::format(", {} {:.1f} ms", toString(s.strategy), 1000 * s.seconds);
    fmt::print(stderr, "kelpie: {}: region of {}: {} nodes{}, {} pairs explained in {:.1f} ms\n", form.place,
               region.function, region.nodes.size(), solved, region.pairs.size(), 1000 * region.explained);
  }
}

/// Reports of fusion; with --run after two runs, the first of which tells the sizes. Functions that are asked
/// for and called by no form, and all functions of a file whose forms have no kernels, are reported as calls.
int Driver::fusion(const std::vector<FormResult>& forms, Session& session) {
  constexpr double kSecondsOfRegion = 25, kSecondsOfProgram = 50;  // who asks for a report has time
  if (const auto undefined = undefinedFunction(forms, options_.function, session.environment())) {
    print(*undefined);
    return 1;
  }
  MeasuredRuns runs;
  if (options_.measure && !measureRepeatedly(forms, runs)) return 1;
  PipelineOptions passes = pipelineOptions(options_, options_.target);
  passes.fusion.predict = passes.fusion.compare = passes.fusion.explain = true;
  passes.fusion.shares = options_.format == FusionFormat::Json;
  passes.fusion.seconds = kSecondsOfRegion;
  passes.fusion.totalSeconds = kSecondsOfProgram;
  int regions = 0;
  bool good = runs.failed.empty();
  if (!options_.lpFile.empty()) {
    passes.fusion.observe = [&](const fusion::RegionReport& region, const fusion::PartitionProblem& problem,
                                const fusion::PairTable& pairs) {
      if (!concerns(region, options_.function)) return;
      const std::string path = numbered(options_.lpFile, ++regions);
      for (const std::string& other : {options_.file, options_.profileFile, options_.outputFile}) {
        if (regions == 1 || !isSameFile(path, other)) continue;  // the first is looked at before
        fmt::print(stderr, "kelpie: --emit-lp would write region {} over {}\n", regions, other);
        good = false;
        return;
      }
      if (fusion::emitLp(problem, pairs, "region of " + region.function, path)) return;
      fmt::print(stderr, "kelpie: cannot write {}\n", path);
      good = false;
    };
  }
  const FusionRequest request{options_.format, options_.function, options_.compare, options_.file,
                              options_.target};
  const Pipeline pipeline(sources_, passes);
  std::vector<fusion::FormReport> reports = fusionReports(forms, request, pipeline, sources_, &runs);
  const auto hasKernels = [](const fusion::FormReport& form) { return !form.report.regions.empty(); };
  if (std::none_of(reports.begin(), reports.end(), hasKernels)) {
    const std::vector<FormResult> calls = callsOfFunctions(forms, options_.function, session);
    if (!report(calls)) return 1;
    for (fusion::FormReport& call : fusionReports(calls, request, pipeline, sources_, &runs))
      if (hasKernels(call)) reports.push_back(std::move(call));
  }
  if (options_.verbose)
    for (const fusion::FormReport& form : reports) tellWork(form);
  const std::string text = writtenReports(reports, request, sources_);
  if (options_.outputFile.empty()) {
    output_.write(text);
  } else {
    good = writeFile(options_.outputFile, text) && good;
  }
  return good ? 0 : 1;
}

/// A run that tells sizes and where time goes, one that tells what thunks do (two, if the sizes led to other
/// kernels), unless a profile has told both, and two for the times, the first of which does not count. If
/// these have other kernels, again.
bool Driver::measureRepeatedly(const std::vector<FormResult>& forms, MeasuredRuns& runs) {
  const bool sampled = std::any_of(forms.begin(), forms.end(), [this](const FormResult& form) {
    if (!form.program) return false;
    const auto known = options_.knownSizes.find(formKey(sources_.describe(form.program->span)));
    return known != options_.knownSizes.end() && !known->second.samples.empty();
  });
  if (sampled) return measure(forms, Measured::Times, runs);
  const bool counts = options_.target == "interp";  // which has no samples
  if (!counts && !measure(forms, Measured::Sizes, runs)) return false;
  std::set<std::string> before;
  for (int round = 0; round < 2; ++round) {
    before = std::move(runs.kernels);
    if (!measure(forms, Measured::Samples, runs)) return false;
    // Kernels of which no run had told what they take were looked at in haste.
    const bool inHaste =
        !std::includes(before.begin(), before.end(), runs.kernels.begin(), runs.kernels.end());
    if (!counts && inHaste && !measure(forms, Measured::Samples, runs)) return false;
    before = std::move(runs.kernels);
    if (!measure(forms, Measured::Times, runs)) return false;
    if (runs.kernels == before) break;
  }
  return true;
}

/// The share of each kernel in the time of all.
EarlierRuns earlierRuns(const MeasuredRuns& runs) {
  double all = 0;
  for (const auto& [program, statistics] : runs.byProgram)
    for (const runtime::KernelStatistics& kernel : statistics.kernels) all += kernel.seconds;
  EarlierRuns earlier;
  for (const auto& [program, statistics] : runs.byProgram)
    for (const runtime::KernelStatistics& kernel : statistics.kernels)
      earlier[program][kernel.name] = {all > 0 ? kernel.seconds / all : 0, kernel.launches};
  return earlier;
}

/// Runs the program without showing its results, and keeps what its kernels took; forms that fail are told
/// once. Whether it came to its end.
bool Driver::measure(const std::vector<FormResult>& forms, Measured what, MeasuredRuns& runs) {
  runs.kernels.clear();
  std::string problem;
  runs.cells.clear();
  runs.backend = openBackend(problem);
  Backend* const backend = runs.backend.get();
  if (!backend) return false;
  Profile profile([this](Span span) { return sourceLine(span, sources_); });
  options_.target = backend->name();  // from now on also whose costs count
  const auto observer = [&](const core::Program& program, const fusion::FusionReport& report,
                            const runtime::RunStatistics& statistics) {
    const std::string place = sources_.describe(program.span);
    profile.add(nameOf(forms, program), place, report, statistics);
    for (const runtime::KernelStatistics& kernel : statistics.kernels)
      runs.kernels.insert(place + kernel.name);
    runs.byProgram[&program] = statistics;
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/dev/null", "w"), std::fclose);
  Output nowhere(file.get());
  catchInterrupts();
  const auto run = [&] {
    runs.cells.clear();
    const std::unique_ptr<Services> services = this->services([](std::string_view) {});
    Runner runner(sources_, *backend, *services, nowhere,
                  {0, options_.verbose, colour_, &interrupted(), runs.reported});
    runner.run(forms);
    runs.reported = true;
    runs.cells = runner.values();
    runs.failed.insert(runner.failures().begin(), runner.failures().end());
    return !interrupted();
  };
  // Who runs first waits for memory and code, in the middle of its kernels.
  const bool counts = backend->name() == "interp";
  if (what == Measured::Times && !counts && !run()) return false;
  backend->observe(observer);
  if (what == Measured::Samples && !counts) backend->sample(earlierRuns(runs));
  const bool good = run();
  if (what == Measured::Times) {
    options_.device = backend->figures();
    if (!options_.device.name.empty()) options_.device.copyBandwidth = backend->copyBandwidth();
  }
  for (const auto& [form, sizes] : profile.sizes()) {
    fusion::KnownSizes& known = options_.knownSizes[form];
    known.entered = sizes.entered;
    if (what == Measured::Samples) known.samples = sizes.samples;
    for (const auto& [name, kernel] : sizes.kernels) {
      const fusion::KernelSizes before = known.kernels.try_emplace(name).first->second;
      known.kernels[name] = kernel;
      // What this run does not tell another may have told.
      if (kernel.survivors < 0) known.kernels[name].survivors = before.survivors;
      if (kernel.target < 0) known.kernels[name].target = before.target;
      if (kernel.elements < 0) {
        known.kernels[name].elements = before.elements;
        known.kernels[name].segments = before.segments;
      }
    }
  }
  if (what != Measured::Times || options_.profileFile.empty()) return good;
  profile.addSamples(options_.knownSizes);
  return tell(profile, *backend) && good;
}

int Driver::check(const std::vector<FormResult>& forms) {
  bool good = true;
  for (const FormResult& form : forms) {
    good = good && !form.failed();
    if (!form.failed() && form.shown && !form.type.empty())
      output_.write(form.name + " : " + form.type + "\n");
  }
  return good ? 0 : 1;
}

int Driver::printTrees(uint32_t file) {
  const ParseResult result = parse(sources_, file);
  for (const Diagnostic& diagnostic : result.diagnostics) print(diagnostic);
  if (result.ok() || options_.keepGoing)
    for (const ast::Form& form : result.forms) output_.write(toString(form) + "\n");
  return result.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kelpie::driver

int main(int argc, char** argv) {
  if (kelpie::driver::isCompilerHelper(argc, argv)) {
    std::signal(SIGINT, SIG_IGN);  // the process that asks decides when to stop
    kelpie::runtime::serveAsCompiler();
    return 0;
  }
  const kelpie::driver::CommandLine line = kelpie::driver::parseCommandLine(argc, argv);
  if (!line.options) return line.status;
  int status = 1;
  // Programs nest deeply, and every pass follows their nesting.
  kelpie::runOnDeepStack([&] { status = kelpie::driver::Driver(*line.options).execute(); });
  if (kelpie::runtime::compilersAreAtWork()) {  // with what destructors would take from them
    std::fflush(nullptr);
    std::_Exit(status);
  }
  return status;
}

// The command `kelpie`.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "driver/backend.h"
#include "driver/emit.h"
#include "driver/interrupt.h"
#include "driver/options.h"
#include "driver/pipeline.h"
#include "driver/repl.h"
#include "driver/runner.h"
#include "frontend/ast_print.h"
#include "frontend/deep_stack.h"
#include "frontend/parser.h"
#include "frontend/session.h"
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

/// Prints all diagnostics; whether the program may go on.
bool Driver::report(const std::vector<FormResult>& forms) {
  bool good = true;
  size_t count = 0;
  for (const FormResult& form : forms) {
    for (const Diagnostic& diagnostic : form.diagnostics)
      if (++count <= kMaximalDiagnostics) print(diagnostic);
    good = good && !form.failed();
  }
  if (count > kMaximalDiagnostics)
    fmt::print(stderr, "kelpie: {} more messages are not shown\n", count - kMaximalDiagnostics);
  return good || options_.keepGoing;
}

int Driver::execute() {
  if (options_.command == Command::Repl) return repl(options_);
  std::string problem;
  const std::optional<uint32_t> file = sources_.load(options_.file, problem);
  if (!file) {
    fmt::print(stderr, "kelpie: cannot read {}: {}\n", options_.file, problem);
    return 2;
  }
  int status = 1;
  try {
    status = executeCommand(*file);
  } catch (const InternalError& error) {
    output_.flush();
    fmt::print(stderr, "kelpie: internal error: {}\nThis is a mistake in Kelpie, not in your program.\n",
               error.what());
  } catch (const std::bad_alloc&) {
    output_.flush();
    fmt::print(stderr, "kelpie: error: out of memory\n");
  }
  if (!output_.flush()) {
    fmt::print(stderr, "kelpie: error: the output could not be written\n");
    status = 1;
  }
  return status;
}

int Driver::executeCommand(uint32_t file) {
  if (options_.command == Command::Emit && options_.stage == Stage::Ast) return printTrees(file);

  Session session(sources_, {options_.widths, ""});
  PipelineOptions passes = pipelineOptions(options_, options_.stage == Stage::Cpu ? "cpu" : options_.target);
  if (options_.command == Command::Fusion) passes.fusion.compare = passes.fusion.explain = true;
  const Pipeline pipeline(sources_, passes);
  const std::vector<FormResult> forms = pipeline.analyse(session, file);
  if (!report(forms)) return 1;
  bool good = true;
  for (const FormResult& form : forms) good = good && !form.failed();
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
      output_.write(reportFusion(forms, options_.json, pipeline, sources_));
      break;
  }
  return good ? 0 : 1;
}

int Driver::run(const std::vector<FormResult>& forms) {
  std::string problem;
  const std::unique_ptr<Backend> backend =
      makeBackend(options_.target, options_, interrupted(), sources_, problem);
  if (!backend) {
    fmt::print(stderr, "kelpie: the target {} cannot be used here: {}\n", options_.target, problem);
    return 1;
  }
  if (options_.verbose)
    fmt::print(stderr, "kelpie: target {}{}\n", backend->name(),
               problem.empty() ? "" : fmt::format(" ({})", problem));

  ServiceOptions serviceOptions;
  serviceOptions.output = [this](std::string_view text) { output_.write(text); };
  serviceOptions.generator = options_.generator;
  serviceOptions.seed = options_.seed;
  const std::unique_ptr<Services> services = makeServices(std::move(serviceOptions));

  catchInterrupts();
  Runner runner(sources_, *backend, *services, output_,
                {options_.printLength, options_.verbose, colour_, &interrupted()});
  return runner.run(forms) ? 0 : 1;
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
  const kelpie::driver::CommandLine line = kelpie::driver::parseCommandLine(argc, argv);
  if (!line.options) return line.status;
  int status = 1;
  // Programs nest deeply, and every pass follows their nesting.
  kelpie::runOnDeepStack([&] { status = kelpie::driver::Driver(*line.options).execute(); });
  return status;
}

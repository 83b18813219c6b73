#include "driver/bench_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <unordered_set>

#include "driver/data_set.h"
#include "driver/interrupt.h"
#include "driver/runner.h"

namespace kelpie::driver {

namespace {

/// The variable that holds the arguments; a name that programs are unlikely to use.
constexpr const char* kArguments = "kelpie_bench_arguments";

class Bench {
 public:
  Bench(const Options& options, Session& session, SourceManager& sources, const Pipeline& pipeline,
        Backend& backend, Services& services)
      : options_(options),
        session_(session),
        sources_(sources),
        pipeline_(pipeline),
        backend_(backend),
        services_(services),
        nowhere_(nullFile_.get()),
        runner_(sources, backend, services, nowhere_,
                {0, options.verbose, isatty(STDERR_FILENO) != 0, &interrupted()}) {}

  /// The variables of the program, and expressions that these read as `it`; false if some have no value.
  bool bind(const std::vector<FormResult>& forms) {
    std::unordered_set<uint32_t> read;  // cells, by the forms behind
    std::vector<FormResult> bindings;
    for (auto form = forms.rbegin(); form != forms.rend(); ++form) {
      const bool isRead = std::any_of(form->assignments.begin(), form->assignments.end(),
                                      [&](const CellAssignment& a) { return read.erase(a.cell) != 0; });
      if (form->kind != FormKind::Binding && form->kind != FormKind::FileBinding && !isRead) continue;
      if (form->program)
        for (const core::Global& global : form->program->globals) read.insert(global.cell);
      bindings.push_back(*form);
    }
    std::reverse(bindings.begin(), bindings.end());
    return runner_.run(bindings);
  }

  /// Makes the arguments that a data set stands for.
  bool bindArguments(const std::string& data) {
    const auto set = readDataSet(data);
    if (const auto* problem = std::get_if<DataProblem>(&set)) {
      fmt::print(stderr, "kelpie: {}\n", problem->text);
      return false;
    }
    const auto& [source, expression] = std::get<DataSet>(set);
    const auto value = analyse(source, expression + ";");  // as it stands: errors tell places in it
    if (!value) return false;
    if (value->size() != 1 || value->front().kind != FormKind::Expression) {
      fmt::print(stderr, "kelpie: {} is not one expression\n", data);
      return false;
    }
    if (!canRun(value->front(), data) || !runner_.run(*value)) return false;
    const auto binding = analyse("--data", fmt::format("{} = it;", kArguments));
    return binding && runner_.run(*binding);
  }
  std::optional<BenchResult> measureOn(const std::string& entry, const std::string& data) {
    return measureCall(fmt::format("{}({})", entry, kArguments), entry, data);
  }
  std::optional<BenchResult> measureExpression(const std::string& entry) {
    return measureCall(entry, entry, "");
  }

 private:
  std::optional<BenchResult> measureCall(const std::string& call, const std::string& entry,
                                         const std::string& data) {
    const auto forms = analyse("--entry", call + ";");
    if (!forms) return std::nullopt;
    if (forms->size() != 1 || forms->front().kind != FormKind::Expression || !forms->front().program) {
      fmt::print(stderr, "kelpie: --entry {} is not one expression\n", entry);
      return std::nullopt;
    }
    const FormResult& form = forms->front();
    if (form.valueType && form.valueType->kind == ValueType::Kind::Function) {
      fmt::print(stderr, "kelpie: {} is a function; --data says what to call it with\n", entry);
      return std::nullopt;
    }
    if (!canRun(form, entry)) return std::nullopt;
    const CellValues cells = [this](uint32_t cell) { return runner_.values().at(cell); };
    const std::unique_ptr<PreparedForm> prepared = backend_.prepare(*form.program, cells);
    BenchResult result{entry, data, {}, {}, 0};
    const auto run = [&](bool timeKernels, runtime::RunStatistics& statistics) {
      const auto outcome = prepared->run(cells, services_, {false, timeKernels}, statistics);
      const auto* error = std::get_if<RuntimeError>(&outcome);
      if (error)
        report({Severity::Error,
                "K0501",
                error->span.known() ? error->span : form.span,
                error->message,
                "",
                {}});
      return error == nullptr;
    };
    const auto time = measure(
        [&]() -> std::optional<double> {
          return run(false, result.statistics) ? std::optional(result.statistics.seconds) : std::nullopt;
        },
        options_.runs);
    tellComplaint(backend_);
    if (!time) return std::nullopt;
    result.time = *time;
    runtime::RunStatistics accounted;
    if (!run(true, accounted)) return std::nullopt;
    for (const runtime::KernelStatistics& kernel : accounted.kernels)
      result.bytes += kernel.work.bytesRead + kernel.work.bytesWritten;
    return result;
  }

  /// Whether what it reads has a value: variables that have not failed, but not what `it` may name.
  bool canRun(const FormResult& form, const std::string& text) const {
    if (!form.program) return true;
    for (const core::Global& global : form.program->globals) {
      if (runner_.values().contains(global.cell)) continue;
      if (const std::string* failed = runner_.failed(global.cell))
        fmt::print(stderr, "kelpie: {} reads `{}`, which has no value\n", text, *failed);
      else
        fmt::print(stderr,
                   "kelpie: {} reads `it`, which bench has not evaluated: give the expression a name\n",
                   text);
      return false;
    }
    return true;
  }

  std::optional<std::vector<FormResult>> analyse(const std::string& name, std::string text) {
    std::vector<FormResult> forms = pipeline_.analyse(session_, sources_.add(name, std::move(text)));
    bool good = true;
    for (const FormResult& form : forms) {
      for (const Diagnostic& diagnostic : form.diagnostics)
        if (diagnostic.shown) report(diagnostic);
      good = good && !form.failed();
    }
    return good ? std::optional(std::move(forms)) : std::nullopt;
  }
  void report(const Diagnostic& diagnostic) const {
    fmt::print(stderr, "{}", sources_.render(diagnostic, isatty(STDERR_FILENO) != 0));
  }

  const Options& options_;
  Session& session_;
  SourceManager& sources_;
  const Pipeline& pipeline_;
  Backend& backend_;
  Services& services_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nullFile_{std::fopen("/dev/null", "w"), std::fclose};
  Output nowhere_;
  Runner runner_;
};

}  // namespace

BenchOutcome bench(const std::vector<FormResult>& forms, const Options& options, Session& session,
                   SourceManager& sources, const Pipeline& pipeline, Backend& backend, Services& services,
                   Output& output) {
  Bench bench(options, session, sources, pipeline, backend, services);
  BenchOutcome outcome;
  outcome.results = {options.file, backend.name(), 0, {}};
  outcome.good = bench.bind(forms);
  BenchResults& results = outcome.results;
  results.copyBandwidth = backend.copyBandwidth();
  const BenchTable table(options.entries, options.data);
  output.write(table.heading(results));
  const auto add = [&](std::optional<BenchResult> result) {
    output.flush();
    outcome.good = outcome.good && result.has_value();
    if (!result) return;
    output.write(table.row(*result, results.copyBandwidth));
    output.flush();
    results.results.push_back(std::move(*result));
  };
  output.flush();
  if (options.data.empty())
    for (const std::string& entry : options.entries)
      if (!interrupted()) add(bench.measureExpression(entry));
  for (const std::string& data : options.data) {
    if (interrupted()) break;
    if (!bench.bindArguments(data)) {
      outcome.good = false;
      continue;
    }
    for (const std::string& entry : options.entries)
      if (!interrupted()) add(bench.measureOn(entry, data));
  }
  outcome.good = outcome.good && !interrupted();
  return outcome;
}

}  // namespace kelpie::driver

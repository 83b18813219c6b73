#include "program_runner.h"

#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "flatten/flatten.h"
#include "frontend/interpreter.h"
#include "frontend/session.h"
#include "frontend/source_manager.h"
#include "fusion/fuse.h"
#include "ir/core_verify.h"
#include "ir/deep_stack.h"
#include "runtime/cpu_target.h"
#include "runtime/executor.h"
#include "runtime/host_target.h"
#include "runtime/services.h"

namespace kelpie::testing {
namespace {

bool same(const Column& a, const Column& b) {
  if (!(a.type == b.type) || a.length() != b.length()) return false;
  if (a.type.isScalar()) {
    for (int64_t k = 0; k < a.length(); ++k) {
      Scalar x = a.at(k), y = b.at(k);
      if (!isFloat(x.type)) {
        if (x.i != y.i) return false;
      } else if (!(x.f == y.f || (std::isnan(x.f) && std::isnan(y.f)) ||
                   std::abs(x.f - y.f) <= 1e-9 * std::max({1.0, std::abs(x.f), std::abs(y.f)}))) {
        return false;
      }
    }
    return true;
  }
  if (!(a.offsets == b.offsets)) return false;
  for (size_t k = 0; k < a.elements.size(); ++k)
    if (!same(a.elements[k], b.elements[k])) return false;
  return true;
}

std::string show(const Column& c, int64_t begin, int64_t end) {
  std::string out;
  for (int64_t k = begin; k < end && k < begin + 20; ++k) {
    if (k > begin) out += " ";
    if (c.type.isScalar()) {
      Scalar s = c.at(k);
      out += isFloat(s.type) ? std::to_string(s.f) : std::to_string(s.i);
    } else {
      out += "[";
      for (const Column& e : c.elements) out += show(e, c.offsets[k], c.offsets[k + 1]) + ";";
      out += "]";
    }
  }
  return out;
}

std::string show(const Columns& columns) {
  std::string out;
  for (const Column& c : columns) out += show(c, 0, c.length()) + "  ";
  return out;
}

/// One way of running the flat program.
struct Way {
  std::string name;
  std::optional<fusion::Strategy> strategy;
  std::unique_ptr<runtime::Executor> executor;
  std::map<uint32_t, Columns> cells;
  bool onEvaluator = true;
};

std::string compare(const std::variant<Columns, RuntimeError>& expected,
                    const std::variant<Columns, RuntimeError>& actual, bool positions) {
  auto* error = std::get_if<RuntimeError>(&actual);
  auto* expectedError = std::get_if<RuntimeError>(&expected);
  if (expectedError && !error) return "no error, expected: " + expectedError->message;
  if (!expectedError && error) return "error: " + error->message;
  if (expectedError && positions && expectedError->message != error->message)
    return "the error is: " + error->message + ", expected: " + expectedError->message;
  if (expectedError)
    return !positions || expectedError->span == error->span ? "" : "the error is reported at another place";
  const Columns& x = std::get<Columns>(expected);
  const Columns& y = std::get<Columns>(actual);
  bool equal = x.size() == y.size();
  for (size_t k = 0; equal && k < x.size(); ++k) equal = same(x[k], y[k]);
  return equal ? "" : "expected " + show(x) + "\n  actual " + show(y);
}

/// What flattening promised of the results' shapes.
std::string wronglyForeseen(const Regularity& promised, const Regularity& actual) {
  if (promised.size() != actual.size())
    return "regularity of another number of variables than the results have\n";
  for (size_t k = 0; k < promised.size(); ++k)
    if (promised[k] && !actual[k]) return "a descriptor that should be regular is not\n";
  return "";
}

std::vector<FormOutcome> run(const std::string& nesl, const RunnerOptions& options) {
  SourceManager sources;
  uint32_t file = sources.add("test.nesl", nesl);
  SessionOptions sessionOptions;
  if (options.int32) sessionOptions.widths.intType = ScalarType::Int32;
  Session session(sources, sessionOptions);
  auto services = makeServices();
  std::map<uint32_t, Columns> cells;
  std::vector<Way> ways;
  auto interp = [] { return std::make_unique<runtime::Executor>(std::make_unique<runtime::InterpTarget>()); };
  ways.push_back({"unfused", std::nullopt, interp(), {}});
  if (options.strategies)
    for (auto strategy : {fusion::Strategy::Delayed, fusion::Strategy::Greedy, fusion::Strategy::Ilp})
      ways.push_back({fusion::toString(strategy), strategy, interp(), {}});
  else if (options.fused)
    ways.push_back({"ilp", fusion::Strategy::Ilp, interp(), {}});
  if (options.compiled) {
    runtime::CpuOptions cpu;
    cpu.jit = runtime::Jit::Always;
    ways.push_back({"cpu",
                    fusion::Strategy::Ilp,
                    std::make_unique<runtime::Executor>(std::make_unique<runtime::CpuTarget>(cpu)),
                    {},
                    false});
  }
  if (options.target)
    ways.push_back(
        {"target", fusion::Strategy::Ilp, std::make_unique<runtime::Executor>(options.target()), {}, false});
  std::vector<FormOutcome> outcomes;
  for (FormResult& form : session.processFile(file)) {
    FormOutcome outcome;
    outcome.text = nesl.substr(form.span.begin, form.span.end - form.span.begin);
    for (const Diagnostic& d : form.diagnostics)
      if (d.severity == Severity::Error) outcome.difference += "static error: " + d.message;
    if (!form.program) {
      if (!outcome.difference.empty()) outcomes.push_back(outcome);
      continue;
    }
    auto assign = [&](std::map<uint32_t, Columns>& to, const std::variant<Columns, RuntimeError>& result) {
      if (auto* columns = std::get_if<Columns>(&result))
        for (const CellAssignment& a : form.assignments) {
          auto first = columns->begin() + static_cast<ptrdiff_t>(a.first);
          to[a.cell] = Columns(first, first + static_cast<ptrdiff_t>(a.count));
        }
    };
    for (const std::string& m : core::verify(*form.program)) outcome.difference += "core: " + m + "\n";
    std::variant<Columns, RuntimeError> expected;
    if (options.reference)
      expected = interpret(
          *form.program, [&](uint32_t cell) { return cells[cell]; }, *services);
    for (Way& way : ways) {
      if (!outcome.difference.empty()) break;
      RegularCells regular;
      for (const core::Global& global : form.program->globals)
        regular[global.cell] = regularityOf(way.cells[global.cell]);
      lcu::Program program = flatten::flatten(*form.program, regular);
      outcome.lcu = toString(program);
      for (const std::string& m : verify(program, false)) outcome.difference += "λcu: " + m + "\n";
      if (way.strategy) {
        fusion::FusionOptions fusion;
        fusion.strategy = *way.strategy;
        fusion::fuse(program, fusion);
        outcome.lcu = toString(program);
        for (const std::string& m : verify(program, true)) outcome.difference += "fused λcu: " + m + "\n";
      }
      if (!outcome.difference.empty()) break;
      runtime::RunStatistics statistics;
      const bool onTarget = way.name == "target";
      runtime::RunOptions runOptions;
      runOptions.timeKernels = onTarget && options.timed;
      auto actual = way.executor->run(
          program, [&](uint32_t cell) { return way.cells[cell]; }, *services, runOptions, &statistics);
      if (onTarget) outcome.targetStatistics = statistics;
      if (way.onEvaluator) outcome.statistics = std::move(statistics);
      if (!options.reference && &way == &ways.front()) expected = actual;
      std::string difference = compare(expected, actual, options.positions);
      if (!difference.empty()) outcome.difference = way.name + ": " + difference + "\n";
      if (auto* columns = std::get_if<Columns>(&actual))
        outcome.difference += wronglyForeseen(program.regularResults, regularityOf(*columns));
      assign(way.cells, actual);
    }
    if (auto* columns = std::get_if<Columns>(&expected)) outcome.reference = *columns;
    if (auto* error = std::get_if<RuntimeError>(&expected)) outcome.error = error->message;
    assign(cells, expected);
    const bool stop = !outcome.difference.empty() || (!outcome.error.empty() && !form.assignments.empty());
    outcomes.push_back(std::move(outcome));
    if (stop) break;  // later forms may need what is missing
  }
  return outcomes;
}

}  // namespace

namespace {
uint64_t overKernels(const runtime::RunStatistics& statistics, uint64_t runtime::LaunchWork::*what) {
  uint64_t sum = 0;
  for (const runtime::KernelStatistics& kernel : statistics.kernels) sum += kernel.work.*what;
  return sum;
}
}  // namespace

uint64_t FormOutcome::elements() const { return overKernels(statistics, &runtime::LaunchWork::elements); }
uint64_t FormOutcome::bytesRead() const { return overKernels(statistics, &runtime::LaunchWork::bytesRead); }
uint64_t FormOutcome::bytesWritten() const {
  return overKernels(statistics, &runtime::LaunchWork::bytesWritten);
}

std::vector<FormOutcome> runProgram(const std::string& nesl, const RunnerOptions& options) {
  std::vector<FormOutcome> outcomes;
  runOnDeepStack([&] { outcomes = run(nesl, options); });
  return outcomes;
}

}  // namespace kelpie::testing

#include "program_runner.h"

#include <cmath>
#include <map>

#include "flatten/flatten.h"
#include "frontend/deep_stack.h"
#include "frontend/interpreter.h"
#include "frontend/session.h"
#include "frontend/source_manager.h"
#include "ir/core_verify.h"
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
  if (*a.offsets != *b.offsets) return false;
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
      for (const Column& e : c.elements) out += show(e, (*c.offsets)[k], (*c.offsets)[k + 1]) + ";";
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

std::vector<FormOutcome> run(const std::string& nesl) {
  SourceManager sources;
  uint32_t file = sources.add("test.nesl", nesl);
  Session session(sources);
  std::map<uint32_t, Columns> reference, flat;
  auto services = makeServices();
  runtime::Executor executor(std::make_unique<runtime::InterpTarget>());
  std::vector<FormOutcome> outcomes;
  for (FormResult& form : session.processFile(file)) {
    FormOutcome outcome;
    outcome.text = std::string(nesl.substr(form.span.begin, form.span.end - form.span.begin));
    for (const Diagnostic& d : form.diagnostics)
      if (d.severity == Severity::Error) outcome.difference += "static error: " + d.message;
    if (!form.program) {
      if (!outcome.difference.empty()) outcomes.push_back(outcome);
      continue;
    }
    for (const std::string& m : core::verify(*form.program)) outcome.difference += "core: " + m + "\n";
    auto expected = interpret(
        *form.program, [&](uint32_t cell) { return reference[cell]; }, *services);
    lcu::Program program = flatten::flatten(*form.program);
    outcome.lcu = toString(program);
    for (const std::string& m : verify(program, false)) outcome.difference += "λcu: " + m + "\n";
    if (outcome.difference.empty()) {
      runtime::RunStatistics statistics;
      auto actual = executor.run(
          program, [&](uint32_t cell) { return flat[cell]; }, *services, {}, &statistics);
      outcome.launches = statistics.launches;
      auto* error = std::get_if<RuntimeError>(&actual);
      auto* expectedError = std::get_if<RuntimeError>(&expected);
      if (error) outcome.error = error->message;
      if (expectedError && !error)
        outcome.difference = "no error, expected: " + expectedError->message + "\n";
      else if (!expectedError && error)
        outcome.difference = "error: " + error->message + "\n";
      else if (expectedError && !(expectedError->span == error->span))
        outcome.difference = "the error is reported at another place\n";
      if (!expectedError && !error) {
        outcome.reference = std::get<Columns>(expected);
        const Columns& columns = std::get<Columns>(actual);
        bool equal = columns.size() == outcome.reference.size();
        for (size_t k = 0; equal && k < columns.size(); ++k) equal = same(outcome.reference[k], columns[k]);
        if (!equal)
          outcome.difference = "expected " + show(outcome.reference) + "\n  actual " + show(columns) + "\n";
        for (const CellAssignment& a : form.assignments) {
          auto part = [&](const Columns& c) {
            return Columns(c.begin() + static_cast<ptrdiff_t>(a.first),
                           c.begin() + static_cast<ptrdiff_t>(a.first + a.count));
          };
          reference[a.cell] = part(outcome.reference);
          flat[a.cell] = part(columns);
        }
      }
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace

std::vector<FormOutcome> runProgram(const std::string& nesl) {
  std::vector<FormOutcome> outcomes;
  runOnDeepStack([&] { outcomes = run(nesl); });
  return outcomes;
}

}  // namespace kelpie::testing

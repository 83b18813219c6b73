// Programs through the front end and the reference interpreter, for tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/interpreter.h"
#include "frontend/session.h"
#include "frontend/value_printer.h"
#include "ir/core_print.h"
#include "ir/core_verify.h"
#include "runtime/services.h"

namespace kelpie {

class SessionTest : public testing::Test {
 protected:
  std::vector<FormResult> process(const std::string& text) {
    std::vector<FormResult> results = session.processFile(sources.add("test.nesl", text));
    for (const FormResult& result : results) {
      if (!result.program) continue;
      for (const std::string& message : core::verify(*result.program)) {
        ADD_FAILURE() << message << "\n" << core::toString(*result.program);
      }
    }
    return results;
  }

  /// The result lines of a program, as NESL prints them; diagnostics by their ids, run-time errors as
  /// messages.
  std::vector<std::string> run(const std::string& text) {
    std::vector<std::string> lines;
    std::vector<FormResult> results = process(text);
    for (const FormResult& result : results) {
      for (const Diagnostic& diagnostic : result.diagnostics) lines.push_back(diagnostic.id);
      if (!result.notice.empty()) lines.push_back(result.notice);
      if (result.kind == FormKind::Definition) lines.push_back(result.name + " = fn : " + result.type);
      if (!result.program) continue;
      auto outcome = interpret(
          *result.program, [&](uint32_t cell) { return cells.at(cell); }, *services);
      if (auto* error = std::get_if<RuntimeError>(&outcome)) {
        lines.push_back(error->message);
        continue;
      }
      const auto& row = std::get<Columns>(outcome);
      for (const CellAssignment& assignment : result.assignments) {
        auto begin = row.begin() + static_cast<std::ptrdiff_t>(assignment.first);
        cells[assignment.cell] = Columns(begin, begin + static_cast<std::ptrdiff_t>(assignment.count));
      }
      lines.push_back(result.name + " = " + printValue(*result.valueType, row) + " : " + result.type);
    }
    return lines;
  }
  /// The last line of the program.
  std::string last(const std::string& text) {
    std::vector<std::string> lines = run(text);
    return lines.empty() ? "" : lines.back();
  }

  /// The only diagnostic of a program.
  Diagnostic mistake(const std::string& text) {
    std::vector<Diagnostic> all;
    for (FormResult& result : process(text)) {
      for (Diagnostic& diagnostic : result.diagnostics) all.push_back(std::move(diagnostic));
    }
    EXPECT_EQ(all.size(), 1u) << text;
    return all.empty() ? Diagnostic{} : all.front();
  }

  std::unique_ptr<Services> services = makeServices(
      {.output = [this](std::string_view text) { output += text; }, .messages = [](std::string_view) {}});
  std::string output;
  SourceManager sources;
  Session session{sources};
  std::map<uint32_t, Columns> cells;
};

}  // namespace kelpie

// The library by example: every line of library_cases.txt, and of narrow_library_cases.txt at widths of 32
// bits, through the front end and the reference interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "frontend/interpreter.h"
#include "frontend/session.h"
#include "frontend/value_printer.h"
#include "runtime/services.h"

namespace kelpie {
namespace {

using testing::HasSubstr, testing::StartsWith;

/// Forms one after another in one session, run by the reference interpreter.
class Program {
 public:
  explicit Program(Widths widths = {}) : session_(sources_, {widths, ""}) {}
  /// "VALUE : TYPE", or "error: MESSAGE".
  std::string run(const std::string& form) {
    const uint32_t file = sources_.add("case.nesl", form + ";");
    std::string text;
    for (const FormResult& result : session_.processFile(file)) {
      for (const Diagnostic& diagnostic : result.diagnostics) text += "error: " + diagnostic.message;
      if (result.program) text += evaluate(result, file);
    }
    return text;
  }
  const Span& errorSpan() const { return errorSpan_; }
  std::string output;

 private:
  std::string evaluate(const FormResult& result, uint32_t file) {
    auto row = interpret(
        *result.program, [this](uint32_t cell) { return cells_.at(cell); }, *services_);
    if (const auto* error = std::get_if<RuntimeError>(&row)) {
      errorSpan_ = error->span;
      EXPECT_EQ(errorSpan_.file, file) << "an error of the library must be reported in the program";
      return "error: " + error->message;
    }
    const Columns& columns = std::get<Columns>(row);
    for (const CellAssignment& a : result.assignments) {
      const auto first = columns.begin() + static_cast<std::ptrdiff_t>(a.first);
      cells_[a.cell] = Columns(first, first + static_cast<std::ptrdiff_t>(a.count));
    }
    return printValue(*result.valueType, columns, 300) + " : " + result.type;
  }

  SourceManager sources_;
  Session session_;
  std::unique_ptr<Services> services_ = makeServices({[this](std::string_view s) { output += s; }, {}});
  std::map<uint32_t, Columns> cells_;
  Span errorSpan_;
};

constexpr Widths kNarrow = {ScalarType::Int32, ScalarType::Float32};

/// The examples of a file.
void expectExamples(const std::string& name, Widths widths, int atLeast) {
  std::ifstream file(std::string(KELPIE_SOURCE_DIR) + "/tests/frontend/" + name);
  ASSERT_TRUE(file);
  Program program(widths);
  int examples = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t arrow = line.rfind(" => ");
    const std::string result = program.run(line.substr(0, arrow));
    if (arrow == std::string::npos) {
      EXPECT_THAT(result, testing::Not(StartsWith("error"))) << line;
      continue;
    }
    const std::string expected = line.substr(arrow + 4), mark = "error: ";
    ++examples;
    if (expected.starts_with(mark)) {
      EXPECT_THAT(result, StartsWith(mark)) << line;
      EXPECT_THAT(result, HasSubstr(expected.substr(mark.size()))) << line;
    } else {
      EXPECT_EQ(result, expected) << line;
    }
  }
  EXPECT_GE(examples, atLeast);
}

TEST(Library, Examples) { expectExamples("library_cases.txt", {}, 200); }

TEST(Library, ExamplesAtNarrowWidths) { expectExamples("narrow_library_cases.txt", kNarrow, 20); }

TEST(Library, ErrorsPointAtTheCallInTheProgram) {
  Program program;
  const std::string form = "{1 + kth_smallest([1, 2], i) : i in [0, 5]}";
  EXPECT_THAT(program.run(form), HasSubstr("index 5"));
  EXPECT_EQ(form.substr(program.errorSpan().begin, program.errorSpan().end - program.errorSpan().begin),
            "kth_smallest([1, 2], i)");
}

TEST(Library, ErrorsOfFunctionsGivenToTheLibraryAreTheProgramsOwn) {
  Program program;
  const std::string form = "map(x => 10 / x, [5, 0])";
  EXPECT_THAT(program.run(form), HasSubstr("division by zero"));
  EXPECT_EQ(form.substr(program.errorSpan().begin, program.errorSpan().end - program.errorSpan().begin),
            "10 / x");
}

TEST(Library, PrintingGoesOperationByOperation) {
  Program program;
  EXPECT_EQ(program.run("{let a = print_string(@x); b = print_string(\"|\" ++ @x) in 0 : x in [1,2,3]}"),
            "[0, 0, 0] : [int]");
  EXPECT_EQ(program.output, "123|1|2|3");
  program.output.clear();
  EXPECT_EQ(program.run("printl([1,2]), print(\"a\")"), "([1, 2], \"a\") : [int], [char]");
  EXPECT_EQ(program.output, "[1, 2]\n[`a] ");
}

TEST(Library, EveryFunctionChecks) {
  for (const Widths widths : {Widths{}, kNarrow, Widths{ScalarType::Int32, ScalarType::Float64},
                              Widths{ScalarType::Int64, ScalarType::Float32}}) {
    SourceManager sources;
    Session session(sources, {widths, ""});
    Library library(sources);
    for (const std::string& name : library.names()) {
      if (isInternalName(name)) continue;
      // In parentheses, because `get` begins a command.
      for (const FormResult& result : session.processFile(sources.add("case.nesl", "(" + name + ");"))) {
        EXPECT_FALSE(result.failed()) << name << ": " << result.diagnostics.front().message;
      }
    }
  }
}

}  // namespace
}  // namespace kelpie

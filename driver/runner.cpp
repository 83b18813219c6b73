#include "driver/runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <limits>

#include "frontend/value_printer.h"

namespace kelpie::driver {

Output::Output(std::FILE* file) : file_(file), interactive_(isatty(fileno(file))) {}

void Output::write(std::string_view text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), file_);
  lineBegun_ = text.back() != '\n';
  if (interactive_) std::fflush(file_);
}

void Output::writeMessage(std::string_view text) {
  flush();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Output::beginLine() {
  if (lineBegun_) write("\n");
}

bool Output::flush() { return std::fflush(file_) == 0 && !std::ferror(file_); }

bool Runner::run(const std::vector<FormResult>& forms) {
  std::vector<const FormResult*> running;
  for (const FormResult& form : forms) {
    if (form.kind == FormKind::Exit) break;
    if (form.program && !form.failed()) running.push_back(&form);
  }
  backend_->expect(running, values_);
  unreached_ = 0;
  const bool good = runAll(forms);
  if (unreached_ > kMostUnreachedTold && !options_.quiet) {
    const size_t more = unreached_ - kMostUnreachedTold;
    fmt::print(stderr, "kelpie: {} more form{} what has no value\n", more, more == 1 ? " reads" : "s read");
  }
  backend_->expect({}, values_);
  return good;
}

bool Runner::runAll(const std::vector<FormResult>& forms) {
  bool good = true;
  for (const FormResult& form : forms) {
    if (form.kind == FormKind::Exit) break;
    if (options_.interrupted && *options_.interrupted) {
      leaveOut(form);
      good = false;
    } else {
      good = runForm(form) && good;
    }
  }
  return good;
}

/// The variables of a form that is not reached have no value: what is typed later may read them.
void Runner::leaveOut(const FormResult& form) {
  for (const CellAssignment& assignment : form.assignments) {
    values_.erase(assignment.cell);
    failed_[assignment.cell] = {form.span, form.name, false};
  }
}

namespace {

/// Of digits; as many as there are numbers where these say more.
int64_t lengthOf(const std::string& digits) {
  int64_t length = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  return problem == std::errc() ? length : std::numeric_limits<int64_t>::max();
}

}  // namespace

bool Runner::runForm(const FormResult& form) {
  if (form.failed()) return false;
  if (form.kind == FormKind::Setting && form.words[0] == "print_length")
    options_.printLength = lengthOf(form.words[1]);
  if (form.kind == FormKind::Silent || form.kind == FormKind::Setting) return true;
  // What is done can be read while the form is evaluated, which may take long.
  if (form.program) output_.flush();
  if (form.program && !evaluate(form)) return false;
  if (!form.shown) return true;

  try {
    show(form);
  } catch (const std::bad_alloc&) {
    return fail(form, {form.span, "out of memory: the host has none for the result"});
  } catch (const ElementsLost& lost) {
    return fail(form, {form.span, lost.what()});
  }
  return true;
}

/// Prints the result of a form. Only what is printed comes from the device.
void Runner::show(const FormResult& form) {
  output_.beginLine();
  if (!form.notice.empty()) output_.write(form.notice + "\n");
  output_.write(form.name);
  switch (form.kind) {
    case FormKind::Definition:
      output_.write(" = fn");
      break;
    case FormKind::FileBinding:
      break;
    default: {
      output_.write(" = ");
      // A binding sets one cell for each of its variables, in the order of the components of its value.
      Columns row;
      for (const CellAssignment& assignment : form.assignments)
        for (const Column& column : values_.at(assignment.cell)) row.push_back(column);
      printValue(*form.valueType, row, options_.printLength,
                 [this](std::string_view text) { output_.write(text); });
    }
  }
  output_.write(" : " + form.type + "\n");
}

bool Runner::evaluate(const FormResult& form) {
  for (const core::Global& global : form.program->globals)
    if (const auto failed = failed_.find(global.cell); failed != failed_.end()) {
      Diagnostic diagnostic{Severity::Error,
                            "K0501",
                            form.span,
                            fmt::format("this form reads `{}`, which has no value", failed->second.name),
                            "",
                            {}};
      diagnostic.notes.push_back(
          {failed->second.span, fmt::format("the form that should have bound `{}` {}", failed->second.name,
                                            failed->second.evaluated ? "failed" : "was not evaluated")});
      for (const CellAssignment& assignment : form.assignments)
        failed_[assignment.cell] = {form.span, form.name};
      if (++unreached_ <= kMostUnreachedTold) {
        report(form, diagnostic);
      } else {
        failures_[&*form.program] = diagnostic.message;
      }
      return false;
    }

  const auto begin = std::chrono::steady_clock::now();
  std::variant<Columns, RuntimeError> result = RuntimeError{};
  try {
    result = backend_->run(
        *form.program, [this](uint32_t cell) { return values_.at(cell); }, services_);
  } catch (const std::bad_alloc&) {
    result = RuntimeError{form.span, "out of memory"};
  } catch (const ElementsLost& lost) {
    result = RuntimeError{form.span, lost.what()};
  }
  if (options_.verbose) {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
    const std::string account = backend_->account();
    fmt::print(stderr, "kelpie: {}: {} took {:.3f} ms{}{}\n", sources_.describe(form.span), form.name,
               elapsed.count(), account.empty() ? "" : ", ", account);
  }
  tellComplaint(*backend_);
  for (const CellAssignment& assignment : form.assignments) failed_.erase(assignment.cell);
  if (const auto* error = std::get_if<RuntimeError>(&result)) return fail(form, *error);
  const Columns& row = std::get<Columns>(result);
  for (const CellAssignment& assignment : form.assignments)
    values_[assignment.cell].assign(row.data() + assignment.first,
                                    row.data() + assignment.first + assignment.count);
  return true;
}

/// The variables of a form that failed have no value.
bool Runner::fail(const FormResult& form, const RuntimeError& error) {
  for (const CellAssignment& assignment : form.assignments) {
    values_.erase(assignment.cell);
    failed_[assignment.cell] = {form.span, form.name};
  }
  const Span place = error.span.known() ? error.span : form.span;
  Diagnostic diagnostic{Severity::Error, "K0501", place, error.message, "", {}};
  if (place.file != form.span.file || place.begin < form.span.begin || place.end > form.span.end)
    diagnostic.notes.push_back({form.span, "in the evaluation of this form"});
  report(form, diagnostic);
  return false;
}

void Runner::report(const FormResult& form, const Diagnostic& diagnostic) {
  if (form.program) failures_[&*form.program] = diagnostic.message;
  if (options_.quiet) return;
  output_.flush();
  const std::string text = sources_.render(diagnostic, options_.colour);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace kelpie::driver

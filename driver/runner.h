// Runs the analysed forms of a file in order, keeps the values of global variables, and prints every result
// as NESL does (language.md 5.9, 7.1).
//
// A form that fails at run time has no result. Variables it should have bound have no value from then on, and
// forms that read one fail likewise; all others run.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/backend.h"
#include "frontend/session.h"

namespace kelpie::driver {

/// Where results go. Knows whether a line is begun, so that results begin on their own.
class Output {
 public:
  explicit Output(std::FILE* file);
  void write(std::string_view text);
  /// To standard error, behind what was written before.
  void writeMessage(std::string_view text);
  void beginLine();
  /// False when something could not be written.
  bool flush();

 private:
  std::FILE* file_;
  bool interactive_;
  bool lineBegun_ = false;
};

struct RunnerOptions {
  int64_t printLength = 100;
  bool verbose = false, colour = false;
  const std::atomic<bool>* interrupted = nullptr;
  bool quiet = false;  ///< errors have been reported before
};

class Runner {
 public:
  Runner(const SourceManager& sources, Backend& backend, Services& services, Output& output,
         RunnerOptions options)
      : sources_(sources), backend_(&backend), services_(services), output_(output), options_(options) {}

  /// Later forms run there; the values of variables stay.
  void setBackend(Backend& backend) { backend_ = &backend; }

  /// Whether all forms succeeded.
  bool run(const std::vector<FormResult>& forms);
  /// The values of global variables, by cell.
  const std::unordered_map<uint32_t, Columns>& values() const { return values_; }
  /// The name of the variable that a cell should have had the value of, if the form that binds it has failed.
  const std::string* failed(uint32_t cell) const {
    const auto found = failed_.find(cell);
    return found == failed_.end() ? nullptr : &found->second.name;
  }
  /// Why programs failed, those that read what such a one should have bound included.
  const std::unordered_map<const core::Program*, std::string>& failures() const { return failures_; }

 private:
  bool runAll(const std::vector<FormResult>& forms);
  void leaveOut(const FormResult& form);
  bool runForm(const FormResult& form);
  bool evaluate(const FormResult& form);
  void show(const FormResult& form);
  bool fail(const FormResult& form, const RuntimeError& error);
  void report(const FormResult& form, const Diagnostic& diagnostic);

  const SourceManager& sources_;
  Backend* backend_;
  Services& services_;
  Output& output_;
  RunnerOptions options_;
  std::unordered_map<uint32_t, Columns> values_;  ///< by cell
  struct FailedForm {
    Span span;
    std::string name;
    bool evaluated = true;
  };
  std::unordered_map<uint32_t, FailedForm>
      failed_;  ///< cells without value: the form that should have set it
  std::unordered_map<const core::Program*, std::string> failures_;
  /// Forms of a run that read what such a form should have bound. All but a few are counted only, so that
  /// they do not bury why it failed.
  size_t unreached_ = 0;
  static constexpr size_t kMostUnreachedTold = 3;
};

}  // namespace kelpie::driver

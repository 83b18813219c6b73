#include "driver/repl.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "driver/backend.h"
#include "driver/emit.h"
#include "driver/fusion_command.h"
#include "driver/interrupt.h"
#include "driver/line_editor.h"
#include "driver/runner.h"
#include "frontend/ast_print.h"
#include "frontend/form_reader.h"
#include "frontend/parser.h"
#include "frontend/text.h"
#include "runtime/services.h"

namespace kelpie::driver {

namespace {

constexpr std::string_view kHelp = R"(A form ends with `;` and may take several lines: 1 + 2;
  :type EXPR           the type of an expression or function, without evaluating it
  :emit [STAGE] EXPR   what it becomes: ast, core (default), lcu, fused, cuda or cpu
  :fusion EXPR         which of its kernels are fused, which are not, and why
  :load FILE           evaluates the forms of a file here
  :target [TARGET]     tells or chooses where to run: reference, interp, cpu or cuda
  :help                this text
  :quit                ends the session, as `exit;` and Ctrl-D do
For EXPR, :emit and :fusion also take the name of a function. Ctrl-C stops an evaluation or drops what was
typed; Tab completes names.
)";
constexpr std::array<std::string_view, 7> kCommands = {":emit",   ":fusion", ":help", ":load",
                                                       ":target", ":quit",   ":type"};
constexpr std::array<std::string_view, 4> kTargets = {"reference", "interp", "cpu", "cuda"};
constexpr std::array<std::string_view, 14> kKeywords = {"and",  "datatype", "else", "function", "if",
                                                        "in",   "let",      "nand", "nor",      "or",
                                                        "then", "time",     "xor",  "load"};
constexpr const char* kInput = "<input>";  ///< the file name in messages about typed text

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

/// Takes the first word off the text.
std::string takeWord(std::string_view& text) {
  text = trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text = trimmed(text.substr(word.size()));
  return std::string(word);
}

/// $XDG_STATE_HOME/kelpie/history, or below ~/.local/state; empty when there is no such place.
std::string historyFile() {
  namespace fs = std::filesystem;
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (state && *state) {
    folder = state;
  } else if (home && *home) {
    folder = fs::path(home) / ".local" / "state";
  } else {
    return "";
  }
  folder /= "kelpie";
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? "" : (folder / "history").string();
}

class Repl {
 public:
  explicit Repl(const Options& options);
  int run();

 private:
  void take(const std::string& line);
  uint32_t addPending();
  void evaluate(uint32_t file);
  void command(std::string_view text);
  void showType(std::string_view expression);
  void emit(std::string_view arguments);
  void showFusion(std::string_view expression);
  void load(std::string_view path);
  bool chooseTarget(const std::string& target);
  std::optional<FormResult> inspect(std::string_view expression, bool called);
  std::optional<ast::ExpPtr> parseExpression(std::string_view text);
  Completions completions(std::string_view before);

  void print(const Diagnostic& diagnostic);
  void complain(std::string_view message);
  /// `work`, whose failures end neither the session nor the process.
  template <typename Work>
  void guarded(Work work);

  Options options_;
  bool colour_ = isatty(STDERR_FILENO);
  SourceManager sources_;
  Session session_;
  Output output_;
  std::unique_ptr<LineEditor> editor_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<Backend> backend_;
  std::optional<Runner> runner_;
  FormReader pending_;  ///< lines of a form that is not complete
  uint32_t line_ = 0,
           firstPending_ = 1;  ///< of the input: the last that was read, where the pending form begins
  bool ended_ = false, failed_ = false;
};

Repl::Repl(const Options& options)
    : options_(options),
      session_(sources_, {options.widths, ""}),
      output_(stdout),
      editor_(
          makeLineEditor(historyFile(), [this](std::string_view before) { return completions(before); })) {
  ServiceOptions serviceOptions;
  serviceOptions.output = [this](std::string_view text) { output_.write(text); };
  serviceOptions.messages = [this](std::string_view text) { output_.writeMessage(text); };
  serviceOptions.generator = options_.generator;
  serviceOptions.seed = options_.seed;
  services_ = makeServices(std::move(serviceOptions));
}

int Repl::run() {
  catchInterrupts();
  if (editor_->interactive()) catchTerminalSignals();
  if (!chooseTarget(options_.target)) return 2;
  if (editor_->interactive())
    output_.write(
        fmt::format("Kelpie, target {}. :help tells what can be typed, :quit ends.\n", backend_->name()));
  while (!ended_) {
    output_.beginLine();
    output_.flush();
    setEvaluating(false);
    std::string line;
    const LineEditor::Status status = editor_->read(pending_.empty() ? "kelpie> " : "   ...> ", line);
    setEvaluating(true);
    switch (status) {
      case LineEditor::Status::Line:
        ++line_;
        guarded([&] { take(line); });
        break;
      case LineEditor::Status::Interrupted:
        pending_.take();
        break;
      case LineEditor::Status::Unreadable:
        fmt::print(stderr, "kelpie: cannot read standard input: {}\n", std::strerror(errno));
        return 2;
      case LineEditor::Status::End:
        if (editor_->interactive()) output_.write("\n");
        ended_ = pending_.empty() || !editor_->interactive();
        if (!pending_.empty()) guarded([&] { evaluate(addPending()); });
        break;
    }
  }
  if (!output_.flush()) {
    fmt::print(stderr, "kelpie: error: the output could not be written\n");
    return 1;
  }
  return failed_ && !editor_->interactive() ? 1 : 0;
}

template <typename Work>
void Repl::guarded(Work work) {
  try {
    work();
  } catch (const InternalError& error) {
    complain(
        fmt::format("internal error: {}\nThis is a mistake in Kelpie, not in your program.", error.what()));
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  } catch (const std::exception& error) {
    complain(
        fmt::format("internal error: {}\nThis is a mistake in Kelpie, not in your program.", error.what()));
  }
}

void Repl::take(const std::string& line) {
  const std::string_view text = trimmed(line);
  if (pending_.empty() && (text.empty() || text[0] == ':')) {
    if (!text.empty()) command(text);
    return;
  }
  // Who types these waits for no further line.
  if (pending_.empty() && editor_->interactive() && (text == "exit" || text == "quit" || text == "help"))
    return complain(fmt::format("a form ends with `;`, but the command for this is {}",
                                text == "help" ? ":help" : ":quit"));
  if (pending_.empty()) firstPending_ = line_;
  if (pending_.add(line)) evaluate(addPending());
}

/// Lines of a terminal have no numbers, so each form begins at line 1.
uint32_t Repl::addPending() {
  return sources_.add(kInput, pending_.take(), editor_->interactive() ? 1 : firstPending_);
}

void Repl::evaluate(uint32_t file) {
  const Pipeline pipeline(sources_, pipelineOptions(options_, backend_->name()));
  const std::vector<FormResult> forms = pipeline.analyse(session_, file);
  for (const FormResult& form : forms) {
    for (const Diagnostic& diagnostic : form.diagnostics)
      if (diagnostic.shown) print(diagnostic);
    ended_ = ended_ || form.kind == FormKind::Exit;
  }
  if (!runner_->run(forms)) failed_ = true;
}

void Repl::command(std::string_view text) {
  const std::string word = takeWord(text);
  std::vector<std::string_view> matches;  // :t would be two commands, :ty is one
  for (const std::string_view command : kCommands)
    if (command == word || command.starts_with(word)) matches.push_back(command);
  if (matches.size() != 1)
    return complain(fmt::format("`{}` is {}; :help lists the commands", word,
                                matches.empty() ? "no command" : "not one command only"));
  const std::string_view command = matches.front();
  if (command == ":quit") {
    ended_ = true;
  } else if (command == ":help") {
    output_.write(kHelp);
  } else if (command == ":target") {
    if (text.empty()) output_.write(backend_->name() + "\n");
    if (!text.empty()) chooseTarget(std::string(text));
  } else if (text.empty()) {
    complain(
        fmt::format("{} needs {}", command, command == ":load" ? "the name of a file" : "an expression"));
  } else if (command == ":type") {
    showType(text);
  } else if (command == ":emit") {
    emit(text);
  } else if (command == ":fusion") {
    showFusion(text);
  } else {
    load(text);
  }
}

void Repl::showType(std::string_view expression) {
  if (const std::optional<FormResult> form = inspect(expression, false))
    output_.write(fmt::format("{} : {}\n", form->name, form->type));
}

void Repl::emit(std::string_view arguments) {
  std::string_view rest = arguments;
  const std::optional<Stage> stage = stageFromName(takeWord(rest));
  if (stage && !rest.empty()) arguments = rest;
  const Stage chosen = stage && !rest.empty() ? *stage : Stage::Core;
  if (chosen == Stage::Ast) {
    if (const std::optional<ast::ExpPtr> expression = parseExpression(arguments))
      output_.write(toString(ast::Form{*expression, (*expression)->span}) + "\n");
    return;
  }
  std::optional<FormResult> form = inspect(arguments, true);
  if (!form) return;
  const std::string target = chosen == Stage::Cpu ? "cpu" : chosen == Stage::Cuda ? "cuda" : backend_->name();
  std::vector<FormResult> forms;
  forms.push_back(std::move(*form));
  output_.write(emitForms(forms, chosen, Pipeline(sources_, pipelineOptions(options_, target)), sources_));
}

void Repl::showFusion(std::string_view expression) {
  std::optional<FormResult> form = inspect(expression, true);
  if (!form) return;
  PipelineOptions passes = pipelineOptions(options_, backend_->name());
  passes.fusion.predict = passes.fusion.compare = passes.fusion.explain = true;
  std::vector<FormResult> forms;
  forms.push_back(std::move(*form));
  const FusionRequest request;
  output_.write(
      writtenReports(fusionReports(forms, request, Pipeline(sources_, passes), sources_), request, sources_));
}

void Repl::load(std::string_view path) {
  if (path.size() > 1 && path.front() == '"' && path.back() == '"') path = path.substr(1, path.size() - 2);
  std::string problem, name(path);
  std::error_code none;
  const auto isFile = [&](const std::string& file) { return std::filesystem::is_regular_file(file, none); };
  if (!isFile(name) && isFile(name + ".nesl")) name += ".nesl";
  const std::optional<uint32_t> file = sources_.load(name, problem);
  if (!file) return complain(fmt::format("cannot read {}: {}", path, problem));
  const bool before = ended_;
  evaluate(*file);
  ended_ = before;  // `exit` ends the file only
}

/// False when there is no target at all.
bool Repl::chooseTarget(const std::string& target) {
  if (!target.empty() && std::find(kTargets.begin(), kTargets.end(), target) == kTargets.end()) {
    complain(fmt::format("`{}` is no target; the targets are {}", target, fmt::join(kTargets, ", ")));
    return backend_ != nullptr;
  }
  std::string problem;
  std::unique_ptr<Backend> chosen = makeBackend(target, options_, interrupted(), sources_, problem);
  if (!chosen) {
    complain(fmt::format("the target {} cannot be used here: {}", target, problem));
    return backend_ != nullptr;
  }
  backend_ = std::move(chosen);
  if (runner_)
    runner_->setBackend(*backend_);
  else
    runner_.emplace(sources_, *backend_, *services_, output_,
                    RunnerOptions{options_.printLength, options_.verbose, colour_, &interrupted()});
  return true;
}

std::optional<ast::ExpPtr> Repl::parseExpression(std::string_view text) {
  const uint32_t file = sources_.add(kInput, std::string(text) + ";");
  const ParseResult parsed = parse(sources_, file);
  for (const Diagnostic& diagnostic : parsed.diagnostics) print(diagnostic);
  if (!parsed.ok()) return std::nullopt;
  const auto* expression =
      parsed.forms.size() == 1 ? std::get_if<ast::ExpPtr>(&parsed.forms.front().node) : nullptr;
  if (expression) return *expression;
  // `get` and `exit` are functions, too.
  if (parsed.forms.size() == 1 && text.find('(') == std::string_view::npos)
    return parseExpression(fmt::format("({})", text));
  complain("this takes one expression");
  return std::nullopt;
}

/// Without a program when `called` is false and the type is not closed.
std::optional<FormResult> Repl::inspect(std::string_view text, bool called) {
  const std::optional<ast::ExpPtr> expression = parseExpression(text);
  if (!expression) return std::nullopt;
  FormResult form = session_.inspect(*expression, called);
  for (const Diagnostic& diagnostic : form.diagnostics) print(diagnostic);
  if (form.failed()) return std::nullopt;
  if (called && !form.program) {
    complain(fmt::format("`{}` depends on its argument: write a call", form.name));
    return std::nullopt;
  }
  return form;
}

Completions Repl::completions(std::string_view before) {
  const auto isWord = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  Completions found;
  std::string_view line = trimmed(before);
  const size_t begin = before.find_first_not_of(" \t");
  if (pending_.empty() && !line.empty() && line[0] == ':') {
    const std::string word = takeWord(line);
    if (before.substr(begin).find(' ') == std::string_view::npos) {
      found.wordBegin = begin;
      for (const std::string_view command : kCommands)
        if (command.starts_with(word)) found.words.push_back(std::string(command) + " ");
      return found;
    }
    found.wordBegin = before.find_last_of(' ') + 1;
    const std::string start(before.substr(found.wordBegin));
    if (word == ":target") {
      for (const std::string_view target : kTargets)
        if (target.starts_with(start)) found.words.emplace_back(target);
      return found;
    }
    if (word == ":load") {
      const std::filesystem::path path(start);
      std::error_code error;
      const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
      for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(path.filename().string())) continue;
        found.words.push_back((path.parent_path() / name).string() + (entry.is_directory(error) ? "/" : ""));
      }
      std::sort(found.words.begin(), found.words.end());
      return found;
    }
  }
  found.wordBegin = before.size();
  while (found.wordBegin > 0 && isWord(before[found.wordBegin - 1])) --found.wordBegin;
  const std::string word = lowerCase(std::string(before.substr(found.wordBegin)));
  found.words = session_.environment().namesWithPrefix(word);
  for (const std::string_view keyword : kKeywords)
    if (keyword.starts_with(word)) found.words.emplace_back(keyword);
  std::sort(found.words.begin(), found.words.end());
  return found;
}

void Repl::print(const Diagnostic& diagnostic) {
  if (diagnostic.severity == Severity::Error) failed_ = true;
  output_.beginLine();
  output_.flush();
  const std::string text = sources_.render(diagnostic, colour_);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Repl::complain(std::string_view message) {
  failed_ = true;
  output_.beginLine();
  output_.flush();
  fmt::print(stderr, "kelpie: {}\n", message);
}

}  // namespace

int repl(const Options& options) { return Repl(options).run(); }

}  // namespace kelpie::driver

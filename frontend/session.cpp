#include "frontend/session.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "frontend/ast_names.h"
#include "frontend/lexer.h"
#include "frontend/misread_text.h"
#include "frontend/overloaded.h"
#include "frontend/specialise.h"

namespace kelpie {

namespace {

/// A pattern as results print it: pairs flat in one pair of parentheses.
std::string patternText(const ast::Pattern& pattern, bool nested) {
  return std::visit(Overloaded{
                        [](const ast::NamePattern& name) { return name.name; },
                        [&](const ast::PairPattern& pair) {
                          std::string inner =
                              patternText(*pair.first, false) + ", " + patternText(*pair.second, true);
                          return nested ? inner : "(" + inner + ")";
                        },
                        [](const ast::RecordPattern& record) {
                          std::string field = patternText(*record.field, false);
                          return record.name + (field[0] == '(' ? field : "(" + field + ")");
                        },
                    },
                    pattern.node);
}

std::string lowerCase(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

bool hasFunction(const Type* type) {
  type = resolve(type);
  return type->kind == TypeKind::Function ||
         std::any_of(type->arguments.begin(), type->arguments.end(), hasFunction);
}

constexpr std::array<std::string_view, 3> kSettings = {"arg_check", "print_length", "verbose"};
constexpr std::array<std::string_view, 9> kIgnoredSettings = {
    "memory_size", "config", "rsh_command", "editor", "redefine", "debug", "lnesl", "trace", "profile"};

}  // namespace

bool FormResult::failed() const {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::Error; });
}

Session::Session(SourceManager& sources, SessionOptions options)
    : sources_(sources),
      options_(std::move(options)),
      types_(options_.widths),
      library_(sources),
      environment_(types_, library_, [this](const ast::Form& form) { defineLibrary(form); }),
      grounds_(options_.widths) {
  Cell& path = environment_.makeCell(CellKind::Constant, "nesl_path");
  path.scheme.type = types_.stringType();
  path.value = std::make_unique<typed::Exp>(
      typed::Exp{typed::String{options_.neslPath}, path.scheme.type, Span{}, /*closed=*/true});
  environment_.addLibrary(path);
}

std::vector<FormResult> Session::processFile(uint32_t file) {
  ParseResult parsed = parse(sources_, file);
  std::vector<FormResult> results;
  struct Open {
    Session& session;
    Open(Session& own, uint32_t file) : session(own) { session.open_.push_back(file); }
    ~Open() {
      session.open_.pop_back();
      if (session.open_.empty()) session.environment_.forgetHidden();
    }
  } const open(*this, file);
  auto diagnostic = parsed.diagnostics.begin();
  auto lost = parsed.lost.begin();
  auto syntaxErrorsBefore = [&](uint32_t position) {
    for (; lost != parsed.lost.end() && lost->span.begin < position; ++lost)
      if (!lost->record || !environment_.lookupDatatype(lost->name, false))
        environment_.markFailed(lost->name, lost->span, lost->told);
    for (; diagnostic != parsed.diagnostics.end() && diagnostic->span.begin <= position; ++diagnostic) {
      FormResult& result = results.emplace_back();
      result.span = diagnostic->span;
      result.diagnostics.push_back(std::move(*diagnostic));
    }
  };
  for (const ast::Form& form : parsed.forms) {
    if (const auto* function = std::get_if<ast::FunctionDefinition>(&form.node))
      environment_.announce(function->name, {function->nameSpan, true});
    if (const auto* datatype = std::get_if<ast::DatatypeDefinition>(&form.node))
      environment_.announceType(datatype->name, datatype->nameSpan);
    if (const auto* binding = std::get_if<ast::Binding>(&form.node))
      for (const BoundName& bound : boundNames(*binding->pattern))
        environment_.announce(bound.name, {bound.span, false});
  }
  for (const ast::Form& form : parsed.forms) {
    syntaxErrorsBefore(form.span.begin);
    for (FormResult& result : process(form)) results.push_back(std::move(result));
  }
  syntaxErrorsBefore(UINT32_MAX);
  explainMistakes(file, results);
  return results;
}

/// Mistakes that come from what the text looked like, not from what it says.
void Session::explainMistakes(uint32_t file, std::vector<FormResult>& results) {
  std::vector<Span> mistakes;
  std::vector<Diagnostic*> diagnostics;
  for (FormResult& result : results) {
    for (Diagnostic& diagnostic : result.diagnostics) {
      if (diagnostic.severity != Severity::Error || diagnostic.span.file != file) continue;
      mistakes.push_back(diagnostic.span);
      diagnostics.push_back(&diagnostic);
    }
  }
  if (mistakes.empty()) return;
  const std::string_view text = sources_.text(file);
  const std::optional<MisreadComment> comment = misreadComment(lex(text), text, file, mistakes);
  if (!comment) return;
  for (Diagnostic* diagnostic : diagnostics)
    if (diagnostic->span.begin >= comment->end) return explain(*comment, *diagnostic);
}

std::vector<FormResult> Session::process(const ast::Form& form) {
  std::vector<FormResult> results;
  if (auto* command = std::get_if<ast::Command>(&form.node); command && command->word == "load") {
    load(*command, form.span, results);
    return results;
  }
  FormResult result =
      std::visit(Overloaded{
                     [&](const ast::FunctionDefinition& definition) { return function(definition); },
                     [&](const ast::DatatypeDefinition& definition) { return datatype(definition); },
                     [&](const ast::Binding& binding) { return this->binding(binding); },
                     [&](const ast::Command& command) { return this->command(command, form.span); },
                     [&](const ast::ExpPtr& expression) { return this->expression(expression); },
                 },
                 form.node);
  result.span = form.span;
  if (result.program) result.program->span = form.span;
  result.shown = shown_;
  if (result.failed()) {
    result.kind = FormKind::Silent;
    result.program.reset();
    markFailed(form, std::all_of(result.diagnostics.begin(), result.diagnostics.end(),
                                 [](const Diagnostic& d) { return d.followsAnother; }));
  }
  results.push_back(std::move(result));
  return results;
}

void Session::markFailed(const ast::Form& form, bool told) {
  if (const auto* function = std::get_if<ast::FunctionDefinition>(&form.node)) {
    environment_.markFailed(function->name, function->nameSpan, told);
  } else if (const auto* datatype = std::get_if<ast::DatatypeDefinition>(&form.node)) {
    environment_.markFailed(datatype->name, datatype->nameSpan, told);
  } else if (const auto* binding = std::get_if<ast::Binding>(&form.node)) {
    // `g(x) = x + 1` was to define g, if there is no record type of this name.
    const auto* record = std::get_if<ast::RecordPattern>(&binding->pattern->node);
    if (record && !environment_.lookupDatatype(record->name, false)) {
      environment_.markFailed(record->name, binding->pattern->span, told);
      if (usesParts(*record, *binding->value)) return;
    }
    for (const BoundName& bound : boundNames(*binding->pattern))
      environment_.markFailed(bound.name, bound.span, told);
  }
}

// ---- definitions ------------------------------------------------------------------------------------------

FormResult Session::define(Cell* cell) {
  FormResult result;
  Environment::Definition definition = environment_.define(*cell);
  result.kind = FormKind::Definition;
  result.name = cell->name;
  result.type = show(cell->scheme.type);
  if (definition.newType) {
    result.notice = "Redefining " + cell->name + " with a new type.  Old calls will not be modified.";
  }
  return result;
}

FormResult Session::function(const ast::FunctionDefinition& definition) {
  std::vector<Diagnostic> diagnostics;
  Cell* cell = Inference(environment_, false, diagnostics).function(definition);
  FormResult result = cell ? define(cell) : FormResult{};
  result.diagnostics = std::move(diagnostics);
  return result;
}

FormResult Session::datatype(const ast::DatatypeDefinition& definition) {
  std::vector<Diagnostic> diagnostics;
  Cell* cell = Inference(environment_, false, diagnostics).datatype(definition);
  FormResult result;
  if (cell) {
    Cell* old = environment_.existing(cell->name);
    bool same = old && old->kind == CellKind::Constructor &&
                sameScheme({old->datatype->field, {}}, {cell->datatype->field, {}}) &&
                old->datatype->declared == cell->datatype->declared;
    if (same) {  // the same definition again: values made by the old one stay of this type
      cell = old;
    } else {
      environment_.addDatatype(*cell->datatype, false);
    }
    result = define(cell);
  }
  result.diagnostics = std::move(diagnostics);
  return result;
}

void Session::defineLibrary(const ast::Form& form) {
  std::vector<Diagnostic> diagnostics;
  Inference inference(environment_, true, diagnostics);
  auto add = [&](Cell* cell) {
    if (!cell) throw InternalError("the library has a mistake\n" + sources_.render(diagnostics.front()));
    environment_.addLibrary(*cell);
    if (cell->kind == CellKind::Constructor) environment_.addDatatype(*cell->datatype, true);
  };
  std::visit(Overloaded{
                 [&](const ast::FunctionDefinition& definition) { add(inference.function(definition)); },
                 [&](const ast::DatatypeDefinition& definition) { add(inference.datatype(definition)); },
                 [&](const ast::Binding& binding) {
                   auto bound = inference.binding(binding);
                   if (!bound || bound->variables.size() != 1) add(nullptr);
                   Cell& cell = environment_.makeCell(CellKind::Constant, bound->variables[0]->name);
                   cell.scheme.type = bound->value->type;
                   cell.value = std::move(bound->value);
                   add(&cell);
                 },
                 [](const auto&) { throw InternalError("the library holds definitions only"); },
             },
             form.node);
}

// ---- values -----------------------------------------------------------------------------------------------

void Session::specialiseInto(FormResult& result, const typed::Exp& value) {
  try {
    Specialised specialised = specialise(value, environment_, grounds_);
    result.program = std::move(specialised.program);
    result.valueType = std::move(specialised.type);
    for (Diagnostic& diagnostic : specialised.diagnostics)
      result.diagnostics.push_back(std::move(diagnostic));
  } catch (const TooManyComponents&) {
    result.diagnostics.push_back({.id = "K0314",
                                  .span = value.span,
                                  .message = "a value in this form has more than " +
                                             std::to_string(kMaximalComponents) + " components",
                                  .hint = "records and tuples of records and tuples double with every level",
                                  .notes = {}});
  }
}

Cell& Session::variableCell(const std::string& name, Type* type, Span span, FormResult& result) {
  Cell& cell = environment_.makeCell(CellKind::Variable, name);
  cell.span = span;
  cell.scheme = types_.generaliseValue(type);
  Environment::Definition definition = environment_.define(cell);
  if (definition.cell == &cell) cell.id = environment_.newVariableId();
  if (definition.newType && name != "it") {
    if (!result.notice.empty()) result.notice += '\n';
    result.notice += "Redefining " + name + " with a new type.  Old calls will not be modified.";
  }
  knownStrings_.erase(definition.cell);
  return *definition.cell;
}

FormResult Session::expression(const ast::ExpPtr& expression) {
  FormResult result;
  typed::ExpPtr value = Inference(environment_, false, result.diagnostics).expression(expression);
  if (!value) return result;
  result.kind = FormKind::Expression;
  result.name = "it";
  result.type = show(value->type);
  specialiseInto(result, *value);
  if (result.failed()) return result;
  Cell& it = variableCell("it", value->type, {}, result);
  result.assignments.push_back({it.id, 0, result.valueType->components});
  kept_.push_back(std::move(value));
  return result;
}

FormResult Session::inspect(const ast::ExpPtr& expression, bool called) {
  FormResult result;
  const ast::ExpPtr inspected = called ? callOf(expression) : expression;
  typed::ExpPtr value = Inference(environment_, false, result.diagnostics).expression(inspected);
  result.span = expression->span;
  if (!value) return result;
  result.kind = FormKind::Expression;
  result.name = sources_.text(expression->span);
  result.type = show(value->type);
  std::vector<const Type*> variables;
  collectVariables<const Type>(value->type, variables);
  if (variables.empty()) specialiseInto(result, *value);
  kept_.push_back(std::move(value));
  return result;
}

// `f` becomes `f(argument)`, where the argument is a variable that no program can name or set.
ast::ExpPtr Session::callOf(const ast::ExpPtr& function) {
  const auto* name = std::get_if<ast::Name>(&function->node);
  const Cell* cell = name ? environment_.lookup(name->name, false) : nullptr;
  const Type* type = cell ? resolve(cell->scheme.type) : nullptr;
  if (!type || type->kind != TypeKind::Function || cell->kind == CellKind::Variable) return function;
  if (hasFunction(type->arguments[0])) return function;  // which function would have to be known
  std::vector<const Type*> variables;
  collectVariables<const Type>(type->arguments[0], variables);
  std::unordered_map<const Type*, Type*> ints;
  for (const Type* variable : variables)
    if (variable->typeClass & kIntClass) ints[variable] = types_.intType();
  constexpr const char* kArgument = "<argument>";
  Cell& argument = environment_.makeCell(CellKind::Variable, kArgument);
  argument.scheme.type = types_.replace(type->arguments[0], ints);
  if (environment_.define(argument).cell == &argument) argument.id = environment_.newVariableId();
  auto operand = std::make_shared<const ast::Exp>(ast::Exp{ast::Name{kArgument}, function->span});
  return std::make_shared<const ast::Exp>(ast::Exp{ast::Apply{function, std::move(operand)}, function->span});
}

FormResult Session::binding(const ast::Binding& binding) {
  FormResult result;
  auto bound = Inference(environment_, false, result.diagnostics).binding(binding);
  if (!bound) return result;
  result.kind = binding.toFile ? FormKind::FileBinding : FormKind::Binding;
  result.name = patternText(*binding.pattern, false);
  result.type = show(bound->value->type);
  specialiseInto(result, *bound->value);
  if (result.failed()) return result;
  std::optional<std::string> known = constantString(*binding.value);
  size_t next = 0;
  for (const typed::VariablePtr& variable : bound->variables) {
    Cell& cell = variableCell(variable->name, variable->type, variable->span, result);
    size_t count = grounds_.row(grounds_.of(variable->type, {})).size();
    result.assignments.push_back({cell.id, next, count});
    next += count;
    if (known && bound->pattern->variable) knownStrings_[&cell] = *known;
  }
  kept_.push_back(std::move(bound->value));
  return result;
}

// ---- commands ---------------------------------------------------------------------------------------------

FormResult Session::command(const ast::Command& command, Span span) {
  FormResult result;
  auto warn = [&](std::string id, std::string message, std::string hint = {}) {
    result.diagnostics.push_back({.severity = Severity::Warning,
                                  .id = std::move(id),
                                  .span = span,
                                  .message = std::move(message),
                                  .hint = std::move(hint),
                                  .notes = {}});
  };
  if (command.word == "exit") {
    result.kind = FormKind::Exit;
    if (!command.arguments.empty())
      warn("K0404", "as the first word of a form `exit` is a command, which ends the program",
           "a variable or a function of this name is written in parentheses there: (exit)");
    return result;
  }
  // What follows a variable or a function.
  static constexpr std::array kOfValues = {"(", "=", "|=", ",", "["};
  const bool isValue = !command.arguments.empty() &&
                       std::find(kOfValues.begin(), kOfValues.end(), command.arguments[0]) != kOfValues.end();
  if (isValue) {
    warn("K0404", "as the first word of a form `" + command.word + "` is a command, which is skipped",
         "a variable or a function of this name is written in parentheses there: (" + command.word + ")");
    return result;
  }
  if (command.word != "set") {
    warn("K0404", "the command `" + command.word + "` is not supported",
         command.word == "help" || command.word == "?" ? "at the prompt, :help tells what can be typed" : "");
    return result;
  }
  const std::string option = command.arguments.empty() ? "" : lowerCase(command.arguments[0]);
  auto is = [&](std::string_view name) { return name == option; };
  if (std::any_of(kIgnoredSettings.begin(), kIgnoredSettings.end(), is)) {
    warn("K0403", "`set " + option + "` has no effect here");
    return result;
  }
  const std::string value = command.arguments.size() == 2 ? lowerCase(command.arguments[1]) : "";
  bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  bool good = is("print_length") ? number : value == "on" || value == "off";
  if (std::none_of(kSettings.begin(), kSettings.end(), is)) {
    warn("K0403", option.empty() ? "`set` needs an option" : "unknown option `" + option + "` of `set`",
         "the options are arg_check, print_length and verbose");
  } else if (!good) {
    warn("K0403", std::string("`set ") + option + "` takes " +
                      (is("print_length") ? "a number from 0 on" : "`on` or `off`"));
  } else {
    result.kind = FormKind::Setting;
    result.words = {option, value};
  }
  return result;
}

// Literals, ++, and global variables that were bound to such strings.
std::optional<std::string> Session::constantString(const ast::Exp& expression) {
  if (auto* literal = std::get_if<ast::StringLiteral>(&expression.node)) return literal->bytes;
  if (auto* name = std::get_if<ast::Name>(&expression.node)) {
    const Cell* cell = environment_.lookup(name->name, false);
    if (!cell) return std::nullopt;
    if (cell->kind == CellKind::Constant) {
      auto* string = std::get_if<typed::String>(&cell->value->node);
      return string ? std::optional(string->bytes) : std::nullopt;
    }
    auto known = knownStrings_.find(cell);
    return known == knownStrings_.end() ? std::nullopt : std::optional(known->second);
  }
  if (auto* append = std::get_if<ast::Binary>(&expression.node); append && append->op == "++") {
    std::optional<std::string> left = constantString(*append->left);
    std::optional<std::string> right = constantString(*append->right);
    if (left && right) return *left + *right;
  }
  return std::nullopt;
}

void Session::load(const ast::Command& command, Span span, std::vector<FormResult>& results) {
  auto fail = [&](std::string message, std::string hint = {}) {
    FormResult& result = results.emplace_back();
    result.span = span;
    result.diagnostics.push_back(
        {.id = "K0402", .span = span, .message = std::move(message), .hint = std::move(hint), .notes = {}});
  };
  const ast::Exp* name = command.expression.get();
  if (!name) return fail("`load` needs the name of a file, a string");
  bool print = false;
  while (auto* pair = std::get_if<ast::Pair>(&name->node)) {
    for (const ast::Exp* option = pair->second.get(); option;) {
      const ast::Exp* first = option;
      option = nullptr;
      if (auto* more = std::get_if<ast::Pair>(&first->node)) {
        first = more->first.get();
        option = more->second.get();
      }
      auto* named = std::get_if<ast::NamedArgument>(&first->node);
      auto* value = named ? std::get_if<ast::BoolLiteral>(&named->value->node) : nullptr;
      if (!value || (named->name != "print" && named->name != "verbose")) {
        return fail("the options of `load` are `print := t` and `verbose := t`");
      }
      if (named->name == "print") print = value->value;
    }
    name = pair->first.get();
  }
  std::optional<std::string> path = constantString(*name);
  if (!path) {
    const bool literal = std::holds_alternative<ast::IntLiteral>(name->node) ||
                         std::holds_alternative<ast::FloatLiteral>(name->node) ||
                         std::holds_alternative<ast::BoolLiteral>(name->node) ||
                         std::holds_alternative<ast::CharLiteral>(name->node);
    if (literal) return fail("`load` needs the name of a file, a string");
    return fail("the name of a file to load must be known at compile time",
                "it can be made of string literals, `++` and global variables bound to such strings");
  }
  std::vector<std::string> candidates = {*path + ".nesl", *path};
  if (path->size() >= 5 && path->substr(path->size() - 5) == ".nesl")
    candidates.insert(candidates.begin(), *path);
  std::filesystem::path folder = std::filesystem::path(sources_.name(span.file)).parent_path();
  if (!folder.empty() && !path->starts_with('/')) {  // then beside the file that loads it
    for (size_t i = 0, n = candidates.size(); i < n; ++i)
      candidates.push_back((folder / candidates[i]).string());
  }
  std::string problem;
  bool folderOnly = false;
  for (const std::string& candidate : candidates) {
    std::error_code error;
    folderOnly |= std::filesystem::is_directory(candidate, error);
    if (!std::filesystem::is_regular_file(candidate, error)) continue;
    const auto isCandidate = [&](uint32_t open) {
      return std::filesystem::equivalent(sources_.name(open), candidate, error);
    };
    if (std::any_of(open_.begin(), open_.end(), isCandidate)) return fail("`" + candidate + "` loads itself");
    std::optional<uint32_t> file = sources_.load(candidate, problem);
    if (!file) return fail("cannot load `" + candidate + "`: " + problem);
    bool outer = shown_;
    shown_ = print;
    for (FormResult& result : processFile(*file)) results.push_back(std::move(result));
    shown_ = outer;
    return;
  }
  if (folderOnly) return fail("`" + *path + "` is a folder");
  fail("there is no file `" + *path + "` or `" + *path + ".nesl`");
}

}  // namespace kelpie

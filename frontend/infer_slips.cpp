// Slips that are well formed: what stands there means something in NESL, but not what its writer had in mind.
// Each is told with what is written instead, and nothing is told that only follows from it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/ast_names.h"
#include "frontend/foreign_words.h"
#include "frontend/infer.h"

namespace kelpie {

using typed::ExpPtr;

namespace {

constexpr const char* kFilter = "a filter stands behind a bar: {ELEMENT : X in SEQUENCE | CONDITION}";

template <size_t Size>
bool isOneOf(const std::string& name, const std::array<const char*, Size>& words) {
  return std::find(words.begin(), words.end(), name) != words.end();
}

constexpr std::array kTypes = {"int", "float", "bool", "char", "string"};
constexpr std::array kBinders = {"var", "val",   "const", "auto", "set",
                                 "int", "float", "bool",  "char", "string"};

/// `g(x, y)`, as the head of a definition of a function.
std::string headOf(const ast::RecordPattern& record) {
  std::string parameters;
  for (const BoundName& part : boundNames(*record.field))
    parameters += (parameters.empty() ? "" : ", ") + part.name;
  return record.name + "(" + parameters + ")";
}

/// The elements of a call in reverse, `g h x` as x, h, g; and whether one comes from a later line.
std::vector<const ast::Exp*> partsOfCall(const ast::Exp& call, bool& overLineEnd) {
  std::vector<const ast::Exp*> parts;
  const ast::Exp* rest = &call;
  while (const auto* apply = std::get_if<ast::Apply>(&rest->node)) {
    parts.push_back(apply->argument.get());
    overLineEnd |= apply->overLineEnd;
    rest = apply->function.get();
  }
  parts.push_back(rest);
  return parts;
}

}  // namespace

bool Inference::isKnown(const std::string& name) {
  const auto local = scope_.find(name);
  return (local != scope_.end() && !local->second.empty()) || (self_ && self_->name == name) ||
         environment_.lookup(name, fromLibrary_) || environment_.failedDefinition(name);
}

// ---- patterns of records that there are none of -----------------------------------------------------------

void Inference::reportNoRecord(const ast::RecordPattern& record, Span span) {
  // What bears this name is what the message is about.
  if (!unknown_.insert(record.name).second) return;
  const std::string& name = record.name;
  const auto* part = std::get_if<ast::NamePattern>(&record.field->node);
  std::string hint;
  if (inParameters_ && isOneOf(name, kTypes)) {
    hint = "types stand behind the parameters: function NAME(a, b) : (A, B) -> C = BODY";
  } else if (isOneOf(name, kBinders)) {
    hint = "a value is bound by NAME = VALUE, whatever its type";
  } else if (name == "for" || name == "each" || name == "foreach") {
    hint = "a binding of an apply-to-each is NAME in SEQUENCE";
  } else if (definesFunctions(name) || name == "lambda") {
    hint = "a function without a name is X => RESULT, one with a name is defined by function NAME(X) = BODY";
  } else if (part) {
    hint = fmt::format(
        "names are separated by commas: {0}, {1}; a record type is defined by `datatype {0}(...)`", name,
        part->name);
  } else {
    hint = fmt::format(
        "a record type is defined by `datatype {0}(...)`, a function by `function {0}(...) = ...`", name);
  }
  report("K0203", span, "`" + name + "` is not a record type", std::move(hint));
}

bool Inference::toldForgottenFunction(const ast::Pattern& pattern, const ast::Exp& value, bool local) {
  const auto* record = std::get_if<ast::RecordPattern>(&pattern.node);
  if (!record || environment_.lookupDatatype(record->name, fromLibrary_) || !usesParts(*record, value) ||
      environment_.failedHere(record->name) || isOneOf(record->name, kBinders))
    return false;
  unknown_.insert(record->name);
  const std::string head = headOf(*record);
  report("K0203", pattern.span, "`" + record->name + "` is not a record type",
         local ? fmt::format("a function is defined at top level, by: function {} = ...", head)
               : fmt::format("a function is defined by: function {} = ...", head));
  return true;
}

// ---- expressions ------------------------------------------------------------------------------------------

bool Inference::toldArrow(const ast::Binary& binary) {
  if (binary.op != "->") return false;
  std::vector<const ast::Name*> names;
  for (const ast::Exp* rest = binary.left.get(); rest;) {
    const auto* pair = std::get_if<ast::Pair>(&rest->node);
    const auto* name = std::get_if<ast::Name>(pair ? &pair->first->node : &rest->node);
    if (!name || isKnown(name->name)) return false;
    names.push_back(name);
    rest = pair ? pair->second.get() : nullptr;
  }
  // An operator behind it is not seen: `x -> x + 1` is (x -> x) + 1. A number takes no elements.
  const bool number = std::holds_alternative<ast::IntLiteral>(binary.right->node) ||
                      std::holds_alternative<ast::FloatLiteral>(binary.right->node);
  if (!number && std::none_of(names.begin(), names.end(),
                              [&](const ast::Name* name) { return mentions(*binary.right, name->name); }))
    return false;
  report("K0201", binary.left->span, "`" + names[0]->name + "` is not defined",
         "a function without a name is X => RESULT; v -> [i, j] takes elements of a sequence");
  for (const ast::Name* name : names) unknown_.insert(name->name);
  return true;
}

bool Inference::toldComment(const ast::Unary& unary, Span span) {
  if (span.begin != formBegin_ || unary.op == "@") return false;
  const ast::Exp* text = unary.operand.get();
  if (unary.op == "-") {
    const auto* second = std::get_if<ast::Unary>(&text->node);
    if (!second || second->op != "-") return false;
    text = second->operand.get();
  }
  bool overLineEnd = false;
  const std::vector<const ast::Exp*> parts = partsOfCall(*text, overLineEnd);
  size_t unknown = 0;
  for (const ast::Exp* part : parts) {
    const auto* name = std::get_if<ast::Name>(&part->node);
    unknown += name && !isKnown(name->name) ? 1 : 0;
  }
  const auto* first = std::get_if<ast::Name>(&parts.back()->node);
  if (parts.size() < 2 || !first || isKnown(first->name) || (unknown < 2 && !overLineEnd)) return false;
  report("K0201", parts.back()->span, "`" + first->name + "` is not defined",
         unknown < 2
             ? "a comment stands between two %; what follows a value is its argument, also on the next line"
             : "a comment stands between two %");
  return true;
}

/// The sequence of a binding of an apply-to-each. A condition behind it is told.
ExpPtr Inference::inferSource(const ast::Exp& source, const std::vector<BoundName>& variables) {
  if (const auto* pair = std::get_if<ast::Pair>(&source.node)) {
    const bool condition = std::any_of(variables.begin(), variables.end(), [&](const BoundName& variable) {
      return mentions(*pair->second, variable.name) && !isKnown(variable.name);
    });
    if (condition) {
      report("K0306", source.span, "an apply-to-each runs over a sequence, but this is a tuple", kFilter);
      return infer(*pair->first);
    }
  }
  constexpr std::array kWords = {"where", "when", "with", "such", "provided"};
  for (const ast::Exp* rest = &source; rest;) {
    if (const auto* binary = std::get_if<ast::Binary>(&rest->node)) {
      rest = binary->left.get();
    } else if (const auto* apply = std::get_if<ast::Apply>(&rest->node)) {
      const auto* name = std::get_if<ast::Name>(&apply->argument->node);
      if (name && isOneOf(name->name, kWords) && !isKnown(name->name)) {
        report("K0201", apply->argument->span, "`" + name->name + "` is not defined", kFilter);
        return infer(*apply->function);
      }
      rest = apply->function.get();
    } else {
      rest = nullptr;
    }
  }
  return infer(source);
}

/// What was meant by a function where a condition should be: `x => 3`.
const char* Inference::adviceOnCondition(const ast::Exp& condition) {
  return std::holds_alternative<ast::Lambda>(condition.node)
             ? "`=>` makes a function; greater or equal is written >="
             : "";
}

std::string Inference::adviceOnCalled(const typed::Exp& function, const typed::Exp& argument, Span call) {
  const Type* type = resolve(function.type);
  const auto* literal = std::get_if<typed::Literal>(&function.node);
  if (literal && isFloat(literal->value.type) && argument.span.begin == function.span.end)
    return "a number has one point; a range of integers is [start:end]";
  if (literal && literal->value.type == ScalarType::Bool)
    return literal->value.isTrue() ? "`t` is the constant true" : "`f` is the constant false";
  const auto* global = std::get_if<typed::Global>(&function.node);
  const auto* local = std::get_if<typed::Local>(&function.node);
  const std::string name = global ? global->cell->name : local ? local->variable->name : "";
  // Behind a name and a blank it would be a list without its commas.
  const Type* given = resolve(argument.type);
  const bool inParentheses = call.end > argument.span.end;
  if (!name.empty() && inParentheses && type->kind == TypeKind::Sequence && given->kind == TypeKind::Scalar &&
      isInt(given->scalar))
    return fmt::format("an element of the sequence is {}[INDEX]", name);
  if (global && !global->cell->fromLibrary && !fromLibrary_) {
    const Cell* hidden = environment_.lookup(name, true);
    if (hidden && resolve(hidden->scheme.type)->kind == TypeKind::Function)
      return fmt::format("the program has bound `{}`, and so hidden the function of this name", name);
  }
  return "two values side by side are a call; between elements goes a comma, behind a form a `;`";
}

}  // namespace kelpie

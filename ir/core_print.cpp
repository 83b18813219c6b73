#include "ir/core_print.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "ir/literal.h"

namespace kelpie::core {
namespace {

constexpr std::array<std::string_view, 29> kPrimNames = {
    "scalar",      "checked",     "convert",    "check",        "length",      "index",
    "range",       "distribute",  "literal",    "reduce",       "scan",        "pack",
    "append",      "flatten",     "partition",  "zip",          "project",     "slice",
    "last_writer", "grade",       "random_int", "random_float", "random_seed", "print",
    "raise",       "start_timer", "stop_timer", "extern",       "unsupported"};
static_assert(static_cast<size_t>(PrimOp::Unsupported) + 1 == kPrimNames.size());

constexpr int64_t kShownElements = 64;  ///< of a constant; longer ones end in "..."

std::string columnText(const Column& column, int64_t index);

/// One row of a sequence's elements: a bare value, or (a, b) for several components.
std::string rowText(const std::vector<Column>& columns, int64_t index) {
  if (columns.size() == 1) return columnText(columns[0], index);
  std::string text;
  for (const Column& column : columns) text += (text.empty() ? "" : ", ") + columnText(column, index);
  return "(" + text + ")";
}

std::string columnText(const Column& column, int64_t index) {
  if (column.type.isScalar()) return literalText(column.at(index));
  const int64_t begin = column.offsets[static_cast<size_t>(index)];
  const int64_t end = column.offsets[static_cast<size_t>(index) + 1];
  const int64_t shown = std::min(end - begin, kShownElements);
  if (column.elements.size() == 1 && column.elements[0].type == CoreType(ScalarType::Char)) {
    std::string bytes;
    for (int64_t k = begin; k < begin + shown; ++k) bytes += static_cast<char>(column.elements[0].at(k).i);
    return quotedText(bytes) + (shown < end - begin ? "..." : "");
  }
  std::string text;
  for (int64_t k = begin; k < begin + shown; ++k)
    text += (k == begin ? "" : ", ") + rowText(column.elements, k);
  if (shown < end - begin) text += fmt::format(", ... {} in all", end - begin);
  return "[" + text + "]";
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  void program() {
    for (const Global& global : program_.globals)
      line(fmt::format("global {} = {}", global.cell, bindings(global.vars)));
    for (const Function& f : program_.functions) function(f);
    line("entry -> " + kelpie::toString(program_.entry->type));
    block(program_.entry);
  }

  void function(const Function& f) {
    for (const Var& parameter : f.parameters) note(parameter);
    line(fmt::format("{}function {}({}) -> {}{}", f.fromLibrary ? "library " : "", f.name,
                     bindings(f.parameters), kelpie::toString(f.result), f.body ? "" : " undefined"));
    if (f.body) block(f.body);
  }

  void exp(const ExpPtr& e) {
    ExpPtr rest = e;
    while (const auto* let = std::get_if<Let>(&rest->node)) {
      const std::string head = "let " + bindings(let->vars) + " =";
      if (isCompound(*let->rhs)) {
        line(head);
        block(let->rhs);
      } else {
        line(head + " " + simple(*let->rhs));
      }
      rest = let->body;
    }
    if (isCompound(*rest))
      compound(*rest);
    else
      line(simple(*rest));
  }

  std::string take() { return std::move(text_); }

 private:
  static bool isCompound(const Exp& e) {
    return std::holds_alternative<Let>(e.node) || std::holds_alternative<If>(e.node) ||
           std::holds_alternative<Each>(e.node) || std::holds_alternative<Invariant>(e.node);
  }

  void line(const std::string& words) { text_ += std::string(indent_, ' ') + words + "\n"; }

  void block(const ExpPtr& e) {
    indent_ += 2;
    exp(e);
    indent_ -= 2;
  }

  void compound(const Exp& e) {
    if (const auto* conditional = std::get_if<If>(&e.node)) {
      line("if " + atom(conditional->condition));
      block(conditional->thenBranch);
      line("else");
      block(conditional->elseBranch);
    } else if (const auto* each = std::get_if<Each>(&e.node)) {
      std::string sources;
      for (const Each::Binding& binding : each->bindings) {
        const std::string vars = bindings(binding.vars);
        sources += (sources.empty() ? "" : "; ") + fmt::format("({}) in {}", vars, atom(binding.sequence));
      }
      line(std::string(each->serial ? "serial each " : "each ") + sources);
      block(each->body);
    } else {
      line("invariant");
      block(std::get<Invariant>(e.node).body);
    }
  }

  std::string simple(const Exp& e) {
    if (const auto* values = std::get_if<Values>(&e.node)) return "(" + atoms(values->atoms, ", ") + ")";
    if (const auto* call = std::get_if<Call>(&e.node)) {
      const bool known = call->function < program_.functions.size();
      const std::string name =
          known ? program_.functions[call->function].name : fmt::format("#{}", call->function);
      return fmt::format("call {}({})", name, atoms(call->arguments, ", "));
    }
    if (const auto* constant = std::get_if<Constant>(&e.node))
      return "constant " + rowText(constant->columns, 0);
    const auto& prim = std::get<Prim>(e.node);
    std::string words(toString(prim.op));
    switch (prim.op) {
      case PrimOp::Scalar:
        words = kelpie::toString(prim.scalarOp);
        break;
      case PrimOp::CheckedScalar:
        words += fmt::format(" {}", kelpie::toString(prim.scalarOp));
        break;
      case PrimOp::Reduce:
      case PrimOp::Scan:
        words += fmt::format(" {}", kelpie::toString(prim.reduceOp));
        break;
      case PrimOp::Literal:
        words += fmt::format(" {}", prim.count);
        break;
      case PrimOp::Project:
        words += fmt::format(" {}..{}", prim.first, prim.first + prim.count);
        break;
      case PrimOp::Convert:
        words += " to " + kelpie::toString(e.type);
        break;
      default:
        break;
    }
    if (!prim.text.empty()) words += " " + quotedText(prim.text);
    return prim.arguments.empty() ? words : words + " " + atoms(prim.arguments, " ");
  }

  std::string atom(const Atom& a) const {
    if (a.isConstant()) return literalText(a.constant());
    const auto at = names_.find(a.var());
    return fmt::format("{}.{}", at == names_.end() ? "" : at->second, a.var());
  }

  std::string atoms(const std::vector<Atom>& list, std::string_view separator) const {
    std::string words;
    for (const Atom& a : list) words += (words.empty() ? "" : std::string(separator)) + atom(a);
    return words;
  }

  void note(const Var& var) { names_[var.id] = var.name; }

  std::string bindings(const std::vector<Var>& vars) {
    std::string words;
    for (const Var& var : vars) {
      note(var);
      words += (words.empty() ? "" : ", ") +
               fmt::format("{}.{}: {}", var.name, var.id, kelpie::toString(var.type));
    }
    return words;
  }

  const Program& program_;
  std::unordered_map<VarId, std::string> names_;
  std::string text_;
  size_t indent_ = 0;
};

}  // namespace

std::string_view toString(PrimOp op) { return kPrimNames[static_cast<size_t>(op)]; }

std::string toString(const Program& program) {
  Printer printer(program);
  printer.program();
  return printer.take();
}

std::string toString(const Function& function, const Program& program) {
  Printer printer(program);
  printer.function(function);
  return printer.take();
}

std::string toString(const ExpPtr& exp, const Program& program) {
  Printer printer(program);
  printer.exp(exp);
  return printer.take();
}

}  // namespace kelpie::core

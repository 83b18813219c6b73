#include "frontend/ast_print.h"

namespace kelpie {

using namespace ast;  // NOLINT(google-build-using-namespace): this file is about nothing else

namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

std::string quoted(const std::string& bytes) {
  std::string out = "\"";
  for (const char c : bytes) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string separated(const auto& parts, const char* separator, auto print) {
  std::string out;
  for (const auto& part : parts) {
    if (!out.empty()) out += separator;
    out += print(part);
  }
  return out;
}

std::string toString(const std::vector<ClassBinding>& context) {
  if (context.empty()) return "";
  return " :: (" +
         separated(context, "; ", [](const ClassBinding& b) { return b.variable + " in " + b.typeClass; }) +
         ")";
}

/// The components of a right-nested pair without its parentheses.
std::string openPair(const Exp& exp) {
  if (const auto* pair = std::get_if<ast::Pair>(&exp.node))
    return kelpie::toString(*pair->first) + ", " + openPair(*pair->second);
  return kelpie::toString(exp);
}

std::string binding(const EachBinding& b) {
  return kelpie::toString(*b.pattern) + " in " + kelpie::toString(*b.source);
}

std::string toString(const ApplyToEach& each) {
  std::string out = each.serial ? "{* " : "{";
  if (each.body) out += kelpie::toString(*each.body) + " : ";
  out += separated(each.bindings, "; ", binding);
  if (each.filter) out += " | " + kelpie::toString(*each.filter);
  return out + "}";
}

std::string parameterList(const FunctionDefinition& function) {
  std::string out;
  const Pattern* rest = function.parameter.get();
  for (bool more = true; more;) {
    const auto* pair = std::get_if<PairPattern>(&rest->node);
    const Pattern& first = pair ? *pair->first : *rest;
    out += (out.empty() ? "" : ", ") + kelpie::toString(first);
    if (const auto* name = std::get_if<NamePattern>(&first.node))
      for (const Default& value : function.defaults)
        if (value.name == name->name) out += " := " + kelpie::toString(*value.value);
    more = pair != nullptr;
    if (more) rest = pair->second.get();
  }
  return "(" + out + ")";
}

}  // namespace

std::string toString(const Pattern& pattern) {
  return std::visit(
      Overloaded{
          [](const NamePattern& p) { return p.name; },
          [](const PairPattern& p) { return "(" + toString(*p.first) + ", " + toString(*p.second) + ")"; },
          [](const RecordPattern& p) { return p.name + "(" + toString(*p.field) + ")"; },
      },
      pattern.node);
}

std::string toString(const TypeExp& type) {
  return std::visit(
      Overloaded{
          [](const NameType& t) {
            if (t.arguments.empty()) return t.name;
            return t.name + "(" +
                   separated(t.arguments, ", ", [](const TypeExpPtr& a) { return toString(*a); }) + ")";
          },
          [](const SequenceType& t) { return "[" + toString(*t.element) + "]"; },
          [](const PairType& t) { return "(" + toString(*t.first) + ", " + toString(*t.second) + ")"; },
          [](const FunctionType& t) {
            return "(" + toString(*t.argument) + " -> " + toString(*t.result) + ")";
          },
      },
      type.node);
}

std::string toString(const Exp& exp) {
  return std::visit(
      Overloaded{
          [](const IntLiteral& e) { return e.digits; },
          [](const FloatLiteral& e) { return e.text; },
          [](const BoolLiteral& e) { return std::string(e.value ? "t" : "f"); },
          [](const CharLiteral& e) {
            return std::string{'`', static_cast<char>(e.value)};
          },
          [](const StringLiteral& e) { return quoted(e.bytes); },
          [](const Name& e) { return e.name; },
          [&](const ast::Pair&) { return "(" + openPair(exp) + ")"; },
          [](const Unary& e) { return "(" + e.op + toString(*e.operand) + ")"; },
          [](const Binary& e) {
            return "(" + toString(*e.left) + " " + e.op + " " + toString(*e.right) + ")";
          },
          [](const Apply& e) { return toString(*e.function) + "(" + openPair(*e.argument) + ")"; },
          [](const Subscript& e) { return toString(*e.sequence) + "[" + toString(*e.index) + "]"; },
          [](const SequenceLiteral& e) {
            return "[" + separated(e.elements, ", ", [](const ExpPtr& part) { return toString(*part); }) +
                   "]";
          },
          [](const EmptySequence& e) { return "([] " + toString(*e.element) + ")"; },
          [](const Range& e) {
            return "[" + toString(*e.start) + ":" + toString(*e.end) +
                   (e.stride ? ":" + toString(*e.stride) : "") + "]";
          },
          [](const ApplyToEach& e) { return toString(e); },
          [](const If& e) {
            return "(if " + toString(*e.condition) + " then " + toString(*e.thenBranch) + " else " +
                   toString(*e.elseBranch) + ")";
          },
          [](const Let& e) {
            return "(let " +
                   separated(e.bindings, "; ",
                             [](const LetBinding& b) {
                               return toString(*b.pattern) + " = " + toString(*b.value);
                             }) +
                   " in " + toString(*e.body) + ")";
          },
          [](const Lambda& e) { return "(" + toString(*e.parameter) + " => " + toString(*e.body) + ")"; },
          [](const NamedArgument& e) { return e.name + " := " + toString(*e.value); },
          [](const Time& e) { return "time(" + openPair(*e.body) + ")"; },
      },
      exp.node);
}

std::string toString(const Form& form) {
  return std::visit(Overloaded{
                        [](const FunctionDefinition& f) {
                          std::string out = "function " + f.name + parameterList(f);
                          if (f.signature)
                            out += " : " + toString(*f.signature->type) + toString(f.signature->context);
                          if (!f.documentation.empty()) out += "\n  " + quoted(f.documentation);
                          if (f.body) out += " =\n  " + toString(*f.body);
                          return out;
                        },
                        [](const DatatypeDefinition& d) {
                          return "datatype " + d.name + " " + toString(*d.field) + toString(d.context);
                        },
                        [](const Binding& b) {
                          return toString(*b.pattern) + (b.toFile ? " |= " : " = ") + toString(*b.value);
                        },
                        [](const Command& c) {
                          std::string out = c.word;
                          for (const std::string& argument : c.arguments) out += " " + argument;
                          if (c.expression) out += "(" + openPair(*c.expression) + ")";
                          return out;
                        },
                        [](const ExpPtr& e) { return toString(*e); },
                    },
                    form.node) +
         ";";
}

}  // namespace kelpie

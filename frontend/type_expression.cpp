#include "frontend/type_expression.h"

#include <cctype>
#include <string>

#include "frontend/foreign_words.h"
#include "frontend/overloaded.h"

namespace kelpie {

namespace {

/// Recursive descent over one line of text; the grammar of types in language.md 2.1.
class SignatureParser {
 public:
  explicit SignatureParser(std::string_view text) : text_(text) {}

  ast::Signature signature() {
    ast::Signature result{type(), {}};
    if (accept("::")) {
      expect("(");
      do {
        std::string variable = name();
        if (name() != "in") fail();
        result.context.push_back({variable, name(), {}});
      } while (accept(";"));
      expect(")");
    }
    if (skip() != text_.size()) fail();
    return result;
  }

 private:
  ast::TypeExpPtr make(decltype(ast::TypeExp::node) node) {
    return std::make_shared<ast::TypeExp>(ast::TypeExp{std::move(node), {}});
  }
  ast::TypeExpPtr type() {
    ast::TypeExpPtr first = function();
    return accept(",") ? make(ast::PairType{first, type()}) : first;
  }
  ast::TypeExpPtr function() {
    ast::TypeExpPtr argument = primary();
    return accept("->") ? make(ast::FunctionType{argument, function()}) : argument;
  }
  ast::TypeExpPtr primary() {
    if (accept("[")) {
      ast::TypeExpPtr element = primary();
      expect("]");
      return make(ast::SequenceType{element});
    }
    if (accept("(")) {
      ast::TypeExpPtr inner = type();
      expect(")");
      return inner;
    }
    ast::NameType result{name(), {}};
    if (accept("(")) {
      do result.arguments.push_back(function());
      while (accept(","));
      expect(")");
    }
    return make(std::move(result));
  }
  std::string name() {
    size_t begin = skip();
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_')) {
      ++position_;
    }
    if (begin == position_) fail();
    return std::string(text_.substr(begin, position_ - begin));
  }
  size_t skip() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    return position_;
  }
  bool accept(std::string_view token) {
    if (text_.substr(skip(), token.size()) != token) return false;
    position_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail();
  }
  [[noreturn]] void fail() const {
    throw InternalError("bad signature in the table of primitives: " + std::string(text_));
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

ast::Signature parseSignature(std::string_view text) { return SignatureParser(text).signature(); }

void TypeReader::declare(const std::vector<ast::ClassBinding>& context) {
  for (const ast::ClassBinding& binding : context) {
    std::optional<TypeClass> typeClass = classFromName(binding.typeClass);
    if (!typeClass) {
      diagnostics_.push_back({.id = "K0205",
                              .span = binding.span,
                              .message = "unknown type class `" + binding.typeClass + "`",
                              .hint = "the type classes are any, number, ordinal, logical and scalar",
                              .notes = {}});
    }
    Type* variable =
        environment_.types().variable(typeClass.value_or(kAny), "the declared context", binding.span);
    if (!variables_.emplace(binding.variable, variable).second) {
      diagnostics_.push_back({.id = "K0206",
                              .span = binding.span,
                              .message = "type variable `" + binding.variable + "` is declared twice",
                              .hint = {},
                              .notes = {}});
      continue;
    }
    order_.push_back(variable);
  }
}

Type* TypeReader::read(const ast::TypeExp& expression) {
  TypeStore& types = environment_.types();
  return std::visit(Overloaded{
                        [&](const ast::NameType& name) { return readName(name, expression.span); },
                        [&](const ast::SequenceType& sequence) -> Type* {
                          Type* element = read(*sequence.element);
                          return element ? types.sequence(element) : nullptr;
                        },
                        [&](const ast::PairType& pair) -> Type* {
                          Type* first = read(*pair.first);
                          Type* second = read(*pair.second);
                          return first && second ? types.pair(first, second) : nullptr;
                        },
                        [&](const ast::FunctionType& function) -> Type* {
                          Type* argument = read(*function.argument);
                          Type* result = read(*function.result);
                          return argument && result ? types.function(argument, result, types.variable())
                                                    : nullptr;
                        },
                    },
                    expression.node);
}

Type* TypeReader::readName(const ast::NameType& name, Span span) {
  TypeStore& types = environment_.types();
  auto report = [&](std::string id, std::string message, std::string hint = {}) -> Type* {
    diagnostics_.push_back({.id = std::move(id),
                            .span = span,
                            .message = std::move(message),
                            .hint = std::move(hint),
                            .notes = {}});
    return nullptr;
  };
  auto variable = variables_.find(name.name);
  if (variable != variables_.end()) return variable->second;
  if (const Datatype* datatype = environment_.lookupDatatype(name.name, fromLibrary_)) {
    std::vector<Type*> arguments;
    for (const ast::TypeExpPtr& argument : name.arguments) {
      Type* type = read(*argument);
      if (!type) return nullptr;
      // `table(a,b)` may arrive as one pair: a record of several parameters takes it apart.
      while (argument == name.arguments.back() && arguments.size() + 1 < datatype->declared &&
             resolve(type)->kind == TypeKind::Pair) {
        arguments.push_back(resolve(type)->arguments[0]);
        type = resolve(type)->arguments[1];
      }
      arguments.push_back(type);
    }
    if (arguments.size() != datatype->declared) {
      return report("K0207",
                    "the record type `" + name.name + "` has " + std::to_string(datatype->declared) +
                        (datatype->declared == 1 ? " type parameter, not " : " type parameters, not ") +
                        std::to_string(arguments.size()));
    }
    for (size_t i = 0; i < datatype->parameters.size(); ++i) {
      const Type* parameter = resolve(datatype->parameters[i]);
      if (i >= arguments.size()) {
        arguments.push_back(types.variable());
        continue;
      }
      Type* instance = types.variable(parameter->typeClass, "the record type `" + name.name + "`", span);
      if (types.unify(instance, arguments[i])) {
        return report("K0302", "`" + printType(arguments[i], types.widths()) +
                                   "` cannot be a parameter of `" + name.name +
                                   "`, which needs a type of class " +
                                   std::string(className(parameter->typeClass)));
      }
    }
    return types.record(datatype, std::move(arguments));
  }
  if (name.arguments.empty()) {
    if (name.name == "int") return types.intType();
    if (name.name == "float") return types.floatType();
    if (auto scalar = scalarTypeFromString(name.name)) return types.scalar(*scalar);
  }
  if (!reported_.insert(name.name).second) return nullptr;
  if (name.name == defined_)
    return report("K0204", "the record type `" + name.name + "` cannot be a part of itself",
                  "a tree is kept in sequences, as the number of each node's parent or children");
  if (const auto definition = environment_.failedDefinition(name.name)) {
    report("K0204", "the type `" + name.name + "` is not known, because its definition has a mistake", "");
    diagnostics_.back().notes = {{*definition, "this is the definition"}};
    diagnostics_.back().followsAnother = true;
    diagnostics_.back().shown = environment_.tellFailed(name.name);
    return nullptr;
  }
  if (const auto later = environment_.announcedType(name.name)) {
    report("K0204", "the type `" + name.name + "` is not defined yet",
           "forms are read in their order: a record type is defined before it is used");
    diagnostics_.back().notes = {{*later, "it is defined here, further down"}};
    return nullptr;
  }
  if (classFromName(name.name))
    return report("K0204", "`" + name.name + "` is a class of types, and no type",
                  "a type variable of this class is declared in the context, as in: a -> a :: (a in " +
                      name.name + ")");
  if (const std::string known = foreignTypeAdvice(name.name); !known.empty())
    return report("K0204", "unknown type `" + name.name + "`", known);
  if (const std::vector<std::string> similar = environment_.similarTypes(name.name); !similar.empty())
    return report("K0204", "unknown type `" + name.name + "`", "did you mean " + oneOf(similar) + "?");
  if (inExpression_)
    return report(
        "K0204", "unknown type `" + name.name + "`",
        "the type variables of a signature are not known in the body; take(s, 0) is an empty sequence of the "
        "type of s");
  return report("K0204", "unknown type `" + name.name + "`",
                "type variables are declared in the context, for example `:: (" + name.name + " in any)`");
}

}  // namespace kelpie

#include "frontend/nesl_type.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kelpie {

namespace {

constexpr std::array<std::pair<std::string_view, TypeClass>, 5> kClasses = {{
    {"any", kAny},
    {"number", kNumber},
    {"ordinal", kOrdinal},
    {"logical", kLogical},
    {"scalar", kScalar},
}};

bool sameUpToNames(const Type* left, const Type* right,
                   std::vector<std::pair<const Type*, const Type*>>& variables) {
  left = resolve(left);
  right = resolve(right);
  if (left->kind != right->kind) return false;
  if (left->kind == TypeKind::Variable) {
    if (left->typeClass != right->typeClass) return false;
    for (auto& [a, b] : variables) {
      if (a == left || b == right) return a == left && b == right;
    }
    variables.emplace_back(left, right);
    return true;
  }
  if (left->scalar != right->scalar || left->datatype != right->datatype || left->cell != right->cell ||
      left->lambda != right->lambda || left->arguments.size() != right->arguments.size()) {
    return false;
  }
  for (size_t i = 0; i < left->arguments.size(); ++i) {
    if (!sameUpToNames(left->arguments[i], right->arguments[i], variables)) return false;
  }
  return true;
}

}  // namespace

std::string_view className(TypeClass typeClass) {
  for (auto& [name, members] : kClasses) {
    if (members == typeClass) return name;
  }
  return "int";
}

std::optional<TypeClass> classFromName(std::string_view name) {
  for (auto& [known, members] : kClasses) {
    if (known == name) return members;
  }
  return std::nullopt;
}

Type* resolve(Type* type) {
  while (type->link) type = type->link;
  return type;
}
const Type* resolve(const Type* type) {
  while (type->link) type = type->link;
  return type;
}

Type* TypeStore::add(TypeKind kind, std::vector<Type*> arguments) {
  Type& type = types_.emplace_back();
  type.kind = kind;
  type.arguments = std::move(arguments);
  return &type;
}

Type* TypeStore::variable(TypeClass typeClass, std::string reason, Span span) {
  Type* type = add(TypeKind::Variable, {});
  type->typeClass = typeClass;
  type->reason = std::move(reason);
  type->reasonSpan = span;
  return type;
}

Type* TypeStore::scalar(ScalarType scalar) {
  Type*& type = scalars_[static_cast<size_t>(scalar)];
  if (!type) {
    type = add(TypeKind::Scalar, {});
    type->scalar = scalar;
  }
  return type;
}

Type* TypeStore::pair(Type* first, Type* second) { return add(TypeKind::Pair, {first, second}); }
Type* TypeStore::sequence(Type* element) { return add(TypeKind::Sequence, {element}); }
Type* TypeStore::record(const Datatype* datatype, std::vector<Type*> arguments) {
  Type* type = add(TypeKind::Record, std::move(arguments));
  type->datatype = datatype;
  return type;
}
Type* TypeStore::function(Type* parameter, Type* result, Type* identity) {
  return add(TypeKind::Function, {parameter, result, identity});
}
Type* TypeStore::definition(const Cell* cell) {
  Type* type = add(TypeKind::Definition, {});
  type->cell = cell;
  return type;
}
Type* TypeStore::lambda(const typed::Lambda* lambda, std::vector<Type*> captures) {
  Type* type = add(TypeKind::Lambda, std::move(captures));
  type->lambda = lambda;
  return type;
}

void TypeStore::remember(Type* variable) {
  trail_.push_back({variable, variable->link, variable->typeClass, variable->reason, variable->reasonSpan,
                    variable->origin});
}

std::optional<Conflict> TypeStore::unify(Type* left, Type* right) {
  trail_.clear();
  Conflict conflict;
  if (unifyInto(left, right, conflict)) return std::nullopt;
  for (auto change = trail_.rbegin(); change != trail_.rend(); ++change) {
    change->variable->link = change->link;
    change->variable->typeClass = change->typeClass;
    change->variable->reason = std::move(change->reason);
    change->variable->reasonSpan = change->reasonSpan;
    change->variable->origin = change->origin;
  }
  return conflict;
}

bool TypeStore::unifyInto(Type* left, Type* right, Conflict& conflict) {
  left = resolve(left);
  right = resolve(right);
  if (left == right) return true;
  if (left->kind == TypeKind::Variable) return bind(left, right, conflict);
  if (right->kind == TypeKind::Variable) return bind(right, left, conflict);
  if (left->kind != right->kind || left->scalar != right->scalar || left->datatype != right->datatype ||
      left->cell != right->cell || left->lambda != right->lambda) {
    bool identity = left->kind == TypeKind::Definition || left->kind == TypeKind::Lambda;
    conflict = {identity ? Conflict::Identity : Conflict::Shape, left, right, {}};
    return false;
  }
  // Identities first would name functions before their types; the plain types are the better message.
  for (size_t i = 0; i < left->arguments.size(); ++i) {
    if (!unifyInto(left->arguments[i], right->arguments[i], conflict)) return false;
  }
  return true;
}

bool TypeStore::bind(Type* variable, Type* type, Conflict& conflict) {
  TypeClass typeClass = variable->typeClass;
  auto demand = [](const Type* of) { return Demand{of->typeClass, of->reason, of->reasonSpan, of->origin}; };
  if (type->kind == TypeKind::Variable) {
    if (!narrow(type, typeClass, variable)) {
      conflict = {Conflict::Class, variable, type, {demand(variable), demand(type)}};
      return false;
    }
  } else {
    bool member = type->kind == TypeKind::Scalar ? (typeClass & bitOf(type->scalar)) != 0
                                                 : (typeClass & kStructured) != 0;
    if (!member) {
      conflict = {Conflict::Class, variable, type, {demand(variable)}};
      return false;
    }
    size_t parts = kMaximalTypeSize;
    const bool infinite = occurs(variable, type, parts);
    if (infinite || parts == 0) {
      conflict = {infinite ? Conflict::Infinite : Conflict::TooLarge, variable, type, {}};
      return false;
    }
  }
  remember(variable);
  variable->link = resolve(type);
  return true;
}

// Restricts an unbound variable to the types that are also in `typeClass`. When only ints are left it is int.
bool TypeStore::narrow(Type* variable, TypeClass typeClass, const Type* source) {
  TypeClass both = variable->typeClass & typeClass;
  if (both == variable->typeClass) return true;
  if (both == 0) return false;
  remember(variable);
  if ((both & ~kIntClass) == 0) {
    variable->link = intType();
    return true;
  }
  variable->typeClass = both;
  variable->reason = source->reason;
  variable->reasonSpan = source->reasonSpan;
  variable->origin = source->origin;
  return true;
}

bool TypeStore::occurs(const Type* variable, const Type* type, size_t& parts) const {
  type = resolve(type);
  if (type == variable) return true;
  if (parts == 0 || --parts == 0) return false;
  return std::any_of(type->arguments.begin(), type->arguments.end(),
                     [&](const Type* argument) { return occurs(variable, argument, parts); });
}

Type* TypeStore::replace(Type* type, const std::unordered_map<const Type*, Type*>& replacement) {
  type = resolve(type);
  if (type->kind == TypeKind::Variable) {
    auto found = replacement.find(type);
    return found == replacement.end() ? type : found->second;
  }
  bool changed = false;
  std::vector<Type*> arguments;
  arguments.reserve(type->arguments.size());
  for (Type* argument : type->arguments) {
    arguments.push_back(replace(argument, replacement));
    changed |= arguments.back() != argument;
  }
  if (!changed) return type;
  Type* copy = add(type->kind, std::move(arguments));
  copy->datatype = type->datatype;
  copy->lambda = type->lambda;
  return copy;
}

Type* TypeStore::instantiate(const Scheme& scheme, const std::string& reason, Span span, bool explained) {
  if (scheme.variables.empty()) return scheme.type;
  std::unordered_map<const Type*, Type*> replacement;
  for (const Type* quantified : scheme.variables) {
    Type* fresh = variable(quantified->typeClass, reason, span);
    if (explained) fresh->origin = quantified;
    replacement[quantified] = fresh;
  }
  return replace(scheme.type, replacement);
}

template <class T>
void collectVariables(T* type, std::vector<T*>& variables) {
  type = resolve(type);
  if (type->kind == TypeKind::Variable) {
    if (std::find(variables.begin(), variables.end(), type) == variables.end()) variables.push_back(type);
    return;
  }
  for (T* argument : type->arguments) collectVariables<T>(argument, variables);
}
template void collectVariables<Type>(Type* type, std::vector<Type*>& variables);
template void collectVariables<const Type>(const Type* type, std::vector<const Type*>& variables);

Scheme TypeStore::generalise(Type* type) const {
  Scheme scheme{type, {}};
  collectVariables<const Type>(type, scheme.variables);
  return scheme;
}

namespace {
/// Variables whose types decide what columns a value has.
void collectOfColumns(const Type* type, std::vector<const Type*>& variables) {
  type = resolve(type);
  if (type->kind == TypeKind::Variable) variables.push_back(type);
  const size_t first = type->kind == TypeKind::Function ? 2 : 0;  // its identity
  for (size_t k = first; k < type->arguments.size(); ++k) collectOfColumns(type->arguments[k], variables);
}
}  // namespace

Scheme TypeStore::generaliseValue(Type* type) const {
  Scheme scheme = generalise(type);
  std::vector<const Type*> ofColumns;
  collectOfColumns(type, ofColumns);
  std::erase_if(scheme.variables, [&](const Type* variable) {
    return std::find(ofColumns.begin(), ofColumns.end(), variable) != ofColumns.end();
  });
  return scheme;
}

bool sameScheme(const Scheme& left, const Scheme& right) {
  std::vector<std::pair<const Type*, const Type*>> variables;
  return sameUpToNames(left.type, right.type, variables);
}

// ---- printing ---------------------------------------------------------------------------------------------

std::string TypePrinter::variableName(const Type* variable) {
  auto found = std::find(variables_.begin(), variables_.end(), variable);
  size_t index = static_cast<size_t>(found - variables_.begin());
  if (found == variables_.end()) variables_.push_back(variable);
  if (index < 5) return std::string(1, static_cast<char>('a' + index));
  return "a" + std::to_string(index - 5);
}

void TypePrinter::append(std::string& out, const Type* type, bool parenthesise) {
  type = resolve(type);
  switch (type->kind) {
    case TypeKind::Variable:
      out += variableName(type);
      return;
    case TypeKind::Scalar:
      if (type->scalar == widths_.intType) {
        out += "int";
      } else if (type->scalar == widths_.floatType) {
        out += "float";
      } else {
        out += toString(type->scalar);
      }
      return;
    case TypeKind::Pair:
      if (parenthesise) out += '(';
      append(out, type->arguments[0], true);
      out += ", ";
      append(out, type->arguments[1], false);
      if (parenthesise) out += ')';
      return;
    case TypeKind::Sequence:
      out += '[';
      append(out, type->arguments[0], true);
      out += ']';
      return;
    case TypeKind::Record:
      out += type->datatype->name;
      for (size_t i = 0; i < type->arguments.size(); ++i) {
        if (i >= type->datatype->declared) {
          collectVariables<const Type>(type->arguments[i], hidden_);
          continue;
        }
        out += i == 0 ? "(" : ", ";
        append(out, type->arguments[i], true);
      }
      if (type->datatype->declared > 0) out += ')';
      return;
    case TypeKind::Function: {
      bool nested = resolve(type->arguments[0])->kind == TypeKind::Function;
      if (nested) out += '(';
      append(out, type->arguments[0], true);
      if (nested) out += ')';
      out += " -> ";
      append(out, type->arguments[1], true);
      const Type* identity = resolve(type->arguments[2]);
      if (identity->kind == TypeKind::Variable) collectVariables<const Type>(identity, hidden_);
      return;
    }
    case TypeKind::Definition:
    case TypeKind::Lambda:
      return;
  }
}

std::string TypePrinter::text(const Type* type) {
  std::string out;
  append(out, type, false);
  return out;
}

std::string TypePrinter::context() const {
  TypePrinter names(widths_);
  std::string out;
  auto add = [&](const Type* variable) {
    out += out.empty() ? " :: (" : "; ";
    out += names.variableName(variable);
    out += " in ";
    out += className(variable->typeClass);
  };
  for (const Type* variable : variables_) add(variable);
  for (const Type* variable : hidden_) {
    if (std::find(variables_.begin(), variables_.end(), variable) == variables_.end()) add(variable);
  }
  return out.empty() ? out : out + ")";
}

std::string printType(const Type* type, Widths widths) {
  TypePrinter printer(widths);
  std::string text = printer.text(type);
  return text + printer.context();
}

}  // namespace kelpie

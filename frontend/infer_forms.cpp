// Inference of top-level forms: definitions, datatypes, bindings and expressions.
#include <utility>

#include "frontend/infer.h"
#include "frontend/type_expression.h"

namespace kelpie {

using typed::ExpPtr;

ExpPtr Inference::expression(const ast::ExpPtr& expression) {
  size_t before = diagnostics_.size();
  formBegin_ = expression->span.begin;
  ExpPtr result = infer(*expression);
  return diagnostics_.size() == before ? std::move(result) : nullptr;
}

std::optional<Inference::BoundExpression> Inference::binding(const ast::Binding& binding) {
  size_t before = diagnostics_.size();
  if (toldForgottenFunction(*binding.pattern, *binding.value, false)) return std::nullopt;
  BoundExpression result;
  result.value = infer(*binding.value);
  result.pattern = pattern(*binding.pattern, result.variables);
  if (diagnostics_.size() != before) return std::nullopt;
  if (auto conflict = types_.unify(result.value->type, result.pattern->type)) {
    reportConflict("K0307", binding.pattern->span,
                   "the pattern does not match the value, which has type " + show(result.value->type),
                   *conflict, {{result.value->span, "this has type " + show(result.value->type)}});
    return std::nullopt;
  }
  return result;
}

Cell* Inference::function(const ast::FunctionDefinition& definition) {
  size_t before = diagnostics_.size();
  Cell& cell = environment_.makeCell(CellKind::Function, definition.name);
  cell.fromLibrary = fromLibrary_;
  cell.span = definition.nameSpan;
  auto function = std::make_shared<typed::Function>();
  Scope scope(*this);
  std::vector<typed::VariablePtr> variables;
  inParameters_ = true;
  function->parameter = pattern(*definition.parameter, variables);
  inParameters_ = false;
  Type* result = types_.variable();
  Type* type = types_.function(function->parameter->type, result, types_.definition(&cell));
  cell.scheme = {type, {}};

  Type* declaredResult = nullptr;
  if (definition.signature) {
    TypeReader reader(environment_, fromLibrary_, diagnostics_);
    reader.declare(definition.signature->context);
    Type* declared = reader.read(*definition.signature->type);
    if (!declared) return nullptr;
    if (declared->kind != TypeKind::Function) {
      report("K0310", definition.signature->type->span, "the signature of a function is a function type");
      return nullptr;
    }
    if (auto conflict = types_.unify(function->parameter->type, declared->arguments[0])) {
      reportConflict("K0310", definition.parameter->span,
                     "the parameter does not match the signature, which says " + show(declared->arguments[0]),
                     *conflict);
    }
    declaredResult = declared->arguments[1];
  }
  if (!definition.body) {
    if (declaredResult) (void)types_.unify(result, declaredResult);
    if (diagnostics_.size() != before) return nullptr;
    cell.scheme = types_.generalise(type);
    return &cell;
  }
  if (!defaults(definition, cell, *function->parameter)) return nullptr;
  bind(variables);
  self_ = &cell;
  // Inside the body the result is what the signature says, so that mistakes show where they are made.
  function->body = infer(*definition.body);
  if (diagnostics_.size() != before) {
    // what the body's type would have to be says nothing now
  } else if (auto conflict = types_.unify(function->body->type, result)) {
    reportConflict("K0309", function->body->span,
                   "the result of `" + definition.name + "` has type " + show(function->body->type) +
                       ", but it is used with type " + show(result),
                   *conflict);
  } else if (declaredResult) {
    if (auto mismatch = types_.unify(function->body->type, declaredResult)) {
      reportConflict("K0309", function->body->span,
                     "the signature of `" + definition.name + "` says the result is " + show(declaredResult) +
                         ", but it has type " + show(function->body->type),
                     *mismatch, {{definition.signature->type->span, "this is the signature"}});
    }
  }
  self_ = nullptr;
  if (diagnostics_.size() != before) return nullptr;
  cell.scheme = types_.generalise(type);
  cell.serial = serial_;
  function->scheme = cell.scheme;
  cell.function = std::move(function);
  return &cell;
}

// Each default becomes a function of an ignored int: it is evaluated at each call that leaves the argument
// out.
bool Inference::defaults(const ast::FunctionDefinition& definition, Cell& cell,
                         const typed::Pattern& parameter) {
  if (definition.defaults.empty()) return true;
  std::vector<const typed::Pattern*> components;
  const typed::Pattern* rest = &parameter;
  for (; rest->parts.size() == 2; rest = rest->parts[1].get()) components.push_back(rest->parts[0].get());
  components.push_back(rest);
  cell.components = components.size();
  size_t before = diagnostics_.size();
  for (const ast::Default& given : definition.defaults) {
    size_t position = 0;
    while (position < components.size() &&
           !(components[position]->variable && components[position]->variable->name == given.name)) {
      ++position;
    }
    if (position == components.size()) {
      report("K0208", given.value->span, "`" + given.name + "` is not a component of the parameter list");
      continue;
    }
    Cell& value = environment_.makeCell(CellKind::Function, definition.name + "." + given.name);
    value.fromLibrary = fromLibrary_;
    value.span = given.value->span;
    auto function = std::make_shared<typed::Function>();
    auto ignored = std::make_shared<typed::Variable>(typed::Variable{"_", types_.intType(), {}});
    function->parameter = std::make_unique<typed::Pattern>(typed::Pattern{ignored, {}, types_.intType()});
    function->body = infer(*given.value);
    if (auto conflict = types_.unify(function->body->type, components[position]->type)) {
      reportConflict("K0309", given.value->span,
                     "the default value has type " + show(function->body->type) + ", but `" + given.name +
                         "` is " + show(components[position]->type),
                     *conflict);
    }
    value.scheme =
        types_.generalise(types_.function(types_.intType(), function->body->type, types_.definition(&value)));
    function->scheme = value.scheme;
    value.function = std::move(function);
    cell.defaults.push_back({position, given.name, &value});
  }
  return diagnostics_.size() == before;
}

Cell* Inference::datatype(const ast::DatatypeDefinition& definition) {
  size_t before = diagnostics_.size();
  TypeReader reader(environment_, fromLibrary_, diagnostics_);
  reader.defines(definition.name);
  reader.declare(definition.context);
  Type* field = reader.read(*definition.field);
  if (!field || diagnostics_.size() != before) return nullptr;
  Datatype& datatype = environment_.makeDatatype(definition.name);
  datatype.span = definition.nameSpan;
  datatype.field = field;
  datatype.parameters = reader.variables();
  datatype.declared = datatype.parameters.size();
  Cell& cell = environment_.makeCell(CellKind::Constructor, definition.name);
  cell.datatype = &datatype;
  cell.fromLibrary = fromLibrary_;
  cell.span = definition.nameSpan;
  // Identities of functions in the field are parameters too, but are not written.
  std::vector<Type*> free;
  collectVariables<Type>(field, free);
  for (Type* variable : free) {
    bool declared = false;
    for (const Type* parameter : datatype.parameters) declared |= resolve(parameter) == variable;
    if (!declared) datatype.parameters.push_back(variable);
  }
  Type* record = types_.record(&datatype, datatype.parameters);
  cell.scheme = types_.generalise(types_.function(field, record, types_.definition(&cell)));
  return &cell;
}

}  // namespace kelpie

#include "frontend/ground_type.h"

#include <algorithm>
#include <utility>

namespace kelpie {

Type* GroundTypes::intern(const Type& type, std::vector<Type*> arguments) {
  const Cell* cell = type.cell ? &type.cell->canonical() : nullptr;
  auto address = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); };
  std::vector<uintptr_t> key = {static_cast<uintptr_t>(type.kind), static_cast<uintptr_t>(type.scalar),
                                address(type.datatype), address(cell), address(type.lambda)};
  for (const Type* argument : arguments) key.push_back(address(argument));
  Type*& known = interned_[std::move(key)];
  if (!known) {
    Type& made = types_.emplace_back();
    made.kind = type.kind;
    made.scalar = type.scalar;
    made.datatype = type.datatype;
    made.cell = cell;
    made.lambda = type.lambda;
    made.arguments = std::move(arguments);
    known = &made;
  }
  return known;
}

Type* GroundTypes::scalar(ScalarType scalar) {
  Type type;
  type.kind = TypeKind::Scalar;
  type.scalar = scalar;
  return intern(type, {});
}
Type* GroundTypes::pair(Type* first, Type* second) {
  Type type;
  type.kind = TypeKind::Pair;
  return intern(type, {first, second});
}
Type* GroundTypes::sequence(Type* element) {
  Type type;
  type.kind = TypeKind::Sequence;
  return intern(type, {element});
}

Type* GroundTypes::of(const Type* type, const Substitution& substitution) {
  type = resolve(type);
  if (type->kind == TypeKind::Variable) {
    auto found = substitution.find(type);
    return found != substitution.end() ? found->second : scalar(widths_.intType);
  }
  std::vector<Type*> arguments;
  arguments.reserve(type->arguments.size());
  for (size_t i = 0; i < type->arguments.size(); ++i) {
    const Type* argument = resolve(type->arguments[i]);
    bool unknownIdentity = type->kind == TypeKind::Function && i == 2 &&
                           argument->kind == TypeKind::Variable && !substitution.contains(argument);
    if (unknownIdentity) {
      Type nothing;
      nothing.kind = TypeKind::Definition;
      arguments.push_back(intern(nothing, {}));
    } else {
      arguments.push_back(of(argument, substitution));
    }
  }
  return intern(*type, std::move(arguments));
}

void GroundTypes::match(const Type* pattern, Type* ground, Substitution& substitution) const {
  pattern = resolve(pattern);
  if (pattern->kind == TypeKind::Variable) {
    substitution.emplace(pattern, ground);
    return;
  }
  for (size_t i = 0; i < pattern->arguments.size() && i < ground->arguments.size(); ++i) {
    match(pattern->arguments[i], ground->arguments[i], substitution);
  }
}

Type* GroundTypes::field(const Type* record) {
  Substitution substitution;
  for (size_t i = 0; i < record->arguments.size(); ++i) {
    substitution.emplace(resolve(record->datatype->parameters[i]), record->arguments[i]);
  }
  return of(record->datatype->field, substitution);
}

/// Number of scalars and sequences, at most one above the limit.
size_t GroundTypes::components(const Type* ground) {
  if (auto found = components_.find(ground); found != components_.end()) return found->second;
  size_t count = ground->kind == TypeKind::Scalar || ground->kind == TypeKind::Sequence ? 1 : 0;
  const auto add = [&](const Type* part) {
    count = std::min(count + components(part), kMaximalComponents + 1);
  };
  if (ground->kind == TypeKind::Record) {
    add(field(ground));
  } else if (ground->kind == TypeKind::Function) {
    if (ground->arguments[2]->kind == TypeKind::Lambda)
      for (const Type* capture : ground->arguments[2]->arguments) add(capture);
  } else {
    for (const Type* part : ground->arguments) add(part);
  }
  return components_[ground] = count;
}

const Row& GroundTypes::row(const Type* ground) {
  if (auto found = rows_.find(ground); found != rows_.end()) return found->second;
  if (components(ground) > kMaximalComponents) throw TooManyComponents{};
  Row row;
  auto append = [&](const Type* part) {
    const Row& components = this->row(part);
    row.insert(row.end(), components.begin(), components.end());
  };
  switch (ground->kind) {
    case TypeKind::Scalar:
      row.emplace_back(ground->scalar);
      break;
    case TypeKind::Pair:
      append(ground->arguments[0]);
      append(ground->arguments[1]);
      break;
    case TypeKind::Sequence:
      row.push_back(CoreType::sequence(this->row(ground->arguments[0])));
      break;
    case TypeKind::Record:
      append(field(ground));
      break;
    case TypeKind::Function:
      if (ground->arguments[2]->kind == TypeKind::Lambda) {
        for (const Type* capture : ground->arguments[2]->arguments) append(capture);
      }
      break;
    case TypeKind::Variable:
    case TypeKind::Definition:
    case TypeKind::Lambda:
      throw InternalError("this type has no values");
  }
  return rows_.emplace(ground, std::move(row)).first->second;
}

ValueTypePtr GroundTypes::valueType(const Type* ground) {
  ValueType result;
  result.components = row(ground).size();
  switch (ground->kind) {
    case TypeKind::Scalar:
      result.scalar = ground->scalar;
      break;
    case TypeKind::Pair:
      result.kind = ValueType::Kind::Pair;
      result.parts = {valueType(ground->arguments[0]), valueType(ground->arguments[1])};
      break;
    case TypeKind::Sequence:
      result.kind = ValueType::Kind::Sequence;
      result.parts = {valueType(ground->arguments[0])};
      break;
    case TypeKind::Record:
      result.kind = ValueType::Kind::Record;
      result.name = ground->datatype->name;
      result.parts = {valueType(field(ground))};
      break;
    default:
      result.kind = ValueType::Kind::Function;
      break;
  }
  return std::make_shared<const ValueType>(std::move(result));
}

}  // namespace kelpie

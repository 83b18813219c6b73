// Closed types: no variables, one node for each type, so that equal types are equal pointers.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "frontend/environment.h"
#include "frontend/nesl_type.h"
#include "ir/type.h"
#include "ir/value_type.h"

namespace kelpie {

/// Values of the type variables of one instance.
using Substitution = std::unordered_map<const Type*, Type*>;

/// Values have at most so many scalars and sequences, counted through all levels.
constexpr size_t kMaximalComponents = 50'000;
/// Thrown by row() and valueType() for a type with more: records of records can make it exponential.
struct TooManyComponents {};

class GroundTypes {
 public:
  explicit GroundTypes(Widths widths) : widths_(widths) {}

  /// The closed type that `type` stands for. A variable without a value can be anything: it becomes int, and
  /// as the identity of a function nothing (a Definition without a cell).
  Type* of(const Type* type, const Substitution& substitution);
  /// Extends the substitution so that `of(pattern)` is `ground`. They have the same shape.
  void match(const Type* pattern, Type* ground, Substitution& substitution) const;

  Type* scalar(ScalarType type);
  Type* pair(Type* first, Type* second);
  Type* sequence(Type* element);
  /// The field of a record type.
  Type* field(const Type* record);

  /// The components of a value: tuples and records flattened, a function is its captured variables.
  const Row& row(const Type* ground);
  ValueTypePtr valueType(const Type* ground);

 private:
  size_t components(const Type* ground);
  Type* intern(const Type& type, std::vector<Type*> arguments);

  Widths widths_;
  std::deque<Type> types_;
  std::map<std::vector<uintptr_t>, Type*> interned_;
  std::unordered_map<const Type*, Row> rows_;
  std::unordered_map<const Type*, size_t>
      components_;  ///< scalars and sequences at all levels, up to the limit
};

}  // namespace kelpie

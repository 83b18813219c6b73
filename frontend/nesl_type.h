// Types of NESL as inference sees them: trees with unification variables and type classes (language.md 3).
//
// A function type carries *which* function it is in a third component, its identity: a variable, a named
// definition, or a lambda expression together with the types of the variables it captures. Two function types
// unify only when their identities do, so after inference every call of an instance is statically known.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/scalar.h"
#include "ir/source.h"

namespace kelpie {

struct Cell;  // environment.h
struct Type;
namespace typed {
struct Lambda;  // typed.h
}

/// A type class is the set of types it admits: one bit for each scalar type, one for everything else.
using TypeClass = uint8_t;
constexpr TypeClass bitOf(ScalarType t) { return static_cast<TypeClass>(1u << static_cast<unsigned>(t)); }
constexpr TypeClass kIntClass = bitOf(ScalarType::Int32) | bitOf(ScalarType::Int64);
constexpr TypeClass kNumber = kIntClass | bitOf(ScalarType::Float32) | bitOf(ScalarType::Float64);
constexpr TypeClass kLogical = kIntClass | bitOf(ScalarType::Bool);
constexpr TypeClass kOrdinal = kNumber | bitOf(ScalarType::Char);
constexpr TypeClass kScalar = kOrdinal | bitOf(ScalarType::Bool);
constexpr TypeClass kStructured = 0x40;
constexpr TypeClass kAny = kScalar | kStructured;

std::string_view className(TypeClass typeClass);  ///< "number", ...; "int" for the intersection of int types
std::optional<TypeClass> classFromName(std::string_view name);

/// The widths that `int` and `float` stand for.
struct Widths {
  ScalarType intType = ScalarType::Int64, floatType = ScalarType::Float64;
};

/// A type `type` in which `variables` are quantified: their unbound nodes are never bound, only replaced.
struct Scheme {
  Type* type = nullptr;
  std::vector<const Type*> variables;
};

/// A record type made by `datatype`. The arguments of its record types are the values of `parameters`: the
/// declared type variables in the order of the context, then the identities of functions in the field.
struct Datatype {
  std::string name;
  std::vector<Type*> parameters;
  size_t declared = 0;  ///< how many of the parameters are shown
  Type* field = nullptr;
  Span span;
};

enum class TypeKind : uint8_t {
  Variable,    // unification or quantified variable, of class `typeClass`; bound when `link` is set
  Scalar,      // `scalar`
  Pair,        // arguments: first, second
  Sequence,    // arguments: element
  Record,      // `datatype` on arguments
  Function,    // arguments: parameter, result, identity
  Definition,  // identity: the function in `cell`
  Lambda,      // identity: `lambda` with captured variables of the types `arguments`
};

struct Type {
  TypeKind kind = TypeKind::Variable;
  ScalarType scalar{};
  TypeClass typeClass = kAny;
  Type* link = nullptr;
  const Datatype* datatype = nullptr;
  const Cell* cell = nullptr;
  const typed::Lambda* lambda = nullptr;
  std::vector<Type*> arguments;
  /// Variables: what demanded the class, for messages.
  std::string reason;
  Span reasonSpan;
  /// Variables of a use of a function of the program: the function's own variable, which tells what in its
  /// body demanded the class.
  const Type* origin = nullptr;
};

/// The type behind bound variables.
Type* resolve(Type* type);
const Type* resolve(const Type* type);

/// A class that a variable was in when unification failed, and what demanded it.
struct Demand {
  TypeClass typeClass = kAny;
  std::string reason;
  Span span;
  const Type* origin = nullptr;  ///< as in Type
};

/// Variables stand for types of at most so many parts, counted as written out: pairs of pairs of pairs could
/// take more time and memory than there is.
constexpr size_t kMaximalTypeSize = 50'000;

/// Why two types do not unify. `left` and `right` are the innermost parts that clash.
struct Conflict {
  enum Kind { Shape, Class, Infinite, TooLarge, Identity } kind = Shape;
  const Type* left = nullptr;
  const Type* right = nullptr;
  std::vector<Demand> demands;  ///< Class: of `left`, and of `right` when it is a variable too
};

/// Owns types and unifies them.
class TypeStore {
 public:
  explicit TypeStore(Widths widths = {}) : widths_(widths) {}
  TypeStore(const TypeStore&) = delete;
  TypeStore& operator=(const TypeStore&) = delete;

  const Widths& widths() const { return widths_; }
  Type* variable(TypeClass typeClass = kAny, std::string reason = {}, Span span = {});
  Type* scalar(ScalarType type);
  Type* intType() { return scalar(widths_.intType); }
  Type* floatType() { return scalar(widths_.floatType); }
  Type* boolType() { return scalar(ScalarType::Bool); }
  Type* charType() { return scalar(ScalarType::Char); }
  Type* stringType() { return sequence(charType()); }
  Type* pair(Type* first, Type* second);
  Type* sequence(Type* element);
  Type* record(const Datatype* datatype, std::vector<Type*> arguments);
  Type* function(Type* parameter, Type* result, Type* identity);
  Type* definition(const Cell* cell);
  Type* lambda(const typed::Lambda* lambda, std::vector<Type*> captures);

  /// Makes the types equal; on a conflict nothing has changed.
  std::optional<Conflict> unify(Type* left, Type* right);

  /// The type of one use: fresh variables for the quantified ones. `reason` explains their classes; for
  /// functions of the program (`explained`) the quantified variables do so further.
  Type* instantiate(const Scheme& scheme, const std::string& reason, Span span, bool explained);
  /// A copy with the given replacements of unbound variables.
  Type* replace(Type* type, const std::unordered_map<const Type*, Type*>& replacement);
  /// Quantifies all free variables of the type.
  Scheme generalise(Type* type) const;
  /// Of a value: quantifies those that only parameters and results of its functions have, as they have no
  /// columns. What lambdas have captured has some.
  Scheme generaliseValue(Type* type) const;

 private:
  Type* add(TypeKind kind, std::vector<Type*> arguments);
  bool unifyInto(Type* left, Type* right, Conflict& conflict);
  bool bind(Type* variable, Type* type, Conflict& conflict);
  /// Whether the variable is part of the type. Takes the number of the type's parts off `parts` and stops at
  /// 0.
  bool occurs(const Type* variable, const Type* type, size_t& parts) const;
  bool narrow(Type* variable, TypeClass typeClass, const Type* source);

  struct Change {
    Type* variable;
    Type* link;
    TypeClass typeClass;
    std::string reason;
    Span reasonSpan;
    const Type* origin;
  };
  void remember(Type* variable);

  Widths widths_;
  std::deque<Type> types_;
  Type* scalars_[6] = {};
  std::vector<Change> trail_;
};

/// Whether the two schemes are the same up to the names of their variables, classes included.
bool sameScheme(const Scheme& left, const Scheme& right);

/// Adds the unbound variables of the type in the order they are read, each once. `T` is Type or const Type.
template <class T>
void collectVariables(T* type, std::vector<T*>& variables);

/// Prints types as NESL does (language.md 7.1); one printer gives equal names to equal variables.
class TypePrinter {
 public:
  explicit TypePrinter(Widths widths) : widths_(widths) {}
  /// The type alone; a pair at the outermost level has no parentheses.
  std::string text(const Type* type);
  /// ` :: (a in any; b in number)` for all variables printed so far and the hidden ones, or nothing.
  std::string context() const;

 private:
  void append(std::string& out, const Type* type, bool parenthesise);
  std::string variableName(const Type* variable);

  Widths widths_;
  std::vector<const Type*> variables_;
  std::vector<const Type*> hidden_;  ///< identities of functions: not shown, but listed in the context
};

/// The whole text: type and context.
std::string printType(const Type* type, Widths widths);

}  // namespace kelpie

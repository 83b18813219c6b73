// Typed expressions: what inference makes of the syntax tree and specialisation turns into Core.
//
// Names are resolved: a local is its variable, everything else its cell. Operators, subscripts and ranges
// have become calls of library functions, shorthands are written out. Types may hold the quantified variables
// of the definition; specialisation replaces them. Patterns match their values by construction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "frontend/nesl_type.h"
#include "ir/scalar.h"
#include "ir/source.h"

namespace kelpie::typed {

struct Variable {
  std::string name;
  Type* type;
  Span span;
};
using VariablePtr = std::shared_ptr<const Variable>;

struct Pattern;
using PatternPtr = std::unique_ptr<const Pattern>;
/// A name (`variable` set), a pair (two parts), or a record (one part: its field).
struct Pattern {
  VariablePtr variable;
  std::vector<PatternPtr> parts;
  Type* type;
};

struct Exp;
using ExpPtr = std::unique_ptr<Exp>;

struct Literal {
  Scalar value;
};
struct String {
  std::string bytes;
};
struct Local {
  VariablePtr variable;
};
/// A global: a function as a value or as the function of a call, or a top-level variable.
struct Global {
  const Cell* cell;
};
struct Pair {
  ExpPtr first, second;
};
struct Call {
  ExpPtr function, argument;
};
struct Sequence {
  std::vector<ExpPtr> elements;
};  ///< no elements: an empty sequence with its type
struct Binding {
  PatternPtr pattern;
  ExpPtr source;
};
/// `body` is null when the value of the first pattern is the body; `filter` may be null.
struct ApplyToEach {
  ExpPtr body;
  std::vector<Binding> bindings;
  ExpPtr filter;
  bool serial;
};
struct If {
  ExpPtr condition, thenBranch, elseBranch;
};
struct Let {
  std::vector<Binding> bindings;
  ExpPtr body;
};
/// `captures`: the variables of enclosing scopes that the body uses, in order of first use.
struct Lambda {
  PatternPtr parameter;
  ExpPtr body;
  std::vector<VariablePtr> captures;
  bool fromLibrary = false;
};
struct Time {
  ExpPtr body;
};

struct Exp {
  std::variant<Literal, String, Local, Global, Pair, Call, Sequence, ApplyToEach, If, Let, Lambda, Time> node;
  Type* type;
  Span span;
  /// No parameter, let or pattern variable occurs in it: inside an apply-to-each it is evaluated once
  /// (language.md 4.8).
  bool closed = false;
};

/// A function definition after inference.
struct Function {
  PatternPtr parameter;
  ExpPtr body;
  Scheme scheme;  ///< of the function type; its identity is the cell
};

}  // namespace kelpie::typed

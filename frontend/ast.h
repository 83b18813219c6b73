// The abstract syntax tree of NESL (language.md section 2), as the parser builds it and the type checker
// reads it.
//
// Names are in lower case (case does not matter in NESL); strings and characters keep theirs. Trees are
// immutable after parsing. Every node has its Span. Pairs nest to the right exactly as written.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/source.h"

namespace kelpie::ast {

// ---- patterns ---------------------------------------------------------------------------------------------

struct Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

struct NamePattern {
  std::string name;
};
struct PairPattern {
  PatternPtr first, second;
};
/// polar(r, phi)
struct RecordPattern {
  std::string name;
  PatternPtr field;
};

struct Pattern {
  std::variant<NamePattern, PairPattern, RecordPattern> node;
  Span span;
};

// ---- type expressions -------------------------------------------------------------------------------------

struct TypeExp;
using TypeExpPtr = std::shared_ptr<const TypeExp>;

/// int, a, polar, span(int)
struct NameType {
  std::string name;
  std::vector<TypeExpPtr> arguments;
};
struct SequenceType {
  TypeExpPtr element;
};
struct PairType {
  TypeExpPtr first, second;
};
struct FunctionType {
  TypeExpPtr argument, result;
};

struct TypeExp {
  std::variant<NameType, SequenceType, PairType, FunctionType> node;
  Span span;
};
/// a in number
struct ClassBinding {
  std::string variable, typeClass;
  Span span;
};
struct Signature {
  TypeExpPtr type;
  std::vector<ClassBinding> context;
};

// ---- expressions ------------------------------------------------------------------------------------------

struct Exp;
using ExpPtr = std::shared_ptr<const Exp>;

/// range is checked when the width of int is known
struct IntLiteral {
  std::string digits;
};
/// as written, "3." ".5" "1e-3"
struct FloatLiteral {
  std::string text;
};
struct BoolLiteral {
  bool value;
};
struct CharLiteral {
  unsigned char value;
};
/// escapes already removed
struct StringLiteral {
  std::string bytes;
};
struct Name {
  std::string name;
};
struct Pair {
  ExpPtr first, second;
};
/// Unary and binary operators by their spelling: "#" "@" "-"; "+" "==" "and" "->" "<-" "||" ...
struct Unary {
  std::string op;
  ExpPtr operand;
  Span opSpan;
};
struct Binary {
  std::string op;
  ExpPtr left, right;
  Span opSpan;
};
/// f(x), f x; f(1,2) applies to a Pair
struct Apply {
  ExpPtr function, argument;
  bool overLineEnd = false;  ///< the argument begins on a later line than where the function ends
};
struct Subscript {
  ExpPtr sequence, index;
};
/// at least one
struct SequenceLiteral {
  std::vector<ExpPtr> elements;
};
struct EmptySequence {
  TypeExpPtr element;
};
/// stride may be null
struct Range {
  ExpPtr start, end, stride;
};
/// `{s + 1 : s}` arrives as s in s
struct EachBinding {
  PatternPtr pattern;
  ExpPtr source;
};
/// `body` is null when the first pattern serves as body; `filter` may be null.
struct ApplyToEach {
  ExpPtr body;
  std::vector<EachBinding> bindings;
  ExpPtr filter;
  bool serial = false;
};
struct If {
  ExpPtr condition, thenBranch, elseBranch;
};
struct LetBinding {
  PatternPtr pattern;
  ExpPtr value;
};
struct Let {
  std::vector<LetBinding> bindings;
  ExpPtr body;
};
struct Lambda {
  PatternPtr parameter;
  ExpPtr body;
};
/// `name := e` in an argument list (language.md 5.4).
struct NamedArgument {
  std::string name;
  ExpPtr value;
};
/// time(e), a special form.
struct Time {
  ExpPtr body;
};

struct Exp {
  std::variant<IntLiteral, FloatLiteral, BoolLiteral, CharLiteral, StringLiteral, Name, Pair, Unary, Binary,
               Apply, Subscript, SequenceLiteral, EmptySequence, Range, ApplyToEach, If, Let, Lambda,
               NamedArgument, Time>
      node;
  Span span;
};

// ---- top-level forms --------------------------------------------------------------------------------------

/// A component of a parameter list with a default value: `b := 5`.
struct Default {
  std::string name;
  ExpPtr value;
};
struct FunctionDefinition {
  std::string name;
  PatternPtr parameter;
  std::vector<Default> defaults;
  std::optional<Signature> signature;
  std::string documentation;
  ExpPtr body;  ///< null: forward declaration (has a signature)
  Span nameSpan;
};
struct DatatypeDefinition {
  std::string name;
  TypeExpPtr field;
  std::vector<ClassBinding> context;
  Span nameSpan;
};
/// toFile: |=
struct Binding {
  PatternPtr pattern;
  ExpPtr value;
  bool toFile = false;
};
/// load, set, describe, ... (language.md 5.7): the words after the command word, as written.
struct Command {
  std::string word;                    // lower case
  std::vector<std::string> arguments;  // tokens, lower case except strings
  ExpPtr expression;                   // load: the file name expression (and options), else null
};

struct Form {
  std::variant<FunctionDefinition, DatatypeDefinition, Binding, Command, ExpPtr> node;
  Span span;
};

}  // namespace kelpie::ast

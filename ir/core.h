// Core: the nested program. Monomorphic, first-order, in A-normal form; the input of flattening.
//
// Every expression yields a row (ir/type.h). Operands are atoms: variables or constants. Variables are
// bound once in a program (unique ids). One `Program` is the code of one top-level form: an entry
// expression and the function instances it needs; the global variables it reads are listed with their
// cells, whose contents the session holds.
//
// Evaluation is strict and *lock-step* (language.md 4.7): an operation runs for all instances of the
// enclosing apply-to-eaches before the next operation starts, which fixes the order of effects and of
// random draws. Nothing is evaluated for zero instances: the body of an apply-to-each over nothing, or a
// branch without instances, is not run at all (4.6.5).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/data.h"
#include "ir/source.h"
#include "ir/type.h"

namespace kelpie::core {

using VarId = uint32_t;
using FunctionId = uint32_t;  ///< index into Program::functions

/// A variable at its binding. `name` is the NESL name it came from (may be empty), for readable output.
struct Var {
  VarId id = 0;
  std::string name;
  CoreType type;
};

/// An operand: a variable, or a scalar constant.
struct Atom {
  std::variant<VarId, Scalar> value;
  CoreType type;
  bool isConstant() const { return std::holds_alternative<Scalar>(value); }
  VarId var() const { return std::get<VarId>(value); }
  const Scalar& constant() const { return std::get<Scalar>(value); }
};

/// Primitive operations. `int` below is the program's int type (Int64, or Int32 under --int=32).
/// "Checked" ones raise a run-time error at the primitive's span. a, b are scalars; v, w sequences.
enum class PrimOp : uint8_t {
  // -- scalar: operation in Prim::scalarOp unless stated
  Scalar,         // a [, b] -> c        total operations of ir/scalar.h
  CheckedScalar,  // a [, b] -> c        Div, Rem (divisor 0, floats too); Sqrt, Ln (negative);
                  //                     ShiftLeft/Right (count outside 0..width-1)
  Convert,        // a -> c              to the type of the result; float -> int checked for range and NaN
                  //                     (truncates), int -> char checked 0..255
  Check,          // bool, int p, int q -> (nothing) or p   raises Prim::text with {0}, {1} = p, q when false
  // -- sequences; rows may have any components
  Length,      // v -> int
  Index,       // v, int -> row          checked
  Range,       // s, e, d: int -> [int]  s, s+d, ... below e; checked s <= e, d >= 1
  Distribute,  // int n, row... -> [row] n copies; checked n >= 0
  Literal,     // row, row, ... -> [row] Prim::count rows of equal type, in order (count >= 1)
  Reduce,      // [a] -> a               operation in Prim::reduceOp; empty gives the identity
  Scan,        // [a] -> [a]             exclusive
  Pack,        // [bool], v -> v         elements whose flag is true; checked equal length
  Append,      // v, w -> v ++ w
  Flatten,     // [[row]] -> [row]
  Partition,   // v, [int] counts -> [v] checked: counts >= 0, sum = #v
  Zip,         // v, w, ... -> [rows side by side]   checked equal lengths; at least one operand
  Project,     // v -> v                 components Prim::first .. first+count-1 of the element row. Free.
  Slice,       // v, int start, int count, int stride -> v    element k is v[start + k*stride]; checked:
               //                        count >= 0 and every index in range. A view: nothing moves.
  LastWriter,  // [int] index, int n -> [int]    length n; entry j is the greatest k with index[k] = j,
               //                        or -1; checked: 0 <= index[k] < n, n >= 0
  Grade,       // [a] -> [int]           stable ascending order: entry k is the position of the k-th
               //                        smallest (a: int, float, char; NaN after all numbers)
  // -- effects and the outside world; executed in program order
  RandomInt,    // int v -> int          next draw modulo v (language.md 4.9); checked v > 0
  RandomFloat,  // float v -> float      v * (draw mod 2^30) / 2^30; checked v > 0
  RandomSeed,   // int -> bool           serial
  Print,        // [char] -> bool        writes the characters, returns true
  Raise,        // [char] -> bool        stops the form with the text as its error
  StartTimer,   // int -> int
  StopTimer,    // int -> float          seconds of wall clock since the matching start
  Extern,       // row -> row            runtime service named by Prim::text ("read_object_from_file",
                //                        "open_in_file", ...): serial, host only; see runtime/services.h
  Unsupported,  // row -> row            raises "<text>" (graphics, processes) when evaluated
};

struct Exp;
using ExpPtr = std::shared_ptr<const Exp>;

struct Values {  ///< the atoms themselves; ends every chain of lets
  std::vector<Atom> atoms;
};
struct Let {  ///< bind the row of `rhs` to `vars` (as many as its components), then `body`
  std::vector<Var> vars;
  ExpPtr rhs, body;
};
struct If {
  Atom condition;  // bool
  ExpPtr thenBranch, elseBranch;
};
struct Call {
  FunctionId function;
  std::vector<Atom> arguments;
};
struct Prim {
  PrimOp op;
  std::vector<Atom> arguments;
  ScalarOp scalarOp{};
  ReduceOp reduceOp{};
  uint32_t first = 0, count = 0;
  std::string text{};
};
/// A constant sequence or row of them, as one column of length 1 for each component (strings, literals of
/// constants of any nesting).
struct Constant {
  Columns columns;
};
/// `{body : vars in sequence; ...}`: all sequences must have one length (checked), at least one binding.
/// A filter has been turned into Pack before. Yields one component, a sequence of the body's row.
/// `serial`: instances one after another ({* ... }).
struct Each {
  struct Binding {
    std::vector<Var> vars;  ///< one for each component of the sequence's element row
    Atom sequence;
  };
  std::vector<Binding> bindings;
  ExpPtr body;
  bool serial = false;
};
/// An expression without local variables inside an apply-to-each (language.md 4.8): evaluated once for all
/// active instances together, and not at all when there is none.
struct Invariant {
  ExpPtr body;
};

struct Exp {
  std::variant<Values, Let, If, Call, Prim, Constant, Each, Invariant> node;
  Row type;   ///< the row this expression yields
  Span span;  ///< where it came from; library code carries spans of library files
};

struct Function {
  std::string name;  ///< the NESL name, with a suffix when there are several instances
  std::vector<Var> parameters;
  Row result;
  ExpPtr body;  ///< null: declared but never defined; a call raises an error
  Span span;
  bool fromLibrary = false;
};

/// A global variable read by the program: at run time `vars` hold the columns of session cell `cell`.
struct Global {
  uint32_t cell;
  std::vector<Var> vars;
};

struct Program {
  std::vector<Function> functions;
  std::vector<Global> globals;
  ExpPtr entry;
  ScalarType intType = ScalarType::Int64, floatType = ScalarType::Float64;
  VarId nextVar = 1;  ///< ids below are taken
  Span span;          ///< of the form it comes from
};

}  // namespace kelpie::core

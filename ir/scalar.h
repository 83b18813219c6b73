// Scalar types and the scalar operations shared by Core (the nested program) and λcu (the flat program).
//
// One table serves every stage: Core's scalar primitives and λcu's thunk expressions use the same
// `ScalarOp`, so the reference interpreter, the λcu evaluator, the host plan and both code generators
// agree on what an operation means. `evaluate` below is that meaning; generated code must match it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kelpie {

enum class ScalarType : uint8_t { Bool, Char, Int32, Int64, Float32, Float64 };

constexpr bool isFloat(ScalarType t) { return t == ScalarType::Float32 || t == ScalarType::Float64; }
constexpr bool isInt(ScalarType t) { return t == ScalarType::Int32 || t == ScalarType::Int64; }
/// Bytes of one stored element. Bool and Char take one byte.
constexpr int sizeOf(ScalarType t) {
  switch (t) {
    case ScalarType::Bool:
    case ScalarType::Char:
      return 1;
    case ScalarType::Int32:
    case ScalarType::Float32:
      return 4;
    default:
      return 8;
  }
}
std::string_view toString(ScalarType t);  ///< "bool" "char" "int32" "int64" "float32" "float64"
std::optional<ScalarType> scalarTypeFromString(std::string_view name);

/// A scalar value with its type. Bool is 0 or 1, Char 0..255, Int32 sign-extended; all three live in `i`.
/// Float32 is kept as the double that equals it exactly.
struct Scalar {
  ScalarType type = ScalarType::Int64;
  union {
    int64_t i;
    double f;
  };
  Scalar() : i(0) {}
  static Scalar ofBool(bool v) { return Scalar(ScalarType::Bool, int64_t{v}); }
  static Scalar ofChar(unsigned char v) { return Scalar(ScalarType::Char, int64_t{v}); }
  /// Wraps to the width of `t`, which may be any type but a float.
  static Scalar ofInt(ScalarType t, int64_t v);
  /// Rounds to the precision of `t`, a float type.
  static Scalar ofFloat(ScalarType t, double v);
  /// The zero of the type: 0, 0.0, F, or the character of code 0.
  static Scalar zero(ScalarType t);
  bool isTrue() const { return i != 0; }
  /// Same type and same bits (so NaN equals itself and 0.0 differs from -0.0).
  friend bool operator==(const Scalar& a, const Scalar& b) { return a.type == b.type && a.i == b.i; }

 private:
  Scalar(ScalarType t, int64_t v) : type(t), i(v) {}
};

/// All operations are total: the checks NESL asks for (division by zero, negative square root, shift
/// counts, ...) are separate, made before the operation, so that an operation itself never faults.
enum class ScalarOp : uint8_t {
  // Two operands of one type, result of that type. Ints wrap.
  // int, float:
  Add,
  Sub,
  Mul,
  // int: truncating, x/0 = 0 and x rem 0 = 0 by definition; Div also float (IEEE):
  Div,
  Rem,
  // int, float, char: `a > b ? a : b`, `a < b ? a : b` (the second when unordered):
  Max,
  Min,
  // bool, int (bitwise):
  And,
  Or,
  Xor,
  // int; count taken modulo the width; right shift is arithmetic:
  ShiftLeft,
  ShiftRight,
  // Two operands of one type, result bool.
  // any scalar type:
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  // One operand, result of its type.
  // bool, int (one's complement):
  Not,
  // int, float; float is 0 - a, so -0.0 never arises:
  Negate,
  // float:
  Sqrt,
  Exp,
  Ln,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Tanh,
  Floor,
};

constexpr int arity(ScalarOp op) { return op < ScalarOp::Not ? 2 : 1; }
constexpr bool isComparison(ScalarOp op) { return op >= ScalarOp::Equal && op <= ScalarOp::GreaterEqual; }
constexpr ScalarType resultType(ScalarOp op, ScalarType operand) {
  return isComparison(op) ? ScalarType::Bool : operand;
}
bool accepts(ScalarOp op, ScalarType operand);  ///< whether `op` is defined on operands of this type
std::string_view toString(ScalarOp op);         ///< "add" "sub" ... as λcu text spells them
std::optional<ScalarOp> scalarOpFromString(std::string_view name);

/// The meaning of an operation. `b` is ignored for unary ones.
Scalar evaluate(ScalarOp op, const Scalar& a, const Scalar& b = Scalar());
/// Conversion: int/bool/char to int or float exactly or rounded; float to int truncates toward zero and
/// saturates, NaN gives 0; to char takes the low 8 bits; to bool is `!= 0`.
Scalar convert(const Scalar& a, ScalarType to);

/// The associative operators of NESL's reductions and scans.
enum class ReduceOp : uint8_t { Add, Mul, Max, Min, And, Or, Xor };
ScalarOp scalarOp(ReduceOp op);
std::string_view toString(ReduceOp op);
/// Identity on a type. Max/Min on float give -inf/+inf, on char 0/255, on int the extreme of the width.
Scalar identity(ReduceOp op, ScalarType t);

}  // namespace kelpie

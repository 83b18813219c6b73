#include "ir/scalar.h"

#include <array>
#include <cmath>
#include <limits>

#include "ir/diagnostic.h"

namespace kelpie {
namespace {

constexpr std::array<std::string_view, 6> kTypeNames = {"bool",  "char",    "int32",
                                                        "int64", "float32", "float64"};

constexpr std::array<std::string_view, 33> kOpNames = {
    "add", "sub", "mul", "div", "rem",  "max",  "min",  "and",  "or",   "xor",  "shl",
    "shr", "eq",  "ne",  "lt",  "le",   "gt",   "ge",   "not",  "neg",  "sqrt", "exp",
    "ln",  "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "floor"};
static_assert(static_cast<size_t>(ScalarOp::Floor) + 1 == kOpNames.size());

constexpr std::array<std::string_view, 7> kReduceNames = {"add", "mul", "max", "min", "and", "or", "xor"};

uint64_t bits(int64_t v) { return static_cast<uint64_t>(v); }
int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }

bool compare(ScalarOp op, const auto& a, const auto& b) {
  switch (op) {
    case ScalarOp::Equal:
      return a == b;
    case ScalarOp::NotEqual:
      return a != b;
    case ScalarOp::Less:
      return a < b;
    case ScalarOp::LessEqual:
      return a <= b;
    case ScalarOp::Greater:
      return a > b;
    default:
      return a >= b;
  }
}

/// Ints, chars and bools; the caller wraps the result to the width of the type.
int64_t evaluateInteger(ScalarOp op, ScalarType type, int64_t a, int64_t b) {
  const int width = type == ScalarType::Int32 ? 32 : 64;
  switch (op) {
    case ScalarOp::Add:
      return wrap(bits(a) + bits(b));
    case ScalarOp::Sub:
      return wrap(bits(a) - bits(b));
    case ScalarOp::Mul:
      return wrap(bits(a) * bits(b));
    // The quotient by -1 is taken by negation: the most negative value has no positive counterpart.
    case ScalarOp::Div:
      return b == 0 ? 0 : b == -1 ? wrap(0 - bits(a)) : a / b;
    case ScalarOp::Rem:
      return b == 0 || b == -1 ? 0 : a % b;
    case ScalarOp::Max:
      return a > b ? a : b;
    case ScalarOp::Min:
      return a < b ? a : b;
    case ScalarOp::And:
      return a & b;
    case ScalarOp::Or:
      return a | b;
    case ScalarOp::Xor:
      return a ^ b;
    case ScalarOp::ShiftLeft:
      return wrap(bits(a) << (b & (width - 1)));
    case ScalarOp::ShiftRight:
      return a >> (b & (width - 1));
    case ScalarOp::Not:
      return type == ScalarType::Bool ? 1 - a : ~a;
    case ScalarOp::Negate:
      return wrap(0 - bits(a));
    default:
      throw InternalError("evaluate: not an integer operation");
  }
}

/// In the precision of F throughout: the functions of the mathematical library differ between precisions.
template <typename F>
F evaluateFloat(ScalarOp op, F a, F b) {
  switch (op) {
    case ScalarOp::Add:
      return a + b;
    case ScalarOp::Sub:
      return a - b;
    case ScalarOp::Mul:
      return a * b;
    case ScalarOp::Div:
      return a / b;
    case ScalarOp::Max:
      return a > b ? a : b;
    case ScalarOp::Min:
      return a < b ? a : b;
    case ScalarOp::Negate:
      return F{0} - a;
    case ScalarOp::Sqrt:
      return std::sqrt(a);
    case ScalarOp::Exp:
      return std::exp(a);
    case ScalarOp::Ln:
      return std::log(a);
    case ScalarOp::Sin:
      return std::sin(a);
    case ScalarOp::Cos:
      return std::cos(a);
    case ScalarOp::Tan:
      return std::tan(a);
    case ScalarOp::Asin:
      return std::asin(a);
    case ScalarOp::Acos:
      return std::acos(a);
    case ScalarOp::Atan:
      return std::atan(a);
    case ScalarOp::Sinh:
      return std::sinh(a);
    case ScalarOp::Cosh:
      return std::cosh(a);
    case ScalarOp::Tanh:
      return std::tanh(a);
    case ScalarOp::Floor:
      return std::floor(a);
    default:
      throw InternalError("evaluate: not a float operation");
  }
}

/// Truncates toward zero; saturates at the ends of Int; NaN gives 0.
template <typename Int>
int64_t truncate(double v) {
  if (std::isnan(v)) return 0;
  // The lower end is a power of two, so it and its negation are exact as doubles.
  constexpr double kEnd = -static_cast<double>(std::numeric_limits<Int>::min());
  if (v >= kEnd) return std::numeric_limits<Int>::max();
  if (v < -kEnd) return std::numeric_limits<Int>::min();
  return static_cast<Int>(v);
}

}  // namespace

std::string_view toString(ScalarType t) { return kTypeNames[static_cast<size_t>(t)]; }

std::optional<ScalarType> scalarTypeFromString(std::string_view name) {
  for (size_t t = 0; t < kTypeNames.size(); ++t)
    if (kTypeNames[t] == name) return static_cast<ScalarType>(t);
  return std::nullopt;
}

Scalar Scalar::ofInt(ScalarType t, int64_t v) {
  switch (t) {
    case ScalarType::Bool:
      return Scalar(t, v & 1);
    case ScalarType::Char:
      return Scalar(t, v & 0xff);
    case ScalarType::Int32:
      return Scalar(t, static_cast<int32_t>(bits(v)));
    case ScalarType::Int64:
      return Scalar(t, v);
    default:
      throw InternalError("Scalar::ofInt: a float type");
  }
}

Scalar Scalar::ofFloat(ScalarType t, double v) {
  if (!isFloat(t)) throw InternalError("Scalar::ofFloat: not a float type");
  Scalar result(t, 0);
  result.f = t == ScalarType::Float32 ? static_cast<double>(static_cast<float>(v)) : v;
  return result;
}

Scalar Scalar::zero(ScalarType t) { return isFloat(t) ? ofFloat(t, 0.0) : ofInt(t, 0); }

bool accepts(ScalarOp op, ScalarType operand) {
  switch (op) {
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::Mul:
    case ScalarOp::Div:
    case ScalarOp::Negate:
      return isInt(operand) || isFloat(operand);
    case ScalarOp::Rem:
    case ScalarOp::ShiftLeft:
    case ScalarOp::ShiftRight:
      return isInt(operand);
    case ScalarOp::Max:
    case ScalarOp::Min:
      return operand != ScalarType::Bool;
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Not:
      return operand == ScalarType::Bool || isInt(operand);
    default:
      return isComparison(op) || isFloat(operand);
  }
}

std::string_view toString(ScalarOp op) { return kOpNames[static_cast<size_t>(op)]; }

std::optional<ScalarOp> scalarOpFromString(std::string_view name) {
  for (size_t op = 0; op < kOpNames.size(); ++op)
    if (kOpNames[op] == name) return static_cast<ScalarOp>(op);
  return std::nullopt;
}

Scalar evaluate(ScalarOp op, const Scalar& a, const Scalar& b) {
  if (!accepts(op, a.type)) throw InternalError("evaluate: operation is not defined on this type");
  if (arity(op) == 2 && a.type != b.type) throw InternalError("evaluate: operands of different types");
  if (isFloat(a.type)) {
    if (isComparison(op)) return Scalar::ofBool(compare(op, a.f, b.f));
    if (a.type == ScalarType::Float64) return Scalar::ofFloat(a.type, evaluateFloat<double>(op, a.f, b.f));
    return Scalar::ofFloat(a.type, evaluateFloat<float>(op, static_cast<float>(a.f),
                                                        arity(op) == 2 ? static_cast<float>(b.f) : 0));
  }
  if (isComparison(op)) return Scalar::ofBool(compare(op, a.i, b.i));
  return Scalar::ofInt(a.type, evaluateInteger(op, a.type, a.i, arity(op) == 2 ? b.i : 0));
}

Scalar convert(const Scalar& a, ScalarType to) {
  if (to == ScalarType::Bool) return Scalar::ofBool(isFloat(a.type) ? a.f != 0 : a.i != 0);
  if (isFloat(a.type)) {
    if (isFloat(to)) return Scalar::ofFloat(to, a.f);
    return Scalar::ofInt(to, to == ScalarType::Int32 ? truncate<int32_t>(a.f) : truncate<int64_t>(a.f));
  }
  if (!isFloat(to)) return Scalar::ofInt(to, a.i);
  // Straight to the target's precision: by way of double an Int64 would be rounded twice.
  if (to == ScalarType::Float32) return Scalar::ofFloat(to, static_cast<float>(a.i));
  return Scalar::ofFloat(to, static_cast<double>(a.i));
}

ScalarOp scalarOp(ReduceOp op) {
  switch (op) {
    case ReduceOp::Add:
      return ScalarOp::Add;
    case ReduceOp::Mul:
      return ScalarOp::Mul;
    case ReduceOp::Max:
      return ScalarOp::Max;
    case ReduceOp::Min:
      return ScalarOp::Min;
    case ReduceOp::And:
      return ScalarOp::And;
    case ReduceOp::Or:
      return ScalarOp::Or;
    case ReduceOp::Xor:
      return ScalarOp::Xor;
  }
  throw InternalError("scalarOp: unknown reduction");
}

std::string_view toString(ReduceOp op) { return kReduceNames[static_cast<size_t>(op)]; }

Scalar identity(ReduceOp op, ScalarType t) {
  if (!accepts(scalarOp(op), t)) throw InternalError("identity: reduction is not defined on this type");
  const bool wide = t == ScalarType::Int64;
  switch (op) {
    case ReduceOp::Add:
    case ReduceOp::Or:
    case ReduceOp::Xor:
      return Scalar::zero(t);
    case ReduceOp::Mul:
      return isFloat(t) ? Scalar::ofFloat(t, 1.0) : Scalar::ofInt(t, 1);
    case ReduceOp::And:
      return Scalar::ofInt(t, -1);
    case ReduceOp::Max:
      if (isFloat(t)) return Scalar::ofFloat(t, -std::numeric_limits<double>::infinity());
      if (t == ScalarType::Char) return Scalar::ofChar(0);
      return Scalar::ofInt(t,
                           wide ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min());
    case ReduceOp::Min:
      if (isFloat(t)) return Scalar::ofFloat(t, std::numeric_limits<double>::infinity());
      if (t == ScalarType::Char) return Scalar::ofChar(255);
      return Scalar::ofInt(t,
                           wide ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max());
  }
  throw InternalError("identity: unknown reduction");
}

}  // namespace kelpie

#include "codegen/scalar_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/diagnostic.h"

namespace kelpie::codegen {
namespace {

std::string floatText(double v, bool single) {
  if (!std::isfinite(v)) {
    if (single) {
      float f = static_cast<float>(v);
      uint32_t bits;
      std::memcpy(&bits, &f, sizeof bits);
      return fmt::format("k_float_bits({:#x}u)", bits);
    }
    uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    return fmt::format("k_double_bits({:#x}ull)", bits);
  }
  std::string text = single ? fmt::format("{:.9g}", v) : fmt::format("{:.17g}", v);
  std::string shortest = single ? fmt::format("{}", static_cast<float>(v)) : fmt::format("{}", v);
  if (shortest.size() < text.size()) text = shortest;
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return single ? text + "f" : text;
}

}  // namespace

std::string_view infix(ScalarOp op, bool isFloatType) {
  switch (op) {
    case ScalarOp::Add:
      return "+";
    case ScalarOp::Sub:
      return "-";
    case ScalarOp::Mul:
      return "*";
    case ScalarOp::Div:
      return isFloatType ? "/" : "";
    case ScalarOp::And:
      return "&";
    case ScalarOp::Or:
      return "|";
    case ScalarOp::Xor:
      return "^";
    case ScalarOp::Equal:
      return "==";
    case ScalarOp::NotEqual:
      return "!=";
    case ScalarOp::Less:
      return "<";
    case ScalarOp::LessEqual:
      return "<=";
    case ScalarOp::Greater:
      return ">";
    case ScalarOp::GreaterEqual:
      return ">=";
    default:
      return "";
  }
}

std::string_view functionName(ScalarOp op) {
  switch (op) {
    case ScalarOp::Add:
      return "k_add";
    case ScalarOp::Sub:
      return "k_sub";
    case ScalarOp::Mul:
      return "k_mul";
    case ScalarOp::Div:
      return "k_div";
    case ScalarOp::Rem:
      return "k_rem";
    case ScalarOp::Max:
      return "k_max";
    case ScalarOp::Min:
      return "k_min";
    case ScalarOp::ShiftLeft:
      return "k_shl";
    case ScalarOp::ShiftRight:
      return "k_shr";
    case ScalarOp::Sqrt:
      return "k_sqrt";
    case ScalarOp::Exp:
      return "k_exp";
    case ScalarOp::Ln:
      return "k_ln";
    case ScalarOp::Sin:
      return "k_sin";
    case ScalarOp::Cos:
      return "k_cos";
    case ScalarOp::Tan:
      return "k_tan";
    case ScalarOp::Asin:
      return "k_asin";
    case ScalarOp::Acos:
      return "k_acos";
    case ScalarOp::Atan:
      return "k_atan";
    case ScalarOp::Sinh:
      return "k_sinh";
    case ScalarOp::Cosh:
      return "k_cosh";
    case ScalarOp::Tanh:
      return "k_tanh";
    case ScalarOp::Floor:
      return "k_floor";
    default:
      throw InternalError("no C function for a scalar operation");
  }
}

std::string_view cTypeName(ScalarType t) {
  switch (t) {
    case ScalarType::Bool:
      return "bool";
    case ScalarType::Char:
      return "uint8_t";
    case ScalarType::Int32:
      return "int32_t";
    case ScalarType::Int64:
      return "int64_t";
    case ScalarType::Float32:
      return "float";
    case ScalarType::Float64:
      return "double";
  }
  throw InternalError("unknown scalar type");
}

std::string literalText(const Scalar& v) {
  switch (v.type) {
    case ScalarType::Bool:
      return v.isTrue() ? "true" : "false";
    case ScalarType::Char:
      return fmt::format("uint8_t({})", v.i);
    case ScalarType::Int32:
      if (v.i == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
      return fmt::format("{}", v.i);
    case ScalarType::Int64:
      if (v.i == std::numeric_limits<int64_t>::min()) return "int64_t(-9223372036854775807ll - 1)";
      return fmt::format("int64_t({}{})", v.i, v.i > INT32_MAX || v.i < INT32_MIN ? "ll" : "");
    case ScalarType::Float32:
      return floatText(v.f, true);
    case ScalarType::Float64:
      return floatText(v.f, false);
  }
  throw InternalError("unknown scalar type");
}

std::string indented(const std::string& lines, int columns) {
  std::string result;
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
    result.append(static_cast<size_t>(columns), ' ');
    result += lines.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

}  // namespace kelpie::codegen

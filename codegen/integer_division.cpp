#include "codegen/integer_division.h"

#include <bit>

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// A factor that leaves most numbers words.
constexpr int64_t kSmallFactor = 256;

bool isSmallConstant(ExprRef e) {
  return e->kind == ExprKind::Constant && std::abs(e->constant.i) <= kSmallFactor;
}

}  // namespace

bool dividesIntegers(ExprRef e) {
  return e->kind == ExprKind::Op && (e->op == ScalarOp::Div || e->op == ScalarOp::Rem) && isInt(e->type);
}

bool dividesLongIntegers(ExprRef e) {
  return dividesIntegers(e) && e->type == ScalarType::Int64 && e->operands[1]->kind != ExprKind::Constant;
}

bool isProduct(ExprRef e) {
  if (e->kind == ExprKind::Check) return isProduct(e->operands[1]);
  if (e->kind != ExprKind::Op) return false;
  const auto& of = e->operands;
  switch (e->op) {
    case ScalarOp::Mul:
      return (!isSmallConstant(of[0]) && !isSmallConstant(of[1])) || isProduct(of[0]) || isProduct(of[1]);
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::Xor:
      return isProduct(of[0]) || isProduct(of[1]);
    default:
      return false;
  }
}

bool dividesByWords(ExprRef e) {
  if (!dividesIntegers(e) || e->type != ScalarType::Int64 || isProduct(e->operands[0])) return false;
  const ExprRef divisor = e->operands[1];
  if (divisor->kind != ExprKind::Constant) return true;
  const auto by = static_cast<uint64_t>(divisor->constant.i);
  return by >> 32 == 0 && by != 0 && !std::has_single_bit(by);
}

bool isLong(int64_t dividend, int64_t divisor) {
  return (static_cast<uint64_t>(dividend) | static_cast<uint64_t>(divisor)) >> 32 != 0;
}

}  // namespace kelpie::codegen

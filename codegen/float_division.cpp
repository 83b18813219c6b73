#include "codegen/float_division.h"

#include <cmath>

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

bool seldomZero(ExprRef e) {
  if (e->kind == ExprKind::Constant) return e->constant.f != 0;
  if (e->kind == ExprKind::Convert) return true;
  if (e->kind != ExprKind::Op) return false;
  switch (e->op) {
    case ScalarOp::Exp:
    case ScalarOp::Ln:
      return true;
    case ScalarOp::Sqrt:
      return seldomZero(e->operands[0]);
    case ScalarOp::Add:
      return seldomZero(e->operands[0]) || seldomZero(e->operands[1]);
    case ScalarOp::Mul:
    case ScalarOp::Div:
      return seldomZero(e->operands[0]) && seldomZero(e->operands[1]);
    default:
      return false;
  }
}

bool isPowerOfTwo(ExprRef divisor) {
  int exponent = 0;
  return divisor->kind == ExprKind::Constant && std::abs(std::frexp(divisor->constant.f, &exponent)) == 0.5;
}

}  // namespace kelpie::codegen

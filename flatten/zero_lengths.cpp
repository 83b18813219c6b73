#include "flatten/zero_lengths.h"

#include "ir/lcu.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::ExprRef;

ExprRef lengthOfOthersZero(ExprRef condition, bool taken) {
  if (condition->kind != ExprKind::Op) return nullptr;
  const ExprRef a = condition->operands[0];
  if (condition->op == ScalarOp::Not) return lengthOfOthersZero(a, !taken);
  if (!isComparison(condition->op)) return nullptr;
  const ExprRef b = condition->operands[1];
  const std::optional<int64_t> first = lcu::asIndex(a), second = lcu::asIndex(b);
  if (first.has_value() == second.has_value()) return nullptr;
  const ExprRef length = first ? b : a;
  if (!length->nonNegative) return nullptr;
  // Of what is never below zero: whether the condition says that there is some, or (`none`) that there is
  // not.
  const int64_t bound = first ? *first : *second;
  const bool zero = bound == 0, one = bound == 1;
  bool some = false, none = false;
  switch (condition->op) {
    case ScalarOp::Equal:
      none = zero;
      break;
    case ScalarOp::NotEqual:
      some = zero;
      break;
    case ScalarOp::Greater:  // length > 0, 1 > length
      some = zero && second;
      none = one && first;
      break;
    case ScalarOp::Less:  // 0 < length, length < 1
      some = zero && first;
      none = one && second;
      break;
    case ScalarOp::LessEqual:  // 1 <= length, length <= 0
      some = one && first;
      none = zero && second;
      break;
    case ScalarOp::GreaterEqual:  // length >= 1, 0 >= length
      some = one && second;
      none = zero && first;
      break;
    default:
      break;
  }
  return (taken ? some : none) ? length : nullptr;
}

}  // namespace kelpie::flatten

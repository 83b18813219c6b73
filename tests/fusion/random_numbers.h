// Random integers of variables and constants, for tests of what is proven of them.
#pragma once

#include <array>
#include <cstdlib>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace kelpie::fusion {

using NumberValues = std::unordered_map<lcu::ExprRef, Scalar>;

/// Of variables that have values.
inline Scalar evaluateNumber(lcu::ExprRef e, const NumberValues& values) {
  using lcu::ExprKind;
  switch (e->kind) {
    case ExprKind::Constant:
      return e->constant;
    case ExprKind::Check:
      return evaluateNumber(e->operands[evaluateNumber(e->operands[0], values).isTrue() ? 1 : 2], values);
    case ExprKind::Project: {
      const lcu::ExprRef conditional = e->operands[0];
      const bool holds = evaluateNumber(conditional->operands[0], values).isTrue();
      return evaluateNumber(conditional->operands[1 + e->index + (holds ? 0 : valueCount(conditional))],
                            values);
    }
    case ExprKind::Op:
      return kelpie::evaluate(e->op, evaluateNumber(e->operands[0], values),
                              e->operands.size() > 1 ? evaluateNumber(e->operands[1], values) : Scalar());
    default:
      return values.at(e);
  }
}

class RandomNumbers {
 public:
  /// Values of variables that are not negative will be lengths.
  RandomNumbers(lcu::ExprArena& arena, std::vector<lcu::ExprRef> variables, uint64_t seed)
      : arena_(arena), variables_(std::move(variables)), random_(seed) {}

  lcu::ExprRef number(int depth) {
    if (depth == 0 || below(4) == 0)
      return below(3) == 0 ? arena_.index(constant()) : variables_[below(variables_.size())];
    const lcu::ExprRef a = number(depth - 1);
    switch (below(11)) {
      case 0:
      case 1:
      case 2:
        return arena_.add(a, arena_.index(constant()));
      case 3:
        return arena_.add(a, number(depth - 1));
      case 4:
        return arena_.sub(a, number(depth - 1));
      case 5:
        return arena_.op(ScalarOp::Max, a, number(depth - 1));
      case 6:
        return arena_.op(ScalarOp::Min, a, number(depth - 1));
      case 7:
        return arena_.op(below(2) ? ScalarOp::Rem : ScalarOp::Div, a, number(depth - 1));
      case 8:
        return arena_.op(ScalarOp::And, a, number(depth - 1));
      case 9:
        return arena_.op(ScalarOp::ShiftRight, a, arena_.index(static_cast<int64_t>(below(4))));
      default:
        return arena_.select(condition(depth - 1), a, number(depth - 1));
    }
  }

  lcu::ExprRef condition(int depth) {
    constexpr std::array kComparisons = {ScalarOp::Less,    ScalarOp::LessEqual,    ScalarOp::Equal,
                                         ScalarOp::Greater, ScalarOp::GreaterEqual, ScalarOp::NotEqual};
    if (depth > 0 && below(4) == 0)
      return arena_.op(below(2) ? ScalarOp::And : ScalarOp::Or, condition(depth - 1), condition(depth - 1));
    if (depth > 0 && below(5) == 0)
      return arena_.select(condition(depth - 1), condition(depth - 1), arena_.boolean(below(2) == 0));
    return arena_.op(kComparisons[below(kComparisons.size())], number(depth), number(depth));
  }

  /// Small ones mostly, and ones near the ends.
  int64_t value(bool length = false) {
    if (length) return below(5) == 0 ? (int64_t{1} << lcu::kLengthBits) - 1 : static_cast<int64_t>(below(5));
    const int64_t small = static_cast<int64_t>(below(9)) - 3;
    return below(5) != 0 ? small : below(2) != 0 ? INT64_MAX - std::abs(small) : INT64_MIN + std::abs(small);
  }
  NumberValues values() {
    NumberValues result;
    for (lcu::ExprRef e : variables_) result[e] = Scalar::ofInt(lcu::kIndex, value(e->nonNegative));
    return result;
  }

  size_t below(size_t n) { return random_() % n; }

 private:
  int64_t constant() {
    const auto small = static_cast<int64_t>(below(9)) - 4;
    return below(12) == 0 ? (below(2) ? INT64_MAX - std::abs(small) : INT64_MIN + 9 + small) : small;
  }

  lcu::ExprArena& arena_;
  std::vector<lcu::ExprRef> variables_;
  std::mt19937_64 random_;
};

}  // namespace kelpie::fusion

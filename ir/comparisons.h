// Comparisons that hold exactly when others do not.
#pragma once

#include <optional>

#include "ir/scalar.h"

namespace kelpie {

/// The comparison that holds exactly when this one of two operands of a type does not; NaN makes order
/// comparisons of floats an exception.
inline std::optional<ScalarOp> inverted(ScalarOp comparison, ScalarType operand) {
  switch (comparison) {
    case ScalarOp::Equal:
      return ScalarOp::NotEqual;
    case ScalarOp::NotEqual:
      return ScalarOp::Equal;
    default:
      break;
  }
  if (isFloat(operand)) return std::nullopt;
  switch (comparison) {
    case ScalarOp::Less:
      return ScalarOp::GreaterEqual;
    case ScalarOp::LessEqual:
      return ScalarOp::Greater;
    case ScalarOp::Greater:
      return ScalarOp::LessEqual;
    case ScalarOp::GreaterEqual:
      return ScalarOp::Less;
    default:
      return std::nullopt;
  }
}

}  // namespace kelpie

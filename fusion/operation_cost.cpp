// What one operation of a thunk takes (cost_model.h).
#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/float_division.h"
#include "codegen/integer_division.h"
#include "fusion/cost_model.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;

bool CostModel::converts(ExprRef e) {
  return e->kind == ExprKind::Convert && isFloat(e->type) != isFloat(e->operands[0]->type);
}

bool CostModel::ofIntegers(ExprRef e) {
  if (e->kind == ExprKind::Convert)
    return isFloat(e->type) == isFloat(e->operands[0]->type) && !isFloat(e->type);
  return e->kind != ExprKind::Op || !isFloat(e->operands[0]->type);
}

namespace {

/// What operations of integers take on a GPU, relative to an addition of 64 bits: all its instructions are of
/// 32 bits, and those that compare, choose and shift have one pipe of half the width. As measured on an H200.
struct Instructions {
  double widen = 0.6, check = 2, select = 1.3, extreme = 2.7, compare = 1.3;
  double truths = 0.8, bits = 1.1, shiftLeft = 0.65, shiftRight = 1.25;
  double signedShift = 2.7;      ///< a division by a power of two
  double fewBits = 0.25;         ///< a division of 32 bits by a constant, relative to one of 64
  double fewDivided = 0.4;       ///< ... and by another number
  double wordByConstant = 0.35;  ///< a division of 64 bits by a constant for which a word suffices
  double directly = 0.6;         ///< ... of what takes two words, as products do, so that nobody looks
};
/// Elsewhere they differ little.
constexpr Instructions kAlike{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1}, kOfGpu{};

/// Whether the bits of an integer tell how it compares with a constant, as those of a character do that it is
/// at least 0 and less than 256.
bool isCompared(ScalarOp op, ExprRef integer, ExprRef constant, const ElementFacts& facts) {
  if (constant->kind != ExprKind::Constant || isFloat(constant->type)) return false;
  const double bits = facts.sureBits(integer);
  if (bits >= 63) return false;
  const int64_t limit = constant->constant.i, end = int64_t{1} << static_cast<int>(bits);
  switch (op) {
    case ScalarOp::Less:
    case ScalarOp::GreaterEqual:
      return limit <= 0 || limit >= end;
    case ScalarOp::LessEqual:
    case ScalarOp::Greater:
      return limit < 0 || limit >= end - 1;
    case ScalarOp::Equal:
    case ScalarOp::NotEqual:
      return limit < 0 || limit >= end;
    default:
      return false;
  }
}

/// Whether compilers know a truth value, and drop what depends on it alone.
bool isKnown(ExprRef e, const ElementFacts& facts) {
  if (e->kind == ExprKind::Constant) return true;
  if (e->kind != ExprKind::Op) return false;
  switch (e->op) {
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Not:
      return e->type == ScalarType::Bool && std::all_of(e->operands.begin(), e->operands.end(),
                                                        [&](ExprRef x) { return isKnown(x, facts); });
    default:
      return e->operands.size() == 2 && isCompared(e->op, e->operands[0], e->operands[1], facts);
  }
}

}  // namespace

double CostModel::operation(ExprRef e, const ElementFacts& facts,
                            const std::optional<DivisionSizes>& sizes) const {
  const auto simple = [&](ScalarType type, double time) {
    const bool narrow = costs_.lockStep ? sizeOf(type) == 4 : sizeOf(type) <= 4;
    return narrow ? costs_.narrow * time : time;
  };
  constexpr double kQuick = 32;  // bits of what takes one word
  // Of integers, whether a word suffices: for what is read of the result, or as all operands are that small.
  const bool mask = e->kind == ExprKind::Op && e->op == ScalarOp::And && facts.sureBits(e) <= kQuick;
  const bool word = costs_.lockStep && (mask || facts.neededBits(e) <= kQuick);
  const bool few = costs_.lockStep && e->kind == ExprKind::Op &&
                   std::all_of(e->operands.begin(), e->operands.end(),
                               [&](ExprRef operand) { return facts.sureBits(operand) <= kQuick; });
  const auto ofType = [&](ScalarType type) {
    return simple((word || few) && sizeOf(type) > 4 ? ScalarType::Int32 : type,
                  isFloat(type) ? costs_.operation : costs_.integerOperation);
  };
  const Instructions& take = costs_.lockStep ? kOfGpu : kAlike;
  const auto chosen = [&](ScalarType type) {
    return take.select * simple(word && sizeOf(type) > 4 ? ScalarType::Int32 : type, costs_.integerOperation);
  };
  switch (e->kind) {
    case ExprKind::Convert:
      if (isFloat(e->type) != isFloat(e->operands[0]->type)) return simple(e->type, costs_.conversion);
      return take.widen * ofType(e->type);
    case ExprKind::Check:
      if (costs_.lockStep && isKnown(e->operands[0], facts)) return 0;
      return take.check * simple(e->type, costs_.integerOperation);
    case ExprKind::If: {
      double values = 0;
      for (size_t k = 1; k <= e->operands.size() / 2; ++k) values += chosen(e->operands[k]->type);
      return values;
    }
    case ExprKind::Op:
      if (costs_.lockStep && isKnown(e, facts)) return 0;
      break;
    default:
      return 0;
  }
  const ScalarType type = e->operands[0]->type;
  const double float32 = type == ScalarType::Float32 ? costs_.float32 : 1;
  switch (e->op) {
    case ScalarOp::Mul:
      return isFloat(type) ? ofType(type)
                           : simple(word || few ? ScalarType::Int32 : type, costs_.integerProduct);
    case ScalarOp::Div:
    case ScalarOp::Rem:
      if (isFloat(type))
        return codegen::isPowerOfTwo(e->operands[1]) ? ofType(type) : float32 * costs_.division;
      if (facts.divided(e)) return simple(type, costs_.integerProduct) + ofType(type);
      if (e->operands[1]->kind == ExprKind::Constant) {
        const bool shift = std::has_single_bit(static_cast<uint64_t>(e->operands[1]->constant.i));
        if (few) return shift ? ofType(type) : take.fewBits * costs_.constantDivision;
        if (shift) return std::min(take.signedShift * ofType(type), costs_.constantDivision);
        if (!codegen::dividesByWords(e)) return simple(type, take.directly * costs_.constantDivision);
        const double ofWord = take.wordByConstant * costs_.constantDivision;
        if (sizes) return sizes->ofLong * costs_.constantDivision + sizes->ofShort * ofWord;
        return facts.bits(e->operands[0]) > kQuick ? costs_.constantDivision : ofWord;
      }
      if (few) return take.fewDivided * costs_.integerDivision;
      if (!codegen::dividesByWords(e)) return simple(type, costs_.longDivision);
      if (sizes) return sizes->ofLong * costs_.longDivision + sizes->ofShort * costs_.integerDivision;
      return std::max(facts.bits(e->operands[0]), facts.bits(e->operands[1])) > kQuick
                 ? costs_.longDivision
                 : costs_.integerDivision;
    case ScalarOp::Max:
    case ScalarOp::Min:
      return isFloat(type) ? ofType(type) + chosen(type) * (costs_.lockStep ? 1 : 0)
                           : take.extreme * ofType(type);
    case ScalarOp::Equal:
    case ScalarOp::NotEqual:
    case ScalarOp::Less:
    case ScalarOp::LessEqual:
    case ScalarOp::Greater:
    case ScalarOp::GreaterEqual:
      return isFloat(type) ? ofType(type) : take.compare * ofType(type);
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Not:
      return (type == ScalarType::Bool ? take.truths : take.bits) * ofType(type);
    case ScalarOp::ShiftLeft:
      return take.shiftLeft * ofType(type);
    case ScalarOp::ShiftRight:
      return take.shiftRight * ofType(type);
    case ScalarOp::Sqrt:
      return float32 * costs_.division;
    case ScalarOp::Exp:
    case ScalarOp::Sinh:
    case ScalarOp::Cosh:
    case ScalarOp::Tanh:
      return float32 * costs_.exponential;
    case ScalarOp::Ln:
      return float32 * costs_.logarithm;
    case ScalarOp::Sin:
    case ScalarOp::Cos:
      return float32 * costs_.trigonometric;
    // Relative to a sine, as measured on an H200 for arguments all over their domain.
    case ScalarOp::Tan:
      return float32 * 1.8 * costs_.trigonometric;
    case ScalarOp::Atan:
      return float32 * 1.55 * costs_.trigonometric;
    case ScalarOp::Asin:
      return float32 * 2.2 * costs_.trigonometric;
    case ScalarOp::Acos:
      return float32 * 3.0 * costs_.trigonometric;
    default:
      return ofType(type);
  }
}

double CostModel::choice() const {
  return (costs_.lockStep ? kOfGpu : kAlike).select * costs_.integerOperation;
}

}  // namespace kelpie::fusion

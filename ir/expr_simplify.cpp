// The operations of ExprArena that know algebra: op and convert.
#include <optional>

#include "ir/comparisons.h"
#include "ir/diagnostic.h"
#include "ir/expr.h"

namespace kelpie::lcu {
namespace {

bool isOp(ExprRef e, ScalarOp op) { return e->kind == ExprKind::Op && e->op == op; }
bool isConstant(ExprRef e) { return e->kind == ExprKind::Constant; }
/// Int, char or bool constant of this value.
bool isInteger(ExprRef e, int64_t value) {
  return isConstant(e) && !isFloat(e->type) && e->constant.i == value;
}
bool isOne(ExprRef e) {
  return isConstant(e) && (isFloat(e->type) ? e->constant.f == 1.0 : e->constant.i == 1);
}

/// Results that are the same on every target.
bool folds(ScalarOp op) { return op < ScalarOp::Exp || op == ScalarOp::Floor; }

ScalarOp mirrored(ScalarOp comparison) {
  switch (comparison) {
    case ScalarOp::Less:
      return ScalarOp::Greater;
    case ScalarOp::LessEqual:
      return ScalarOp::GreaterEqual;
    case ScalarOp::Greater:
      return ScalarOp::Less;
    case ScalarOp::GreaterEqual:
      return ScalarOp::LessEqual;
    default:
      return comparison;
  }
}

bool isAssociative(ScalarOp op) {
  switch (op) {
    case ScalarOp::Add:
    case ScalarOp::Mul:
    case ScalarOp::Max:
    case ScalarOp::Min:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
      return true;
    default:
      return false;
  }
}

/// x op constant = x.
bool isNeutral(ScalarOp op, ExprRef constant) {
  const ScalarType t = constant->type;
  switch (op) {
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::ShiftLeft:
    case ScalarOp::ShiftRight:
      return isInteger(constant, 0);
    case ScalarOp::Mul:
    case ScalarOp::Div:
      return isOne(constant);
    case ScalarOp::Max:
      return !isFloat(t) && constant->constant == identity(ReduceOp::Max, t);
    case ScalarOp::Min:
      return !isFloat(t) && constant->constant == identity(ReduceOp::Min, t);
    case ScalarOp::And:
      return constant->constant == identity(ReduceOp::And, t);
    case ScalarOp::Or:
    case ScalarOp::Xor:
      return isInteger(constant, 0);
    default:
      return false;
  }
}

/// x op constant = constant, for ints, chars and bools.
bool isAbsorbing(ScalarOp op, ExprRef constant) {
  const ScalarType t = constant->type;
  if (isFloat(t)) return false;
  switch (op) {
    case ScalarOp::Mul:
    case ScalarOp::And:
      return constant->constant.i == 0;
    case ScalarOp::Or:
      return constant->constant == identity(ReduceOp::And, t);
    case ScalarOp::Max:
      return constant->constant == identity(ReduceOp::Min, t);
    case ScalarOp::Min:
      return constant->constant == identity(ReduceOp::Max, t);
    default:
      return false;
  }
}

/// x divided by a positive constant.
bool isQuotient(ExprRef e, ExprRef x) {
  return isOp(e, ScalarOp::Div) && e->operands[0] == x && isConstant(e->operands[1]) &&
         e->operands[1]->constant.i > 0;
}

/// An integer that it is never below, if one is known.
std::optional<int64_t> leastOf(ExprRef e) {
  if (isOp(e, ScalarOp::Max) && isInt(e->type) && isConstant(e->operands[1]))
    return e->operands[1]->constant.i;
  if (e->nonNegative) return 0;
  return std::nullopt;
}

/// Both operands the same, of any type but float: the constant that results, if one does.
std::optional<Scalar> resultOnEqual(ScalarOp op, ScalarType type) {
  switch (op) {
    case ScalarOp::Sub:
    case ScalarOp::Xor:
      return Scalar::zero(type);
    case ScalarOp::Equal:
    case ScalarOp::LessEqual:
    case ScalarOp::GreaterEqual:
      return Scalar::ofBool(true);
    case ScalarOp::NotEqual:
    case ScalarOp::Less:
    case ScalarOp::Greater:
      return Scalar::ofBool(false);
    default:
      return std::nullopt;
  }
}

bool isIdempotent(ScalarOp op) {
  return op == ScalarOp::Max || op == ScalarOp::Min || op == ScalarOp::And || op == ScalarOp::Or;
}

/// Whether every value of `from` survives the way to `to` and back.
bool isExact(ScalarType from, ScalarType to) {
  switch (from) {
    case ScalarType::Bool:
      return true;
    case ScalarType::Char:
      return to != ScalarType::Bool;
    case ScalarType::Int32:
      return to == ScalarType::Int64 || to == ScalarType::Float64;
    case ScalarType::Float32:
      return to == ScalarType::Float64;
    default:
      return false;
  }
}

/// Differences of sums of ints, where a common term cancels: (x + y) - y, (x - y) + y, x - (x - y).
ExprRef cancelled(ScalarOp op, ExprRef a, ExprRef b) {
  const auto mayDrop = [](ExprRef e) { return !e->canFail; };
  if (op == ScalarOp::Sub && isOp(a, ScalarOp::Add)) {
    if (a->operands[1] == b && mayDrop(b)) return a->operands[0];
    if (a->operands[0] == b && mayDrop(b)) return a->operands[1];
  }
  if (op == ScalarOp::Sub && isOp(b, ScalarOp::Sub) && b->operands[0] == a && mayDrop(a))
    return b->operands[1];
  if (op == ScalarOp::Add && isOp(a, ScalarOp::Sub) && a->operands[1] == b && mayDrop(b))
    return a->operands[0];
  if (op == ScalarOp::Add && isOp(b, ScalarOp::Sub) && b->operands[1] == a && mayDrop(a))
    return b->operands[0];
  return nullptr;
}

}  // namespace

ExprRef ExprArena::op(ScalarOp op, ExprRef a, ExprRef b) {
  if (!a || isMultiValued(a) || !accepts(op, a->type))
    throw InternalError("expression: operand of the wrong type");
  if ((arity(op) == 2) != (b != nullptr)) throw InternalError("expression: wrong number of operands");
  const ScalarType type = a->type;
  if (b && (b->type != type || isMultiValued(b)))
    throw InternalError("expression: operands of different types");
  const auto make = [&](ExprRef x, ExprRef y) {
    Expr e{.kind = ExprKind::Op, .type = resultType(op, type), .op = op, .operands = {x}};
    if (y) e.operands.push_back(y);
    return intern(std::move(e));
  };

  if (!b) {
    if (isConstant(a) && folds(op)) return constant(evaluate(op, a->constant));
    if (op == ScalarOp::Not && isOp(a, ScalarOp::Not)) return a->operands[0];
    if (op == ScalarOp::Not && a->kind == ExprKind::Op && isComparison(a->op))
      if (const auto inverse = inverted(a->op, a->operands[0]->type))
        return this->op(*inverse, a->operands[0], a->operands[1]);
    if (op == ScalarOp::Negate && isInt(type) && isOp(a, ScalarOp::Negate)) return a->operands[0];
    return make(a, nullptr);
  }

  if (isConstant(a) && isConstant(b)) return constant(evaluate(op, a->constant, b->constant));
  // Constants go right, so that the rules below find them.
  if (isConstant(a)) {
    if (isComparison(op)) return this->op(mirrored(op), b, a);
    if (isAssociative(op) && !isFloat(type)) return this->op(op, b, a);
    if (isFloat(type) && op == ScalarOp::Mul && isOne(a)) return b;
    if (isInt(type) && op == ScalarOp::Sub && isInteger(a, 0)) return this->op(ScalarOp::Negate, b);
  }
  if (isConstant(b)) {
    if (isNeutral(op, b)) return a;
    if (isAbsorbing(op, b) && !a->canFail) return b;
    if (op == ScalarOp::Rem && isInteger(b, 1) && !a->canFail) return constant(Scalar::zero(type));
    if (op == ScalarOp::Sub && isInt(type)) return add(a, constant(evaluate(ScalarOp::Negate, b->constant)));
    if (isAssociative(op) && !isFloat(type) && isOp(a, op) && isConstant(a->operands[1]))
      return this->op(op, a->operands[0], constant(evaluate(op, a->operands[1]->constant, b->constant)));
    const bool isEquality = op == ScalarOp::Equal || op == ScalarOp::NotEqual;
    if (isEquality && type == ScalarType::Bool)
      return b->constant.isTrue() == (op == ScalarOp::Equal) ? a : negation(a);
    if (isEquality && isInt(type) && isOp(a, ScalarOp::Add) && isConstant(a->operands[1]))
      return this->op(op, a->operands[0],
                      constant(evaluate(ScalarOp::Sub, b->constant, a->operands[1]->constant)));
    if (const auto least = leastOf(a); least && !a->canFail) {
      const int64_t bound = b->constant.i;
      if (bound <= *least && (op == ScalarOp::GreaterEqual || op == ScalarOp::Less))
        return boolean(op == ScalarOp::GreaterEqual);
      if (bound < *least && (op == ScalarOp::Greater || op == ScalarOp::LessEqual))
        return boolean(op == ScalarOp::Greater);
      if (bound < *least && isEquality) return boolean(op == ScalarOp::NotEqual);
      if (bound <= *least && op == ScalarOp::Max) return a;
    }
  }
  if (a->nonNegative && b->nonNegative && !a->canFail && !b->canFail && isQuotient(a, b) &&
      (op == ScalarOp::LessEqual || op == ScalarOp::Greater))
    return boolean(op == ScalarOp::LessEqual);
  if (a->nonNegative && !a->canFail && isOp(b, ScalarOp::Negate) && b->operands[0]->nonNegative &&
      !b->canFail) {  // lengths of what take and drop leave
    if (op == ScalarOp::Max) return a;
    if (op == ScalarOp::GreaterEqual || op == ScalarOp::Less) return boolean(op == ScalarOp::GreaterEqual);
  }
  if (a == b && !isFloat(type)) {
    if (isIdempotent(op)) return a;
    if (const auto result = resultOnEqual(op, type); result && !a->canFail) return constant(*result);
  }
  if (isIdempotent(op) && !isFloat(type)) {
    if (isOp(a, op) && (a->operands[0] == b || a->operands[1] == b)) return a;
    if (isOp(b, op) && (b->operands[0] == a || b->operands[1] == a)) return b;
  }
  if (isInt(type))
    if (ExprRef rest = cancelled(op, a, b)) return rest;
  return make(a, b);
}

ExprRef ExprArena::convert(ExprRef a, ScalarType to) {
  if (isMultiValued(a)) throw InternalError("expression: conversion of several values");
  if (a->type == to) return a;
  if (isConstant(a)) return constant(kelpie::convert(a->constant, to));
  if (a->kind == ExprKind::Convert && a->operands[0]->type == to && isExact(to, a->type))
    return a->operands[0];
  return intern({.kind = ExprKind::Convert, .type = to, .operands = {a}});
}

}  // namespace kelpie::lcu

// The meaning of λcu expressions in its plainest form, to compare others with: recursive, without sharing.
#pragma once

#include <map>
#include <vector>

#include "ir/expr.h"

namespace kelpie::lcu {

/// Values for whatever an expression may read, and what its evaluation recorded.
struct Evaluation {
  std::vector<Scalar> params;
  std::map<VarId, Scalar> hosts;
  std::map<VarId, std::vector<Scalar>> arrays;
  std::map<std::pair<uint32_t, uint32_t>, Scalar> loopVars;
  std::map<uint32_t, ExprRef> recursions;  ///< those around, by id
  bool failed = false;
  int fuel = 100'000;  ///< loops end when it is used up
};

inline Scalar evaluate(ExprRef e, Evaluation& in);

inline std::vector<Scalar> evaluateLoop(ExprRef e, Evaluation& in) {
  std::vector<Scalar> values;
  for (uint32_t j = 0; j < e->count; ++j) values.push_back(evaluate(e->operands[j], in));
  const auto outside = in.loopVars;
  const auto step = [&] {
    for (uint32_t j = 0; j < e->count; ++j) in.loopVars[{e->index, j}] = values[j];
    return --in.fuel > 0 && evaluate(e->operands[e->count], in).isTrue() && !in.failed;
  };
  while (step()) {
    std::vector<Scalar> next;
    for (uint32_t j = 0; j < e->count; ++j) next.push_back(evaluate(e->operands[e->count + 1 + j], in));
    values = next;
  }
  in.loopVars = outside;
  return values;
}

/// The results of a Recursion, or of a Call of one, for the arguments that are its first operands.
inline std::vector<Scalar> evaluateCall(ExprRef e, Evaluation& in) {
  if (e->kind == ExprKind::Recursion) in.recursions[e->index] = e;
  ExprRef recursion = in.recursions.at(e->index);
  const size_t count = recursion->operands.size() - recursion->count;
  std::vector<Scalar> arguments, results;
  for (size_t j = 0; j < count; ++j) arguments.push_back(evaluate(e->operands[j], in));
  in.failed |= --in.fuel <= 0;
  const auto outside = in.loopVars;
  for (uint32_t j = 0; j < count; ++j) in.loopVars[{e->index, j}] = arguments[j];
  for (size_t j = count; j < recursion->operands.size(); ++j) {
    ExprRef result = recursion->operands[j];
    const bool zero = in.failed && e->kind == ExprKind::Call;
    results.push_back(zero ? Scalar::zero(result->type) : evaluate(result, in));
  }
  in.loopVars = outside;
  return results;
}

inline Scalar evaluate(ExprRef e, Evaluation& in) {
  switch (e->kind) {
    case ExprKind::Constant:
      return e->constant;
    case ExprKind::Param:
      return in.params.at(e->index);
    case ExprKind::Host:
      return in.hosts.at(e->index);
    case ExprKind::Load:
      return in.arrays.at(e->index).at(static_cast<size_t>(evaluate(e->operands[0], in).i));
    case ExprKind::Size:
      return Scalar::ofInt(kIndex, static_cast<int64_t>(in.arrays.at(e->index).size()));
    case ExprKind::Op: {
      const Scalar a = evaluate(e->operands[0], in);
      return arity(e->op) == 2 ? kelpie::evaluate(e->op, a, evaluate(e->operands[1], in))
                               : kelpie::evaluate(e->op, a);
    }
    case ExprKind::Convert:
      return convert(evaluate(e->operands[0], in), e->type);
    case ExprKind::Check: {
      const bool holds = evaluate(e->operands[0], in).isTrue();
      const Scalar value = evaluate(e->operands[1], in);
      evaluate(e->operands[3], in);
      evaluate(e->operands[4], in);
      in.failed |= !holds;
      return holds ? value : e->operands[2]->constant;
    }
    case ExprKind::LoopVar:
      return in.loopVars.at({e->index, e->count});
    case ExprKind::Project: {
      ExprRef values = e->operands[0];
      if (values->kind == ExprKind::Loop) return evaluateLoop(values, in).at(e->index);
      if (values->kind != ExprKind::If) return evaluateCall(values, in).at(e->index);
      const size_t from = evaluate(values->operands[0], in).isTrue() ? 1 : 1 + valueCount(values);
      return evaluate(values->operands[from + e->index], in);  // not its neighbours
    }
    case ExprKind::If:
    case ExprKind::Loop:
    case ExprKind::Recursion:
    case ExprKind::Call:
      break;
  }
  return {};
}

}  // namespace kelpie::lcu

#include "fusion/cost_model.h"

#include <algorithm>

#include "fusion/effects.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;

CostModel::CostModel(const lcu::Program& program, const TargetCosts& costs, SizeClasses classes,
                     std::unordered_map<ExprRef, double> known)
    : program_(program), costs_(costs), classes_(classes), known_(std::move(known)) {
  lcu::forEachBlock(program, [&](const lcu::Block& block) {
    for (const lcu::Stmt& stmt : block.stmts) {
      const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
      if (!launch) continue;
      for (const lcu::Soac& soac : launch->kernel.bindings) {
        if (soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition) {
          offsetsOfFilter_[soac.results[0]] = soac.space.extent;
        }
      }
    }
  });
}

double CostModel::elements(ExprRef extent) const {
  if (const auto it = known_.find(extent); it != known_.end()) return it->second;
  known_[extent] = classes_.unknownElements;  // in case the extent of an array mentions itself
  const double value = std::max(0.0, estimate(extent));
  known_[extent] = value;
  return value;
}

double CostModel::estimate(ExprRef e) const {
  switch (e->kind) {
    case ExprKind::Constant:
      return isFloat(e->type) ? e->constant.f : static_cast<double>(e->constant.i);
    case ExprKind::Size: {
      const ExprRef extent = program_.vars[e->index].extent;
      return extent && extent != e ? elements(extent) : classes_.unknownElements;
    }
    case ExprKind::Host:
      if (const auto it = offsetsOfFilter_.find(e->index); it != offsetsOfFilter_.end()) {
        return classes_.survivors * elements(it->second);
      }
      return classes_.unknownElements;
    case ExprKind::Load: {  // the total of an offsets array
      if (const auto it = offsetsOfFilter_.find(e->index); it != offsetsOfFilter_.end()) {
        return classes_.survivors * elements(it->second);
      }
      const ExprRef extent = program_.vars[e->index].extent;
      return extent ? std::max(1.0, classes_.unknownLength * (elements(extent) - 1))
                    : classes_.unknownElements;
    }
    case ExprKind::Convert:
    case ExprKind::Project:
      return elements(e->operands[0]);
    case ExprKind::Check:
      return elements(e->operands[1]);
    case ExprKind::If:
      return elements(e->operands[1]);
    case ExprKind::Op: {
      const double a = elements(e->operands[0]);
      const double b = e->operands.size() > 1 ? elements(e->operands[1]) : 0;
      switch (e->op) {
        case ScalarOp::Add:
          return a + b;
        case ScalarOp::Sub:
          return a > b ? a - b : classes_.survivors * a;
        case ScalarOp::Mul:
          return a * b;
        case ScalarOp::Div:
          return b > 0 ? a / b : a;
        case ScalarOp::Max:
          return std::max(a, b);
        case ScalarOp::Min:
          return std::min(a, b);
        default:
          return classes_.unknownElements;
      }
    }
    default:
      return classes_.unknownElements;
  }
}

double CostModel::bytesOf(lcu::VarId array) const {
  const lcu::VarInfo& var = program_.vars[array];
  return elements(var.extent) * sizeOf(var.type);
}

AccessPattern patternOf(ExprRef position) {
  if (position->kind == ExprKind::Param && position->index < 2) return AccessPattern::InOrder;
  const bool jumps = lcu::anyNode({position}, [](ExprRef e) {
    switch (e->kind) {
      case ExprKind::Load:  // where a segment begins is as good as a constant
        return e->operands[0]->kind != ExprKind::Param || e->operands[0]->index != 1;
      case ExprKind::Op:
        return e->op == ScalarOp::Mul || e->op == ScalarOp::Rem || isFloat(e->type);
      case ExprKind::Loop:
        return true;
      default:
        return false;
    }
  });
  return jumps ? AccessPattern::Arbitrary : AccessPattern::Shifted;
}

double CostModel::loads(AccessPattern pattern, lcu::VarId array, double count) const {
  if (pattern != AccessPattern::Arbitrary) return count * sizeOf(program_.vars[array].type) * costs_.byte;
  const double missing = std::max(0.0, 1 - costs_.cacheBytes / std::max(1.0, bytesOf(array)));
  return count * (costs_.cachedLoad + missing * (costs_.randomLoad - costs_.cachedLoad));
}

/// Of one element.
double CostModel::operation(ExprRef e) const {
  switch (e->kind) {
    case ExprKind::Convert:
    case ExprKind::Check:
    case ExprKind::If:
      return costs_.operation;
    case ExprKind::Op:
      break;
    default:
      return 0;
  }
  constexpr double kByConstant = 4;  // division by a constant is a few other operations
  const ScalarType type = e->operands[0]->type;
  const double narrow = type == ScalarType::Float32 ? costs_.float32 : 1;
  switch (e->op) {
    case ScalarOp::Div:
    case ScalarOp::Rem:
      if (isFloat(type)) return narrow * costs_.division;
      return e->operands[1]->kind == ExprKind::Constant ? kByConstant * costs_.operation
                                                        : costs_.integerDivision;
    case ScalarOp::Sqrt:
      return narrow * costs_.division;
    case ScalarOp::Exp:
    case ScalarOp::Sinh:
    case ScalarOp::Cosh:
    case ScalarOp::Tanh:
      return narrow * costs_.exponential;
    case ScalarOp::Ln:
      return narrow * costs_.logarithm;
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Tan:
    case ScalarOp::Asin:
    case ScalarOp::Acos:
    case ScalarOp::Atan:
      return narrow * costs_.trigonometric;
    default:
      return costs_.operation;
  }
}

double CostModel::arithmetic(const std::vector<ExprRef>& thunks) const {
  struct Facts {
    bool varies = false;  ///< with the element
    bool inLoop = false;
  };
  std::unordered_map<ExprRef, Facts> facts;
  double total = 0;
  lcu::forEachNode(thunks, [&](ExprRef e) {
    Facts own{e->kind == ExprKind::Param, e->kind == ExprKind::LoopVar};
    for (ExprRef operand : e->operands) {
      own.varies |= facts[operand].varies;
      own.inLoop |= facts[operand].inLoop && e->kind != ExprKind::Loop;
    }
    facts[e] = own;
    if (own.varies || own.inLoop) total += operation(e) * (own.inLoop ? classes_.iterations : 1);
  });
  return total;
}

double CostModel::evaluation(ExprRef e) const {
  double total = arithmetic({e});
  lcu::forEachNode({e}, [&](ExprRef node) { total += node->kind == ExprKind::Load ? costs_.cachedLoad : 0; });
  return total;
}

SoacTime CostModel::timeOf(const lcu::Soac& soac) const {
  SoacTime time;
  if (soac.kind == SoacKind::Once) return time;
  const double n = elements(soac.space.extent);
  std::vector<ExprRef> thunks = thunksOf(soac);
  time.arithmetic = n * arithmetic(thunks);
  if (soac.kind == SoacKind::Reduce || soac.kind == SoacKind::Scan)
    time.arithmetic += n * arithmetic(soac.combine.result);
  double width = 0;
  for (ExprRef e : soac.pull) width += sizeOf(e->type);
  switch (soac.kind) {
    case SoacKind::Scan:
      time.collective = n * (costs_.scanElement + width * costs_.scanByte);
      break;
    case SoacKind::Filter:
    case SoacKind::Partition:
      time.collective = n * (costs_.filterElement + width * costs_.filterByte);
      break;
    case SoacKind::Permute: {
      time.collective = n * costs_.permuteElement;
      const double target = elements(soac.target) * width;
      if (patternOf(soac.destination) == AccessPattern::Arbitrary)
        time.collective +=
            n * costs_.randomStore * std::max(0.0, 1 - costs_.cacheBytes / std::max(1.0, target));
      break;
    }
    default:
      break;
  }
  if (soac.space.segmented()) {
    const double m = elements(soac.space.segments);
    const bool knows = soac.kind != SoacKind::Reduce || lcu::anyNode(thunks, [](ExprRef e) {
                         return e->kind == ExprKind::Param && e->index > 0;
                       });
    time.segments = knows ? n * costs_.segmentedElement + m * costs_.segment
                          : n * costs_.foldedElement + m * costs_.foldedSegment;
  }
  return time;
}

double CostModel::predicted(double memory, const SoacTime& rest) const {
  // Kernels with a scan or a filter load, compute and store in turns: nothing hides behind anything else.
  const double hidden = rest.collective > 0 ? 0 : costs_.overlap * std::min(memory, rest.arithmetic);
  return costs_.launch + memory + rest.arithmetic - hidden + rest.collective + rest.segments;
}

double CostModel::collectiveBytes(const lcu::Soac& soac) const {
  double bytes = 0;
  switch (soac.kind) {
    case SoacKind::Scan:
    case SoacKind::Filter:
    case SoacKind::Partition:
      for (ExprRef e : soac.pull) bytes += sizeOf(e->type);
      return soac.kind == SoacKind::Scan ? bytes : bytes + 4;
    default:
      return 0;
  }
}

}  // namespace kelpie::fusion

#include "fusion/cost_model.h"

#include <algorithm>

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;

// Figures of one H200 (4.1 TB/s) and of two cores of a desktop CPU; what matters are their ratios.
TargetCosts cudaCosts() { return {"cuda", 4.0, 2.5e-7, 5e-7, 3e-7, 5e-8, 1e-6, 64}; }
TargetCosts cpuCosts() { return {"cpu", 5.0, 5e-5, 2e-4, 2e-4, 1e-4, 5e-3, 256}; }

CostModel::CostModel(const lcu::Program& program, TargetCosts costs, SizeClasses classes,
                     std::unordered_map<ExprRef, double> known)
    : program_(program), costs_(std::move(costs)), classes_(classes), known_(std::move(known)) {
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

double CostModel::evaluation(ExprRef e) const {
  double total = 0;
  lcu::forEachNode({e}, [&](ExprRef node) {
    switch (node->kind) {
      case ExprKind::Load:
        total += costs_.cachedLoad;
        break;
      case ExprKind::Op:
        total += node->op >= ScalarOp::Sqrt && node->op != ScalarOp::Floor ? costs_.transcendental
                                                                           : costs_.operation;
        break;
      case ExprKind::Convert:
      case ExprKind::Check:
      case ExprKind::If:
        total += costs_.operation;
        break;
      case ExprKind::Loop:
        total += 1000 * costs_.transcendental;
        break;
      default:
        break;
    }
  });
  return total;
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

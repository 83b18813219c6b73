#include "fusion/early_launches.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace kelpie::fusion {
namespace {

using lcu::Block;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

bool isZero(ExprRef e) {
  return e->kind == ExprKind::Constant && e->constant == Scalar::ofInt(lcu::kIndex, 0);
}

/// The host variable that a condition compares with 0, and whether the condition holds where it is 0.
struct Emptiness {
  ExprRef number = nullptr;
  bool holds = true;
};

/// Only for equality: where a number is less than 0 no kernel may run over so many elements.
Emptiness emptinessOf(ExprRef condition) {
  if (condition->kind != ExprKind::Op) return {};
  const ExprRef left = condition->operands[0];
  if (condition->op == ScalarOp::Not) {
    const Emptiness inner = emptinessOf(left);
    return {inner.number, !inner.holds};
  }
  if (condition->op != ScalarOp::Equal && condition->op != ScalarOp::NotEqual) return {};
  const ExprRef right = condition->operands[1];
  const bool holds = condition->op == ScalarOp::Equal;
  if (left->kind == ExprKind::Host && isZero(right)) return {left, holds};
  if (right->kind == ExprKind::Host && isZero(left)) return {right, holds};
  return {};
}

/// Whether nothing happens when the kernel runs over no elements but that scans and reductions are empty.
bool doesNothingOver(const lcu::Kernel& kernel, ExprRef number) {
  return std::all_of(kernel.bindings.begin(), kernel.bindings.end(), [&](const Soac& soac) {
    const bool kind = soac.kind == SoacKind::Map || soac.kind == SoacKind::Filter ||
                      soac.kind == SoacKind::Scan || soac.kind == SoacKind::Reduce;
    return kind && soac.space.kind == lcu::SpaceKind::Flat && soac.space.extent == number;
  });
}

/// Whether kernels behind the statement may run before it.
bool mayBePassed(const lcu::Stmt& stmt) {
  if (std::holds_alternative<lcu::ArrayConstant>(stmt.node)) return true;
  const auto* let = std::get_if<lcu::HostLet>(&stmt.node);
  return let && std::none_of(let->values.begin(), let->values.end(), [](ExprRef e) { return e->canFail; });
}

class Mover {
 public:
  explicit Mover(lcu::Program& program) : program_(program) {}

  int run() {
    for (lcu::HostFunction& f : program_.functions) block(f.body);
    block(program_.entry.body);
    return moved_;
  }

 private:
  void block(Block& b) {
    for (size_t k = 0; k < b.stmts.size(); ++k) {
      if (auto* loop = std::get_if<lcu::HostLoop>(&b.stmts[k].node)) {
        block(*loop->condition);
        block(*loop->body);
      } else if (auto* branch = std::get_if<lcu::HostIf>(&b.stmts[k].node)) {
        block(*branch->thenBlock);
        block(*branch->elseBlock);
        const Emptiness emptiness = emptinessOf(branch->condition);
        if (!emptiness.number) continue;
        Block& filled = emptiness.holds ? *branch->elseBlock : *branch->thenBlock;
        for (lcu::Stmt& launch : firstLaunches(filled, emptiness.number)) {
          b.stmts.insert(b.stmts.begin() + static_cast<ptrdiff_t>(k++), std::move(launch));
          ++moved_;
        }
      }
    }
  }

  /// Takes out of the branch what may stand before it.
  static std::vector<lcu::Stmt> firstLaunches(Block& branch, ExprRef number) {
    std::vector<lcu::Stmt> launches;
    std::set<VarId> inside;
    for (size_t k = 0; k < branch.stmts.size();) {
      lcu::Stmt& stmt = branch.stmts[k];
      const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
      if (!launch && !mayBePassed(stmt)) break;
      const std::vector<VarId> read = lcu::freeVars(stmt);
      const bool outside =
          std::none_of(read.begin(), read.end(), [&](VarId v) { return inside.contains(v); });
      if (!launch) {
        inside.insert(stmt.results.begin(), stmt.results.end());
        ++k;
      } else if (outside && doesNothingOver(launch->kernel, number)) {
        launches.push_back(std::move(stmt));
        branch.stmts.erase(branch.stmts.begin() + static_cast<ptrdiff_t>(k));
      } else {
        break;
      }
    }
    return launches;
  }

  lcu::Program& program_;
  int moved_ = 0;
};

}  // namespace

int launchEarly(lcu::Program& program) { return Mover(program).run(); }

}  // namespace kelpie::fusion

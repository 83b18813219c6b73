#include "codegen/loop_exits.h"

#include <algorithm>

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

std::optional<uint32_t> endFlag(ExprRef loop) {
  const ExprRef condition = loopCondition(loop);
  if (condition->kind != ExprKind::Op || condition->op != ScalarOp::Not) return std::nullopt;
  const ExprRef flag = condition->operands[0];
  if (flag->kind != ExprKind::LoopVar || flag->index != loop->index) return std::nullopt;
  const ExprRef initial = loopInitial(loop)[flag->count];
  if (initial->kind != ExprKind::Constant || initial->constant.isTrue()) return std::nullopt;
  return flag->count;
}

namespace {

/// `budget`: nodes to look at, which may be shared by many paths.
std::optional<bool> knownValue(ExprRef e, const Facts& facts, int& budget) {
  if (--budget < 0) return std::nullopt;
  for (const auto& [fact, value] : facts)
    if (fact == e) return value;
  if (e->kind == ExprKind::Constant) return e->constant.isTrue();
  if (e->kind != ExprKind::Op || e->operands[0]->type != ScalarType::Bool) return std::nullopt;
  const auto a = knownValue(e->operands[0], facts, budget);
  if (e->op == ScalarOp::Not) return a ? std::optional(!*a) : std::nullopt;
  if (e->op != ScalarOp::And && e->op != ScalarOp::Or) return std::nullopt;
  const bool decides = e->op == ScalarOp::Or;  // one operand alone
  const auto b = knownValue(e->operands[1], facts, budget);
  if (a == decides || b == decides) return decides;
  return a && b ? std::optional(!decides) : std::nullopt;
}

bool isResultOf(ExprRef e, ExprRef ifNode) {
  return e->kind == ExprKind::Project && e->operands[0] == ifNode;
}

}  // namespace

std::optional<bool> knownValue(ExprRef e, const Facts& facts) {
  int budget = 200;
  return knownValue(e, facts, budget);
}

std::optional<size_t> lastIf(const ScheduleBlock& block, const std::vector<ExprRef>& ends) {
  for (size_t k = block.steps.size(); k-- > 0;) {
    const ExprRef node = block.steps[k].node;
    if (node->kind != ExprKind::If) {
      // Operations whose operands are in this block: none hides a use of the If in a block of its own.
      const bool simple =
          node->kind == ExprKind::Op || node->kind == ExprKind::Convert || node->kind == ExprKind::Load;
      if (!simple || node->canFail) return std::nullopt;
      continue;
    }
    const bool needed = std::any_of(
        block.steps.begin() + static_cast<std::ptrdiff_t>(k) + 1, block.steps.end(), [&](const auto& later) {
          return std::any_of(later.node->operands.begin(), later.node->operands.end(),
                             [&](ExprRef operand) { return isResultOf(operand, node); });
        });
    const bool wanted = std::any_of(ends.begin(), ends.end(), [&](ExprRef e) { return isResultOf(e, node); });
    return wanted && !needed ? std::optional(k) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<ExprRef> endsOfBranch(ExprRef ifNode, bool then, const std::vector<ExprRef>& ends) {
  const std::vector<ExprRef> values = then ? thenValues(ifNode) : elseValues(ifNode);
  std::vector<ExprRef> result = ends;
  for (ExprRef& e : result)
    if (isResultOf(e, ifNode)) e = values[e->index];
  return result;
}

}  // namespace kelpie::codegen

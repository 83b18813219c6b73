#include "frontend/effects.h"

namespace kelpie {

Effects::Effects(const core::Program& program) : functions_(program.functions.size(), false) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t f = 0; f < functions_.size(); ++f) {
      const core::Function& function = program.functions[f];
      if (functions_[f] || !function.body || !scan(*function.body)) continue;
      functions_[f] = changed = true;
    }
  }
  for (const core::Function& function : program.functions) {
    if (function.body) scan(*function.body);
  }
  scan(*program.entry);
}

bool Effects::scan(const core::Exp& exp) {
  if (const auto* let = std::get_if<core::Let>(&exp.node)) {
    // Chains of lets are long: walk them instead of recurring.
    bool effect = scan(*let->rhs);
    const core::Exp* body = let->body.get();
    for (; std::holds_alternative<core::Let>(body->node); body = std::get<core::Let>(body->node).body.get()) {
      effect = scan(*std::get<core::Let>(body->node).rhs) || effect;
    }
    return scan(*body) || effect;
  }
  if (const auto* branch = std::get_if<core::If>(&exp.node)) {
    bool effect = false;
    for (const core::ExpPtr& side : {branch->thenBranch, branch->elseBranch}) {
      if (!scan(*side)) continue;
      effectful_.insert(side.get());
      effect = true;
    }
    return effect;
  }
  if (const auto* call = std::get_if<core::Call>(&exp.node)) return functions_[call->function];
  if (const auto* prim = std::get_if<core::Prim>(&exp.node)) return prim->op >= core::PrimOp::RandomInt;
  if (const auto* each = std::get_if<core::Each>(&exp.node)) return scan(*each->body);
  if (const auto* invariant = std::get_if<core::Invariant>(&exp.node)) return scan(*invariant->body);
  return false;
}

}  // namespace kelpie

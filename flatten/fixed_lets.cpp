#include "flatten/fixed_lets.h"

namespace kelpie::flatten {

using core::ExpPtr;
using core::VarId;

std::vector<bool> FixedLets::moving(const Chain& body, std::unordered_set<VarId> varying) const {
  const size_t count = body.lets.size();
  std::vector<bool> fixed(count), moves(count);
  std::vector<std::unordered_set<VarId>> uses(count);
  bool mayFailBefore = false;
  for (size_t k = 0; k < count; ++k) {
    const Chain::Binding& let = body.lets[k];
    uses[k] = usesOf(let.rhs);
    const bool fails = risky(let.rhs);
    fixed[k] = !analysis_.effects(let.rhs) && !let.vars.empty() && !(fails && mayFailBefore);
    for (VarId var : uses[k]) fixed[k] = fixed[k] && !varying.contains(var);
    if (fixed[k]) continue;
    for (const core::Var& var : let.vars) varying.insert(var.id);
    mayFailBefore |= fails || analysis_.effects(let.rhs);
  }
  std::unordered_set<VarId> needed;
  for (size_t k = count; k-- > 0;) {
    if (!fixed[k]) continue;
    const ExpPtr& rhs = body.lets[k].rhs;
    // What uses no variable at all is computed once wherever it stands.
    const bool once = std::holds_alternative<core::Invariant>(rhs->node);
    moves[k] = !once && (!analysis_.delayable(rhs) || analysis_.repeats(rhs));
    for (const core::Var& var : body.lets[k].vars) moves[k] = moves[k] || needed.contains(var.id);
    if (moves[k]) needed.insert(uses[k].begin(), uses[k].end());
  }
  return moves;
}

bool FixedLets::risky(const ExpPtr& e) const {
  if (analysis_.uncontained(e)) return true;
  const Chain chain = takeApart(e);
  bool found = false;
  auto visit = [&](const ExpPtr& x) {
    if (auto* prim = std::get_if<core::Prim>(&x->node)) found |= isChecked(prim->op);
    if (auto* each = std::get_if<core::Each>(&x->node)) found |= each->bindings.size() > 1;
    if (auto* call = std::get_if<core::Call>(&x->node)) found |= riskyFunction(call->function);
    forEachPart(*x, [&](const ExpPtr& part) { found |= risky(part); });
  };
  for (const Chain::Binding& let : chain.lets) visit(let.rhs);
  visit(chain.tail);
  return found;
}

bool FixedLets::riskyFunction(core::FunctionId f) const {
  // True while it is looked at: recursion is a risk.
  const auto [known, isNew] = riskyFunctions_.emplace(f, true);
  if (!isNew) return known->second;
  const ExpPtr& body = program_.functions[f].body;
  const bool risk = !body || analysis_.recursive(f) || risky(body);
  riskyFunctions_[f] = risk;
  return risk;
}

}  // namespace kelpie::flatten

#include "fusion/effects.h"

#include <algorithm>

namespace kelpie::fusion {

Effects::Effects(const lcu::Program& program) : serves_(program.functions.size(), false) {
  for (bool changed = true; changed;) {  // until recursive calls agree
    changed = false;
    for (size_t f = 0; f < program.functions.size(); ++f) {
      if (serves_[f] || !mayServe(program.functions[f].body)) continue;
      serves_[f] = true;
      changed = true;
    }
  }
}

bool Effects::mayServe(const lcu::Block& block) const {
  return std::any_of(block.stmts.begin(), block.stmts.end(),
                     [&](const lcu::Stmt& stmt) { return mayServe(stmt); });
}

bool Effects::mayServe(const lcu::Stmt& stmt) const {
  if (std::holds_alternative<lcu::Service>(stmt.node)) return true;
  if (const auto* call = std::get_if<lcu::CallFunction>(&stmt.node)) return serves_[call->function];
  if (const auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
    return mayServe(*conditional->thenBlock) || mayServe(*conditional->elseBlock);
  }
  if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
    return mayServe(*loop->condition) || mayServe(*loop->body);
  }
  return false;
}

bool Effects::mayFail(const lcu::Stmt& stmt) const {
  const auto canFail = [](lcu::ExprRef e) { return e && e->canFail; };
  if (const auto* let = std::get_if<lcu::HostLet>(&stmt.node)) {
    return std::any_of(let->values.begin(), let->values.end(), canFail);
  }
  if (const auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
    return std::any_of(launch->kernel.bindings.begin(), launch->kernel.bindings.end(),
                       [&](const lcu::Soac& soac) {
                         const std::vector<lcu::ExprRef> all = expressionsOf(soac);
                         return std::any_of(all.begin(), all.end(), canFail);
                       });
  }
  return !std::holds_alternative<lcu::ArrayConstant>(stmt.node) &&
         !std::holds_alternative<lcu::Join>(stmt.node) && !std::holds_alternative<lcu::Grade>(stmt.node);
}

std::vector<lcu::ExprRef> thunksOf(const lcu::Soac& soac) {
  std::vector<lcu::ExprRef> result = soac.pull;
  for (lcu::ExprRef e : {soac.where, soac.destination}) {
    if (e) result.push_back(e);
  }
  result.insert(result.end(), soac.effects.begin(), soac.effects.end());
  return result;
}

std::vector<lcu::ExprRef> expressionsOf(const lcu::Soac& soac) {
  std::vector<lcu::ExprRef> result = thunksOf(soac);
  result.insert(result.end(), soac.combine.result.begin(), soac.combine.result.end());
  for (lcu::ExprRef e : {soac.space.extent, soac.space.segments, soac.space.length, soac.target}) {
    if (e) result.push_back(e);
  }
  return result;
}

}  // namespace kelpie::fusion

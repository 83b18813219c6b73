#include "fusion/effects.h"

#include <algorithm>

namespace kelpie::fusion {

namespace {

bool isService(const lcu::Stmt& stmt) { return std::holds_alternative<lcu::Service>(stmt.node); }
bool isLoop(const lcu::Stmt& stmt) { return std::holds_alternative<lcu::HostLoop>(stmt.node); }

/// Calls `visit` with each function that the block calls.
template <class Visit>
void forEachCall(const lcu::Block& block, const Visit& visit) {
  for (const lcu::Stmt& stmt : block.stmts) {
    if (const auto* call = std::get_if<lcu::CallFunction>(&stmt.node)) visit(call->function);
    if (const auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
      forEachCall(*conditional->thenBlock, visit);
      forEachCall(*conditional->elseBlock, visit);
    } else if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
      forEachCall(*loop->condition, visit);
      forEachCall(*loop->body, visit);
    }
  }
}

/// By function: whether its calls come back to it.
std::vector<bool> recursive(const lcu::Program& program) {
  const size_t n = program.functions.size();
  std::vector<std::vector<size_t>> callees(n);
  for (size_t f = 0; f < n; ++f)
    forEachCall(program.functions[f].body, [&](size_t callee) { callees[f].push_back(callee); });
  std::vector<bool> result(n, false);
  for (size_t f = 0; f < n; ++f) {
    std::vector<bool> seen(n, false);
    std::vector<size_t> open = {f};
    while (!open.empty() && !result[f]) {
      const size_t caller = open.back();
      open.pop_back();
      for (const size_t callee : callees[caller]) {
        if (callee == f) result[f] = true;
        if (!seen[callee]) open.push_back(callee);
        seen[callee] = true;
      }
    }
  }
  return result;
}

}  // namespace

Effects::Effects(const lcu::Program& program)
    : serves_(program.functions.size(), false), goesOn_(recursive(program)) {
  const auto complete = [&](std::vector<bool>& found, OfStatement predicate) {
    for (bool changed = true; changed;) {  // until recursive calls agree
      changed = false;
      for (size_t f = 0; f < program.functions.size(); ++f) {
        if (found[f] || !holds(program.functions[f].body, predicate, found)) continue;
        found[f] = true;
        changed = true;
      }
    }
  };
  complete(serves_, isService);
  complete(goesOn_, isLoop);
}

bool Effects::holds(const lcu::Block& block, OfStatement predicate, const std::vector<bool>& found) {
  return std::any_of(block.stmts.begin(), block.stmts.end(),
                     [&](const lcu::Stmt& stmt) { return holds(stmt, predicate, found); });
}

bool Effects::holds(const lcu::Stmt& stmt, OfStatement predicate, const std::vector<bool>& found) {
  if (predicate(stmt)) return true;
  if (const auto* call = std::get_if<lcu::CallFunction>(&stmt.node)) return found[call->function];
  if (const auto* conditional = std::get_if<lcu::HostIf>(&stmt.node))
    return holds(*conditional->thenBlock, predicate, found) ||
           holds(*conditional->elseBlock, predicate, found);
  if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node))
    return holds(*loop->condition, predicate, found) || holds(*loop->body, predicate, found);
  return false;
}

bool Effects::mayServe(const lcu::Stmt& stmt) const { return holds(stmt, isService, serves_); }
bool Effects::mayGoOn(const lcu::Stmt& stmt) const { return holds(stmt, isLoop, goesOn_); }

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

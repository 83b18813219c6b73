#include "fusion/dead_code.h"

#include <algorithm>
#include <set>

#include "fusion/effects.h"

namespace kelpie::fusion {
namespace {

using lcu::VarId;

class Remover {
 public:
  explicit Remover(const lcu::Program& program) : program_(program), effects_(program) {}

  void removeFrom(lcu::Block& block, std::set<VarId>& used) {
    useAll(block.results, used);
    for (size_t k = block.stmts.size(); k-- > 0;) {
      lcu::Stmt& stmt = block.stmts[k];
      const bool isUsed =
          std::any_of(stmt.results.begin(), stmt.results.end(), [&](VarId v) { return used.contains(v); });
      if (!isUsed && isRemovable(stmt)) {
        block.stmts.erase(block.stmts.begin() + static_cast<ptrdiff_t>(k));
        ++removed;
        continue;
      }
      if (auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
        removeFrom(*conditional->thenBlock, used);
        removeFrom(*conditional->elseBlock, used);
      } else if (auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
        removeFrom(*loop->condition, used);
        removeFrom(*loop->body, used);
      }
      dropResults(stmt, used);
      useAll(lcu::freeVars(stmt), used);
    }
  }

  int removed = 0;

 private:
  /// Results of maps, filters and sorts that nobody uses. What can fail of a map is still evaluated.
  static void dropResults(lcu::Stmt& stmt, const std::set<VarId>& used) {
    if (auto* grade = std::get_if<lcu::Grade>(&stmt.node)) {
      size_t k = 0;
      const auto isUsed = [&](VarId result) { return used.contains(result); };
      if (std::none_of(stmt.results.begin(), stmt.results.end(), isUsed)) return;
      for (bool* given : {&grade->order, &grade->sorted, &grade->ranks})
        if (*given) *given = isUsed(stmt.results[k++]);
      std::erase_if(stmt.results, std::not_fn(isUsed));
      return;
    }
    auto* launch = std::get_if<lcu::Launch>(&stmt.node);
    if (!launch || launch->kernel.bindings.size() != 1) return;
    lcu::Soac& soac = launch->kernel.bindings[0];
    if (soac.kind != lcu::SoacKind::Map && soac.kind != lcu::SoacKind::Filter) return;
    const size_t values = soac.results.size() - soac.pull.size();  // a filter's count comes first
    std::vector<lcu::ExprRef> failing;                             // the last one first
    for (size_t k = soac.pull.size(); k-- > 0;) {
      const VarId result = soac.results[values + k];
      if (used.contains(result)) continue;
      const bool isMap = soac.kind == lcu::SoacKind::Map, fails = soac.pull[k]->canFail;
      if (fails && !isMap) continue;
      // What is left of a flat filter without values is its count.
      const bool mayBeEmpty =
          isMap ? fails || !failing.empty() || !soac.effects.empty() : !soac.space.segmented();
      if (soac.pull.size() == 1 && !mayBeEmpty) continue;
      if (fails) failing.push_back(soac.pull[k]);
      soac.pull.erase(soac.pull.begin() + static_cast<ptrdiff_t>(k));
      std::erase(soac.results, result);
      std::erase(launch->kernel.returns, result);
      std::erase(stmt.results, result);
    }
    soac.effects.insert(soac.effects.end(), failing.rbegin(), failing.rend());
  }

  /// The extent of an array that is used is used, too.
  void useAll(const std::vector<VarId>& vars, std::set<VarId>& used) const {
    for (VarId var : vars) {
      if (!used.insert(var).second) continue;
      const lcu::ExprRef extent = program_.vars[var].extent;
      if (extent) useAll(lcu::freeVars(std::vector{extent}), used);
    }
  }

  bool isRemovable(const lcu::Stmt& stmt) const {
    if (std::holds_alternative<lcu::CallFunction>(stmt.node) ||
        std::holds_alternative<lcu::HostIf>(stmt.node) || std::holds_alternative<lcu::HostLoop>(stmt.node)) {
      return false;
    }
    return !effects_.mayServe(stmt) && !effects_.mayFail(stmt);
  }

  const lcu::Program& program_;
  const Effects effects_;
};

}  // namespace

int removeDeadCode(lcu::Program& program) {
  Remover remover(program);
  std::set<VarId> used;
  remover.removeFrom(program.entry.body, used);
  for (lcu::HostFunction& function : program.functions) {
    std::set<VarId> usedInside;
    remover.removeFrom(function.body, usedInside);
  }
  return remover.removed;
}

}  // namespace kelpie::fusion

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
      useAll(lcu::freeVars(stmt), used);
    }
  }

  int removed = 0;

 private:
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

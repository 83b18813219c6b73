#include "flatten/device_conditions.h"

#include <fmt/format.h>

#include <algorithm>

namespace kelpie::flatten {
namespace {

using lcu::Block;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Stmt;
using lcu::VarKind;

class LoopPass {
 public:
  explicit LoopPass(lcu::Program& program) : program_(program) {}

  void run(Block& block) {
    for (Stmt& stmt : block.stmts)
      if (auto* loop = std::get_if<lcu::HostLoop>(&stmt.node))
        if (!waits(*loop->condition) && !waits(*loop->body)) move(*loop->body);
  }

 private:
  bool readsDevice(const std::vector<ExprRef>& es) const {
    return lcu::anyNode(es, [this](ExprRef e) {
      return e->kind == ExprKind::Load || e->kind == ExprKind::Size ||
             (e->kind == ExprKind::Host && program_.vars[e->index].kind == VarKind::Cell);
    });
  }
  bool waits(const lcu::Space& space) const {
    std::vector<ExprRef> sizes;
    for (ExprRef e : {space.extent, space.segments, space.length})
      if (e) sizes.push_back(e);
    return readsDevice(sizes);
  }
  static bool readsSizes(const lcu::Soac& soac) {
    std::vector<ExprRef> thunks = soac.pull;
    thunks.insert(thunks.end(), soac.effects.begin(), soac.effects.end());
    for (ExprRef e : {soac.where, soac.destination})
      if (e) thunks.push_back(e);
    return lcu::anyNode(thunks, [](ExprRef e) { return e->kind == ExprKind::Size; });
  }

  /// Whether the host waits in the block, conditions aside.
  bool waits(const Block& block) const {
    return std::any_of(block.stmts.begin(), block.stmts.end(), [this](const Stmt& stmt) {
      if (const auto* let = std::get_if<lcu::HostLet>(&stmt.node)) return readsDevice(let->values);
      if (const auto* branch = std::get_if<lcu::HostIf>(&stmt.node))
        return waits(*branch->thenBlock) || waits(*branch->elseBlock);
      if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node))
        return waits(*loop->condition) || waits(*loop->body);
      if (const auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
        const lcu::Soac& soac = launch->kernel.bindings.front();
        return waits(soac.space) || (soac.target && readsDevice({soac.target})) || readsSizes(soac);
      }
      return !std::holds_alternative<lcu::ArrayConstant>(stmt.node);
    });
  }

  void move(Block& block) {
    for (auto at = block.stmts.begin(); at != block.stmts.end(); ++at) {
      auto* branch = std::get_if<lcu::HostIf>(&at->node);
      if (!branch) continue;
      move(*branch->thenBlock);
      move(*branch->elseBlock);
      if (branch->condition->kind == ExprKind::Host || !readsDevice({branch->condition})) continue;
      lcu::Soac once;
      once.kind = lcu::SoacKind::Once;
      once.pull = {branch->condition};
      once.span = at->span;
      const lcu::VarId decided = program_.newVar({"decided", VarKind::Cell, ScalarType::Bool, nullptr});
      once.results = {decided};
      branch->condition = program_.arena->host(decided, ScalarType::Bool);
      Stmt stmt;
      stmt.span = at->span;
      stmt.results = {decided};
      stmt.node = lcu::Launch{{fmt::format("condition_{}", decided), {once}, {decided}}};
      at = std::next(block.stmts.insert(at, std::move(stmt)));
    }
  }

  lcu::Program& program_;
};

}  // namespace

void conditionsOnDevice(lcu::Program& program) {
  LoopPass pass(program);
  lcu::forEachBlock(program, [&](Block& block) { pass.run(block); });
}

}  // namespace kelpie::flatten

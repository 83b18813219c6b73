#include "flatten/rematerialise.h"

#include <algorithm>
#include <map>
#include <set>

namespace kelpie::flatten {
namespace {

using lcu::Block;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::Space;
using lcu::Stmt;
using lcu::VarId;

constexpr size_t kOperations = 32;

/// The one SOAC of a statement that launches a kernel; null for other statements.
Soac* soacOf(Stmt& stmt) {
  auto* launch = std::get_if<lcu::Launch>(&stmt.node);
  return launch ? &launch->kernel.bindings.front() : nullptr;
}

/// Every thunk of a SOAC, by reference.
std::vector<ExprRef*> thunksOf(Soac& soac) {
  std::vector<ExprRef*> thunks;
  for (ExprRef& e : soac.pull) thunks.push_back(&e);
  for (ExprRef& e : soac.effects) thunks.push_back(&e);
  if (soac.where) thunks.push_back(&soac.where);
  if (soac.destination) thunks.push_back(&soac.destination);
  return thunks;
}

bool isElementNumber(ExprRef e) { return e->kind == ExprKind::Param && e->index == 0; }

/// Reads the same memory for many elements: the address depends on the segment only, or on the position only.
bool isReused(ExprRef load, const Space& space) {
  bool usesElement = false, usesSegment = false, usesPosition = false;
  lcu::forEachNode({load->operands[0]}, [&](ExprRef n) {
    if (n->kind == ExprKind::Load) usesElement = true;
    if (n->kind != ExprKind::Param) return;
    usesElement |= n->index == 0;
    usesSegment |= n->index == 1;
    usesPosition |= n->index == 2;
  });
  return space.segmented() && !usesElement && !(usesSegment && usesPosition);
}

bool isCheap(const Soac& map) {
  size_t operations = 0, read = 0, kept = 0;
  bool simple = map.effects.empty() && !map.pull.empty();
  for (ExprRef e : map.pull) {
    simple &= !e->canFail;
    kept += static_cast<size_t>(sizeOf(e->type));
  }
  lcu::forEachNode(map.pull, [&](ExprRef n) {
    operations += n->kind == ExprKind::Op || n->kind == ExprKind::Convert || n->kind == ExprKind::If;
    simple &= !lcu::isUnbounded(n) && (n->kind != ExprKind::Op || n->op <= ScalarOp::Sqrt);
    if (n->kind == ExprKind::Load && !isReused(n, map.space)) read += static_cast<size_t>(sizeOf(n->type));
  });
  return simple && operations <= kOperations && read <= kept;
}

class BlockPass {
 public:
  BlockPass(lcu::Program& program, Block& block) : program_(program), block_(block) {}

  void run() {
    for (size_t k = 0; k < block_.stmts.size(); ++k)
      for (VarId var : lcu::freeVars(block_.stmts[k])) users_[var].push_back(k);
    std::set<size_t> dissolved;
    for (size_t k = 0; k < block_.stmts.size(); ++k) {
      Soac* map = soacOf(block_.stmts[k]);
      if (!map || map->kind != SoacKind::Map || !isCheap(*map)) continue;
      const std::vector<size_t> consumers = consumersOf(*map);
      if (consumers.size() < 2 || !mustBeKept(k, consumers)) continue;
      for (size_t c : consumers) substitute(*map, *soacOf(block_.stmts[c]), c);
      dissolved.insert(k);
    }
    size_t k = 0;
    std::erase_if(block_.stmts, [&](const Stmt&) { return dissolved.contains(k++); });
  }

 private:
  /// The statements that read the map, in order; none if anything keeps it from being dissolved.
  std::vector<size_t> consumersOf(const Soac& map) {
    std::set<size_t> consumers;
    for (VarId result : map.results) {
      if (std::find(block_.results.begin(), block_.results.end(), result) != block_.results.end()) return {};
      for (size_t user : users_[result]) consumers.insert(user);
    }
    for (size_t user : consumers) {
      Soac* soac = soacOf(block_.stmts[user]);
      if (!soac || !(soac->space == map.space)) return {};
      if (soac->target && readsAny({soac->target}, map)) return {};
      std::vector<ExprRef> thunks;
      for (ExprRef* e : thunksOf(*soac)) thunks.push_back(*e);
      const bool other = lcu::anyNode(thunks, [&](ExprRef n) {
        return (n->kind == ExprKind::Size && isResult(map, n->index)) ||
               (n->kind == ExprKind::Load && isResult(map, n->index) && !isElementNumber(n->operands[0]));
      });
      if (other) return {};
    }
    return {consumers.begin(), consumers.end()};
  }

  static bool isResult(const Soac& map, VarId var) {
    return std::find(map.results.begin(), map.results.end(), var) != map.results.end();
  }
  static bool readsAny(const std::vector<ExprRef>& es, const Soac& map) {
    return lcu::anyNode(es, [&](ExprRef n) {
      return (n->kind == ExprKind::Size || n->kind == ExprKind::Load) && isResult(map, n->index);
    });
  }

  /// A consumer needs a result that a consumer, or what follows from one, does not have before its pass is
  /// over.
  bool mustBeKept(size_t map, const std::vector<size_t>& consumers) {
    std::set<VarId> inPass, late;  // results that depend on the map: while its pass runs, and only later
    for (VarId var : block_.stmts[map].results) inPass.insert(var);
    for (size_t k = map + 1; k <= consumers.back(); ++k) {
      Stmt& stmt = block_.stmts[k];
      bool depends = false, waits = false;
      for (VarId var : lcu::freeVars(stmt)) {
        depends |= inPass.contains(var);
        waits |= late.contains(var);
      }
      if (waits && std::find(consumers.begin(), consumers.end(), k) != consumers.end()) return true;
      if (!depends && !waits) continue;
      Soac* soac = soacOf(stmt);
      const bool passes = !waits && soac && soac->kind == SoacKind::Map;
      for (VarId var : stmt.results) (passes ? inPass : late).insert(var);
    }
    return false;
  }

  void substitute(const Soac& map, Soac& consumer, size_t user) {
    for (ExprRef* thunk : thunksOf(consumer))
      *thunk = program_.arena->rewrite(*thunk, [&](ExprRef n) -> ExprRef {
        if (n->kind != ExprKind::Load || !isElementNumber(n->operands[0])) return nullptr;
        auto found = std::find(map.results.begin(), map.results.end(), n->index);
        return found == map.results.end() ? nullptr
                                          : map.pull[static_cast<size_t>(found - map.results.begin())];
      });
    for (VarId var : lcu::freeVars(map)) {
      std::vector<size_t>& users = users_[var];
      if (std::find(users.begin(), users.end(), user) == users.end()) users.push_back(user);
    }
  }

  lcu::Program& program_;
  Block& block_;
  std::map<VarId, std::vector<size_t>> users_;
};

}  // namespace

void rematerialise(lcu::Program& program) {
  lcu::forEachBlock(program, [&](Block& block) { BlockPass(program, block).run(); });
}

}  // namespace kelpie::flatten

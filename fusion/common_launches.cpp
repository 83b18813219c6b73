#include "fusion/common_launches.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "fusion/effects.h"
#include "fusion/sizes.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

bool sameOperator(const Soac& a, const Soac& b) {
  return a.combine == b.combine && a.inclusive == b.inclusive && a.backward == b.backward &&
         a.withTotal == b.withTotal;
}

class Merger {
 public:
  explicit Merger(lcu::Program& program) : program_(program) {}

  int run() {
    for (lcu::HostFunction& f : program_.functions) block(f.body, {});
    block(program_.entry.body, {});
    for (lcu::VarInfo& info : program_.vars) {
      if (info.extent) info.extent = renamed(info.extent);
    }
    return removed_;
  }

 private:
  /// `e` with all its checks at one site.
  ExprRef anonymous(ExprRef e) {
    if (!e || !e->canFail) return e;
    if (const auto known = anonymous_.find(e); known != anonymous_.end()) return known->second;
    lcu::ExprArena& arena = *program_.arena;
    const ExprRef result = arena.rewriteUp(e, [&](ExprRef node, const std::vector<ExprRef>& o) {
      return node->kind == ExprKind::Check ? arena.check(o[0], o[1], o[2]->constant, 0, o[3], o[4]) : nullptr;
    });
    return anonymous_[e] = result;
  }
  bool same(ExprRef a, ExprRef b) { return a == b || anonymous(a) == anonymous(b); }
  bool same(const std::vector<ExprRef>& a, const std::vector<ExprRef>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](ExprRef x, ExprRef y) { return same(x, y); });
  }
  bool sameWork(const Soac& a, const Soac& b) {
    return a.kind == b.kind && a.space == b.space && sameOperator(a, b) && a.target == b.target &&
           a.fill == b.fill && a.onto == b.onto && a.unique == b.unique && a.agreeing == b.agreeing &&
           same(a.where, b.where) && same(a.destination, b.destination) && same(a.pull, b.pull) &&
           same(a.effects, b.effects);
  }

  Soac& soacOf(lcu::Stmt& stmt) { return std::get<lcu::Launch>(stmt.node).kernel.bindings[0]; }

  /// `around`: launches of the blocks around, which are done before this one starts.
  void block(lcu::Block& block, std::vector<lcu::Stmt*> around) {
    std::vector<lcu::Stmt*> earlier = std::move(around);
    const size_t outside = earlier.size();
    std::map<const lcu::Stmt*, size_t> place;  // of launches of this block: how many statements come before
    std::map<VarId, size_t> madeAt;
    size_t lastCheck = 0;  // of the host
    std::deque<lcu::Stmt> kept;
    for (lcu::Stmt& original : block.stmts) {
      kept.push_back(std::move(original));
      lcu::Stmt& stmt = kept.back();
      rename(stmt);
      if (auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
        this->block(*conditional->thenBlock, earlier);
        this->block(*conditional->elseBlock, earlier);
      } else if (auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
        this->block(*loop->condition, earlier);
        this->block(*loop->body, earlier);
      } else if (std::holds_alternative<lcu::Launch>(stmt.node)) {
        if (findSame(stmt, earlier, outside, place, lastCheck, madeAt)) {
          kept.pop_back();
          ++removed_;
          continue;
        }
        place[&stmt] = kept.size();
        earlier.push_back(&stmt);
      }
      for (VarId var : stmt.results) madeAt[var] = kept.size();
      if (const auto* let = std::get_if<lcu::HostLet>(&stmt.node))
        if (std::any_of(let->values.begin(), let->values.end(), [](ExprRef e) { return e->canFail; }))
          lastCheck = kept.size();
    }
    block.stmts = std::move(kept);
    for (VarId& var : block.results) var = renamed(var);
  }

  bool findSame(lcu::Stmt& stmt, const std::vector<lcu::Stmt*>& earlier, size_t outside,
                const std::map<const lcu::Stmt*, size_t>& place, size_t lastCheck,
                std::map<VarId, size_t>& madeAt) {
    Soac& soac = soacOf(stmt);
    for (size_t k = 0; k < earlier.size(); ++k) {
      Soac& other = soacOf(*earlier[k]);
      if (soac.results.size() == other.results.size() && sameWork(soac, other)) {
        replace(soac.results, other.results);
        return true;
      }
      if (k < outside || soac.kind != SoacKind::Filter || other.kind != SoacKind::Filter ||
          !(soac.space == other.space) || soac.where != other.where) {
        continue;
      }
      const size_t position = place.at(earlier[k]);
      const std::vector<VarId> free = lcu::freeVars(thunksOf(soac));
      const bool known = std::all_of(free.begin(), free.end(), [&](VarId var) {
        const auto made = madeAt.find(var);
        return made == madeAt.end() || made->second < position;
      });
      if (!known || (lastCheck > position && !loadsOnlyElements(soac))) continue;
      widen(*earlier[k], other, soac);
      for (VarId var : other.results) madeAt[var] = position;
      return true;
    }
    return false;
  }

  /// Whether what a filter pulls does no harm in front of a check of the host between it and another one:
  /// that lengths are equal, say, so that arrays have an element for each that the filter keeps.
  bool loadsOnlyElements(const Soac& filter) const {
    std::vector<ExprRef> thunks(filter.pull);
    thunks.insert(thunks.end(), filter.effects.begin(), filter.effects.end());
    return !lcu::anyNode(thunks, [&](ExprRef e) {
      if (e->kind != ExprKind::Load || e->operands[0]->kind == ExprKind::Check) return false;
      const bool ofElement = e->operands[0]->kind == ExprKind::Param && e->operands[0]->index == 0;
      return !ofElement || program_.vars[e->index].extent != filter.space.extent;
    });
  }

  /// `filter` gets what `second` pulls besides.
  void widen(lcu::Stmt& stmt, Soac& filter, const Soac& second) {
    replace({second.results[0]}, {filter.results[0]});
    for (size_t k = 0; k < second.pull.size(); ++k) {
      const auto at = std::find(filter.pull.begin(), filter.pull.end(), second.pull[k]);
      if (at != filter.pull.end()) {
        replace({second.results[k + 1]}, {filter.results[static_cast<size_t>(at - filter.pull.begin()) + 1]});
        continue;
      }
      filter.pull.push_back(second.pull[k]);
      filter.results.push_back(second.results[k + 1]);
    }
    filter.effects.insert(filter.effects.end(), second.effects.begin(), second.effects.end());
    stmt.results = filter.results;
    std::get<lcu::Launch>(stmt.node).kernel.returns = filter.results;
  }

  // ---- replacing variables ----

  void replace(const std::vector<VarId>& gone, const std::vector<VarId>& by) {
    for (size_t k = 0; k < gone.size(); ++k) replacement_[gone[k]] = by[k];
  }

  VarId renamed(VarId var) const {
    const auto it = replacement_.find(var);
    return it == replacement_.end() ? var : it->second;
  }

  ExprRef renamed(ExprRef e) const {
    if (replacement_.empty()) return e;
    lcu::ExprArena& arena = *program_.arena;
    return arena.rewriteUp(e, [&](ExprRef node, const std::vector<ExprRef>& operands) -> ExprRef {
      const bool names =
          node->kind == ExprKind::Host || node->kind == ExprKind::Load || node->kind == ExprKind::Size;
      if (!names || renamed(node->index) == node->index) return nullptr;
      const VarId var = renamed(node->index);
      if (node->kind == ExprKind::Host) return arena.host(var, node->type);
      if (node->kind == ExprKind::Size) return arena.size(var);
      return arena.load(var, node->type, operands[0]);
    });
  }

  void renameSpace(lcu::Space& space) const {
    for (ExprRef* e : {&space.extent, &space.segments, &space.length}) {
      if (*e) *e = renamed(*e);
    }
    if (space.kind == lcu::SpaceKind::Offsets) space.offsets = renamed(space.offsets);
  }

  /// The statement itself; the blocks in it are renamed when they are visited.
  void rename(lcu::Stmt& stmt) const {
    if (replacement_.empty()) return;
    if (auto* let = std::get_if<lcu::HostLet>(&stmt.node)) {
      for (ExprRef& e : let->values) e = renamed(e);
    } else if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
      for (Soac& soac : launch->kernel.bindings) {
        changeExpressions(soac, [&](ExprRef e) { return renamed(e); });
        if (soac.space.kind == lcu::SpaceKind::Offsets) soac.space.offsets = renamed(soac.space.offsets);
        for (VarId& var : soac.onto) var = renamed(var);
      }
    } else if (auto* call = std::get_if<lcu::CallFunction>(&stmt.node)) {
      for (VarId& var : call->arguments) var = renamed(var);
    } else if (auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
      conditional->condition = renamed(conditional->condition);
    } else if (auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
      for (VarId& var : loop->initial) var = renamed(var);
    } else if (auto* join = std::get_if<lcu::Join>(&stmt.node)) {
      for (VarId& var : join->arrays) var = renamed(var);
    } else if (auto* grade = std::get_if<lcu::Grade>(&stmt.node)) {
      grade->keys = renamed(grade->keys);
      renameSpace(grade->space);
    } else if (auto* service = std::get_if<lcu::Service>(&stmt.node)) {
      for (VarId& var : service->arguments) var = renamed(var);
    }
  }

  lcu::Program& program_;
  std::map<VarId, VarId> replacement_;
  std::unordered_map<ExprRef, ExprRef> anonymous_;
  int removed_ = 0;
};

}  // namespace

int removeCommonLaunches(lcu::Program& program) { return Merger(program).run(); }

}  // namespace kelpie::fusion

#include "fusion/graded_order.h"

#include <algorithm>
#include <map>
#include <set>

#include "fusion/sizes.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::VarId;

/// A sort, by the variable of its order.
struct Sort {
  lcu::Stmt* stmt;
  VarId keys;
  lcu::Space space;
  VarId sorted = 0;  ///< 0: nobody has asked for it
};

class OrderUser {
 public:
  explicit OrderUser(lcu::Program& program) : program_(program), arena_(*program.arena) {}

  int run() {
    lcu::forEachBlock(program_, [&](lcu::Block& block) { collect(block); });
    if (sorts_.empty() && segmented_.empty()) return 0;
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      std::set<VarId> here;
      for (lcu::Stmt& stmt : block.stmts) {
        rewrite(stmt, here);
        if (std::holds_alternative<lcu::Grade>(stmt.node)) here.insert(stmt.results[0]);
      }
    });
    return addSorted(sorts_) + addSorted(rowSorts_);
  }

 private:
  /// Adds what was asked for to the results of sorts; how many that are.
  static int addSorted(const std::map<VarId, Sort>& sorts) {
    int used = 0;
    for (const auto& [order, sort] : sorts) {
      if (sort.sorted == 0) continue;
      auto& grade = std::get<lcu::Grade>(sort.stmt->node);
      grade.sorted = true;
      sort.stmt->results.insert(sort.stmt->results.begin() + static_cast<ptrdiff_t>(grade.sortedResult()),
                                sort.sorted);
      ++used;
    }
    return used;
  }

  void collect(lcu::Block& block) {
    std::map<VarId, Sort*> here;
    for (lcu::Stmt& stmt : block.stmts) {
      if (const auto* grade = std::get_if<lcu::Grade>(&stmt.node)) {
        learnSegments(stmt, *grade);
        if (!grade->order || grade->sorted) continue;
        if (grade->space.segmented()) {
          learnGather(stmt, *grade);
          continue;
        }
        if (grade->ranks) ranks_[stmt.results[grade->ranksResult()]] = stmt.results[0];
        Sort& sort = sorts_[stmt.results[0]] = {&stmt, grade->keys, grade->space};
        here[stmt.results[0]] = &sort;
      } else if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
        takeGathered(stmt, *launch, here);
      }
    }
  }

  /// Orders and ranks of segments lie between 0 and the length of the segment.
  void learnSegments(const lcu::Stmt& stmt, const lcu::Grade& grade) {
    const lcu::Space& space = grade.space;
    if (!space.segmented()) return;
    const ExprRef s = arena_.param(1);
    const ExprRef length =
        space.kind == lcu::SpaceKind::Regular
            ? space.length
            : arena_.sub(arena_.load(space.offsets, lcu::kIndex, arena_.add(s, arena_.index(1))),
                         arena_.load(space.offsets, lcu::kIndex, s));
    if (grade.order) segmented_[stmt.results[0]] = {space, length};
    if (grade.ranks) segmented_[stmt.results[grade.ranksResult()]] = {space, length};
  }

  /// Of segments: what the key at the place that an element of the order tells looks like.
  void learnGather(lcu::Stmt& stmt, const lcu::Grade& grade) {
    const ScalarType type = program_.vars[grade.keys].type;
    if (isFloat(type)) return;
    const lcu::Space& space = grade.space;
    const ExprRef begin = space.kind == lcu::SpaceKind::Regular
                              ? arena_.mul(arena_.param(1), space.length)
                              : arena_.load(space.offsets, lcu::kIndex, arena_.param(1));
    const ExprRef place = arena_.load(stmt.results[0], lcu::kIndex, arena_.param(0));
    rowSorts_[stmt.results[0]] = {&stmt, grade.keys, space};
    rowGathers_[arena_.load(grade.keys, type, arena_.add(begin, place))] = stmt.results[0];
  }

  /// A map of the sort's own block that gathers all keys gives its place to the sort.
  void takeGathered(lcu::Stmt& stmt, lcu::Launch& launch, const std::map<VarId, Sort*>& here) {
    lcu::Soac& soac = launch.kernel.bindings[0];
    if (soac.kind != lcu::SoacKind::Map || soac.space.segmented()) return;
    for (size_t k = soac.pull.size(); k-- > 0;) {
      const auto order = gathered(soac.pull[k]);
      if (!order || order->operands[0] != arena_.param(0)) continue;
      const auto at = here.find(order->index);
      if (at == here.end() || at->second->sorted != 0 || at->second->space.extent != soac.space.extent)
        continue;
      at->second->sorted = takeResult(stmt, launch, k);
    }
  }
  static VarId takeResult(lcu::Stmt& stmt, lcu::Launch& launch, size_t k) {
    lcu::Soac& soac = launch.kernel.bindings[0];
    const VarId result = soac.results[k];
    soac.pull.erase(soac.pull.begin() + static_cast<ptrdiff_t>(k));
    std::erase(soac.results, result);
    std::erase(launch.kernel.returns, result);
    std::erase(stmt.results, result);
    return result;
  }

  /// The sort of whose keys `e` is the one that comes next, among the elements of its segments.
  Sort* gatheredInRows(ExprRef e, const lcu::Space& space) {
    const auto at = rowGathers_.find(e);
    if (at == rowGathers_.end()) return nullptr;
    Sort& sort = rowSorts_.at(at->second);
    return sort.space == space ? &sort : nullptr;
  }
  /// The same as takeGathered.
  void takeGatheredInRows(lcu::Stmt& stmt, lcu::Launch& launch, const std::set<VarId>& here) {
    lcu::Soac& soac = launch.kernel.bindings[0];
    if (soac.kind != lcu::SoacKind::Map || !soac.space.segmented()) return;
    for (size_t k = soac.pull.size(); k-- > 0;) {
      Sort* sort = gatheredInRows(soac.pull[k], soac.space);
      if (sort && sort->sorted == 0 && here.contains(sort->stmt->results[0]))
        sort->sorted = takeResult(stmt, launch, k);
    }
  }

  /// The load from an order, if `e` is one whose value may have been checked to be in range.
  ExprRef placed(ExprRef e) const {
    if (e->kind == ExprKind::Check) {
      const ExprRef value = e->operands[1], test = e->operands[0];
      const ExprRef load = placed(value);
      if (!load || load != value) return nullptr;
      const ExprRef least = arena_.op(ScalarOp::GreaterEqual, load, arena_.index(0));
      const ExprRef most = arena_.op(ScalarOp::Less, load, sorts_.at(load->index).space.extent);
      return test == arena_.conjunction(least, most) ? load : nullptr;
    }
    return e->kind == ExprKind::Load && sorts_.contains(e->index) ? e : nullptr;
  }

  /// The load from an order, if `e` is the key at a place out of it and no float.
  ExprRef gathered(ExprRef e) const {
    if (e->kind != ExprKind::Load || isFloat(e->type)) return nullptr;
    const ExprRef order = placed(e->operands[0]);
    return order && sorts_.at(order->index).keys == e->index ? order : nullptr;
  }

  /// Whether `e` is an element of an order or of ranks, and the length of that.
  ExprRef extentOfPlace(ExprRef e) const {
    if (e->kind != ExprKind::Load || e->canFail) return nullptr;
    if (const auto sort = sorts_.find(e->index); sort != sorts_.end()) return sort->second.space.extent;
    const auto rank = ranks_.find(e->index);
    return rank == ranks_.end() ? nullptr : sorts_.at(rank->second).space.extent;
  }

  /// A comparison that tests whether a place is in range.
  bool holdsOfPlaces(ExprRef e) const {
    if (e->kind != ExprKind::Op) return false;
    if (const auto places = segmented_.find(e->operands[0]->index);
        e->operands[0]->kind == ExprKind::Load && !e->operands[0]->canFail && places != segmented_.end()) {
      if (e->op == ScalarOp::GreaterEqual && e->operands[1] == arena_.index(0)) return true;
      const auto& [space, length] = places->second;
      return e->op == ScalarOp::Less && e->operands[0]->operands[0] == arena_.param(0) && space_ == space &&
             e->operands[1] == length;
    }
    if (e->op == ScalarOp::GreaterEqual)
      return e->operands[1] == arena_.index(0) && extentOfPlace(e->operands[0]);
    return e->op == ScalarOp::Less && e->operands[1] == extentOfPlace(e->operands[0]);
  }

  VarId sortedOf(Sort& sort) {
    if (sort.sorted == 0) {
      const ScalarType type = program_.vars[sort.keys].type;
      sort.sorted = program_.newVar({"sorted", lcu::VarKind::Array, type, sort.space.extent});
    }
    return sort.sorted;
  }

  ExprRef rewritten(ExprRef e) {
    return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
      if (holdsOfPlaces(node)) return arena_.boolean(true);
      if (node->kind == ExprKind::Load) {
        if (const auto again = again_.find(node->index); again != again_.end())
          return rewritten(arena_.load(again->second, node->type, node->operands[0]));
      }
      if (const ExprRef order = gathered(node)) {
        return arena_.load(sortedOf(sorts_.at(order->index)), node->type, rewritten(order->operands[0]));
      }
      if (node->kind != ExprKind::Check) return nullptr;
      const ExprRef order = placed(node);
      return order ? arena_.load(order->index, order->type, rewritten(order->operands[0])) : nullptr;
    });
  }

  ExprRef rewrittenInRows(ExprRef e) {
    return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
      Sort* sort = gatheredInRows(node, space_);
      return sort ? arena_.load(sortedOf(*sort), node->type, arena_.param(0)) : nullptr;
    });
  }

  /// `here`: the orders that statements before it in its block make.
  void rewrite(lcu::Stmt& stmt, const std::set<VarId>& here) {
    space_ = {};
    // What the first time leaves may be what the second looks for.
    const auto change = [&](ExprRef e) { return again_.empty() ? rewritten(e) : rewritten(rewritten(e)); };
    if (auto* let = std::get_if<lcu::HostLet>(&stmt.node)) {
      for (ExprRef& e : let->values) e = change(e);
    } else if (auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
      conditional->condition = change(conditional->condition);
    } else if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
      lcu::Soac& soac = launch->kernel.bindings[0];
      space_ = soac.space;
      changeExpressions(soac, change);
      if (!rowSorts_.empty()) {  // checks have gone
        takeGatheredInRows(stmt, *launch, here);
        changeExpressions(soac, [&](ExprRef e) { return rewrittenInRows(e); });
      }
      if (soac.kind == lcu::SoacKind::Permute && !soac.space.segmented()) learnPlaces(soac);
    }
  }

  /// Of a flat permute.
  void learnPlaces(lcu::Soac& soac) {
    const ExprRef to = soac.destination;
    const ExprRef extent = extentOfPlace(to);
    if (!extent || to->operands[0] != arena_.param(0) || extent != soac.space.extent) return;
    soac.unique = true;
    if (soac.where || !soac.onto.empty() || soac.target != extent) return;
    soac.fill.clear();
    if (soac.pull.size() != 1 || soac.pull[0] != arena_.param(0)) return;
    if (const auto rank = ranks_.find(to->index); rank != ranks_.end()) {
      again_[soac.results[0]] = rank->second;
    } else {
      ranks_[soac.results[0]] = to->index;
    }
  }

  lcu::Program& program_;
  lcu::ExprArena& arena_;
  std::map<VarId, Sort> sorts_;     ///< of flat spaces
  std::map<VarId, Sort> rowSorts_;  ///< of segments
  std::map<ExprRef, VarId> rowGathers_;
  std::map<VarId, VarId> ranks_;  ///< by the variable of the ranks: the order
  struct Segmented {
    lcu::Space space;
    ExprRef length;  ///< of segment %s
  };
  std::map<VarId, Segmented> segmented_;  ///< by the variables of orders and ranks
  lcu::Space space_;                      ///< of the expressions at hand
  std::map<VarId, VarId> again_;          ///< orders that are others again: by their variables
};

}  // namespace

int useGradedOrder(lcu::Program& program) { return OrderUser(program).run(); }

}  // namespace kelpie::fusion

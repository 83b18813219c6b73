#include "fusion/paired_reductions.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "fusion/rules.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;
using lcu::Stmt;
using lcu::VarId;

Soac* soacOf(Stmt& stmt) {
  auto* launch = std::get_if<lcu::Launch>(&stmt.node);
  return launch ? &launch->kernel.bindings[0] : nullptr;
}

class Pairer {
 public:
  explicit Pairer(lcu::Program& program) : program_(program), arena_(*program.arena) {}

  int run() {
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (Stmt& stmt : block.stmts) {
        const Soac* soac = soacOf(stmt);
        if (!soac || soac->kind != SoacKind::Map) continue;
        for (size_t k = 0; k < soac->pull.size(); ++k) maps_[soac->results[k]] = {soac->space, soac->pull[k]};
      }
    });
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (size_t later = 1; later < block.stmts.size();) {
        if (!joinsEarlier(block, later)) ++later;
      }
    });
    return paired_;
  }

 private:
  struct MapResult {
    lcu::Space space;
    ExprRef pull;
  };

  /// Whether the statement was a reduction that an earlier one has taken in: it is gone.
  bool joinsEarlier(lcu::Block& block, size_t at) {
    const Soac* second = soacOf(block.stmts[at]);
    if (!second || second->kind != SoacKind::Reduce || second->pull.size() != 1 || !second->effects.empty())
      return false;
    const std::vector<VarId> read = lcu::freeVars(std::vector{resolved(second->pull[0], second->space)});
    for (size_t k = at; k-- > 0;) {
      Soac* first = soacOf(block.stmts[k]);
      if (!first || first->kind != SoacKind::Reduce || !(first->space == second->space)) continue;
      for (size_t j = 0; j < first->pull.size(); ++j) {
        if (!std::binary_search(read.begin(), read.end(), first->results[j])) continue;
        const std::optional<ExprRef> value = valueOfExtremes(*first, j, *second);
        if (!value || readsBetween(block, k, at, *value)) continue;
        join(*first, j, *second, *value);
        auto& launch = std::get<lcu::Launch>(block.stmts[k].node);
        const VarId result = second->results[0];
        launch.kernel.returns.push_back(result);
        block.stmts[k].results.push_back(result);
        block.stmts.erase(block.stmts.begin() + static_cast<ptrdiff_t>(at));
        ++paired_;
        return true;
      }
    }
    return false;
  }

  /// What `second` folds of the elements that equal result j of `first`, the least or greatest, if it folds
  /// nothing else.
  std::optional<ExprRef> valueOfExtremes(const Soac& first, size_t j, const Soac& second) {
    const ExprRef extreme = first.combine.result[j];
    const auto k = static_cast<uint32_t>(first.pull.size());
    if (extreme->kind != ExprKind::Op || (extreme->op != ScalarOp::Min && extreme->op != ScalarOp::Max))
      return std::nullopt;
    for (ExprRef side : extreme->operands)
      if (side->kind != ExprKind::Param || side->index % k != j) return std::nullopt;
    const ExprRef found = resultOf(first, j), element = resolved(first.pull[j], first.space);
    if (!reads(resolved(second.pull[0], second.space), found)) return std::nullopt;
    const ExprRef value = assuming(second.pull[0], second.space, element, found, true);
    const ExprRef otherwise = assuming(second.pull[0], second.space, element, found, false);
    if (otherwise != arena_.constant(second.combine.identity[0])) return std::nullopt;
    for (size_t other = 0; other < first.pull.size(); ++other)
      if (reads(value, resultOf(first, other))) return std::nullopt;
    if (!isHarmless(value, first.space, program_)) return std::nullopt;
    return value;
  }

  /// How elements read result j of the reduction.
  ExprRef resultOf(const Soac& reduction, size_t j) {
    const VarId var = reduction.results[j];
    const ScalarType type = program_.vars[var].type;
    return reduction.space.segmented() ? arena_.load(var, type, arena_.param(1)) : arena_.host(var, type);
  }

  static bool reads(ExprRef e, ExprRef part) {
    return lcu::anyNode({e}, [&](ExprRef node) { return node == part; });
  }

  /// What a map of the space makes of the element that is loaded; null if `load` is none such.
  ExprRef madeBy(ExprRef load, const lcu::Space& space) {
    if (load->kind != ExprKind::Load || load->operands[0] != arena_.param(0)) return nullptr;
    const auto map = maps_.find(load->index);
    if (map == maps_.end() || map->second.space.extent != space.extent) return nullptr;
    return !map->second.space.segmented() || map->second.space == space ? map->second.pull : nullptr;
  }

  /// With the elements of maps over the space as what the maps compute. Maps that several others read are
  /// met in all of these: what becomes of each is kept.
  ExprRef resolved(ExprRef e, const lcu::Space& space) {
    if (!(resolvedIn_ == space)) {
      resolved_.clear();
      resolvedIn_ = space;
    }
    return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
      const ExprRef made = madeBy(node, space);
      if (!made) return nullptr;
      if (const auto known = resolved_.find(node); known != resolved_.end()) return known->second;
      return resolved_[node] = resolved(made, space);
    });
  }

  /// `e` where it is known whether the element equals what was found.
  ExprRef assuming(ExprRef e, const lcu::Space& space, ExprRef element, ExprRef found, bool equals) {
    return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
      if (node->kind == ExprKind::Op && node->op == ScalarOp::Equal) {
        for (size_t side : {0, 1})
          if (node->operands[side] == found && resolved(node->operands[1 - side], space) == element)
            return arena_.boolean(equals);
      }
      const ExprRef made = madeBy(node, space);
      return made && reads(resolved(made, space), found) ? assuming(made, space, element, found, equals)
                                                         : nullptr;
    });
  }

  /// Whether the value needs something that is only made after statement `first`.
  static bool readsBetween(const lcu::Block& block, size_t first, size_t second, ExprRef value) {
    const std::vector<VarId> needed = lcu::freeVars(std::vector{value});
    for (size_t k = first; k < second; ++k)
      for (VarId var : block.stmts[k].results)
        if (std::binary_search(needed.begin(), needed.end(), var)) return true;
    return false;
  }

  /// `first` folds the values of `second` beside its own.
  void join(Soac& first, size_t j, const Soac& second, ExprRef value) {
    Soac values = second;
    values.pull = {value};
    Soac both = reduceWithReduce(first, values, program_);
    const auto k = static_cast<uint32_t>(both.pull.size());
    const auto at = static_cast<uint32_t>(j);
    const ScalarType type = first.pull[j]->type, valueType = value->type;
    const ExprRef identity = arena_.constant(second.combine.identity[0]);
    const auto ofSide = [&](uint32_t side) {
      const ExprRef best = arena_.op(ScalarOp::Equal, arena_.param(side + at, type), both.combine.result[j]);
      return arena_.select(best, arena_.param(side + k - 1, valueType), identity);
    };
    both.combine.result.back() =
        arena_.substituteParams(second.combine.result, {ofSide(0), ofSide(k)}).front();
    first = std::move(both);
  }

  lcu::Program& program_;
  lcu::ExprArena& arena_;
  std::unordered_map<VarId, MapResult> maps_;
  lcu::Space resolvedIn_;
  std::unordered_map<ExprRef, ExprRef> resolved_;  ///< loads, as elements of that space
  int paired_ = 0;
};

}  // namespace

int pairReductions(lcu::Program& program) { return Pairer(program).run(); }

}  // namespace kelpie::fusion

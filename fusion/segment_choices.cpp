#include "fusion/segment_choices.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "fusion/effects.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::Stmt;
using lcu::VarId;

/// Of a choice: places that it tells apart, each of which may take a column.
constexpr size_t kMostPlaces = 8;

bool isParam(ExprRef e, uint32_t number) { return e->kind == ExprKind::Param && e->index == number; }

/// `p < c` or `p == c` for a place p and a constant c.
bool isOfPlace(ExprRef e) {
  return e->kind == ExprKind::Op && (e->op == ScalarOp::Less || e->op == ScalarOp::Equal) &&
         isParam(e->operands[0], 2) && lcu::asIndex(e->operands[1]).has_value();
}

std::vector<ExprRef*> thunksOf(Soac& soac) {
  std::vector<ExprRef*> thunks;
  for (auto* several : {&soac.pull, &soac.effects})
    for (ExprRef& e : *several) thunks.push_back(&e);
  for (ExprRef* e : {&soac.where, &soac.destination})
    if (*e) thunks.push_back(e);
  return thunks;
}

class Chooser {
 public:
  explicit Chooser(lcu::Program& program) : program_(program), arena_(*program.arena) {}

  int run() {
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      countUses(block.results);
      for (Stmt& stmt : block.stmts) collect(stmt);
    });
    for (const lcu::VarInfo& var : program_.vars)
      if (var.extent) countUses(lcu::freeVars(std::vector{var.extent}));
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (size_t k = 0; k < block.stmts.size(); ++k) {
        std::optional<Stmt> chosen = choose(block.stmts[k]);
        if (!chosen) continue;
        block.stmts.insert(block.stmts.begin() + static_cast<ptrdiff_t>(k++), std::move(*chosen));
        ++made_;
      }
    });
    return made_;
  }

 private:
  /// The choices of one SOAC.
  struct Choices {
    const Soac* soac;
    std::unordered_map<ExprRef, bool> isChoice;         ///< by node
    std::unordered_map<ExprRef, ExprRef> replacements;  ///< by choice
    std::vector<ExprRef> values;                        ///< of a segment, by column
    std::vector<VarId> columns;
    std::unordered_map<ExprRef, ExprRef> columnOf;  ///< how elements read a value
  };

  void countUses(const std::vector<VarId>& vars) {
    for (VarId var : vars) ++otherUses_[var];
  }

  void collect(const Stmt& stmt) {
    const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
    if (!launch) {
      if (const auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
        countUses(lcu::freeVars(std::vector{conditional->condition}));  // branches are blocks of their own
      } else if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
        countUses(loop->initial);
      } else {
        countUses(lcu::freeVars(stmt));
      }
      return;
    }
    const Soac& soac = launch->kernel.bindings[0];
    if (soac.kind == SoacKind::Map)
      for (VarId result : soac.results) maps_[result] = &soac;
    countUses(readApart(soac));
  }

  /// Arrays of which a SOAC reads more than the elements at hand.
  std::vector<VarId> readApart(const Soac& soac) const {
    std::set<VarId> apart;
    Soac thunks;
    for (ExprRef e : fusion::thunksOf(soac))
      thunks.pull.push_back(arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
        return node->kind == ExprKind::Load && isParam(node->operands[0], 0) &&
                       program_.vars[node->index].extent == soac.space.extent
                   ? arena_.constant(Scalar::zero(node->type))
                   : nullptr;
      }));
    for (VarId var : lcu::freeVars(thunks.pull)) apart.insert(var);
    Soac rest = soac;
    rest.pull.clear();
    rest.effects.clear();
    rest.where = rest.destination = nullptr;
    for (VarId var : lcu::freeVars(rest)) apart.insert(var);
    return {apart.begin(), apart.end()};
  }

  std::optional<Stmt> choose(Stmt& stmt) {
    auto* launch = std::get_if<lcu::Launch>(&stmt.node);
    if (!launch || !launch->kernel.bindings[0].space.segmented()) return std::nullopt;
    Soac& soac = launch->kernel.bindings[0];
    Choices choices{&soac, {}, {}, {}, {}, {}};
    Soac changed = soac;
    for (ExprRef* e : thunksOf(changed)) *e = replaced(*e, choices);
    if (choices.values.empty()) return std::nullopt;

    // Is it worth it?
    const std::vector<VarId> before = readApart(soac), after = readApart(changed);
    int64_t kept = 0, spared = 0;
    const Soac* producer = nullptr;
    for (VarId var : before) {
      const auto map = maps_.find(var);
      if (map == maps_.end() || otherUses_.at(var) > 1 || std::binary_search(after.begin(), after.end(), var))
        continue;
      spared += sizeOf(program_.vars[var].type);
      producer = map->second;
    }
    for (ExprRef value : choices.values) kept += sizeOf(value->type);
    if (!producer || kept >= spared) return std::nullopt;

    for (VarId var : before) --otherUses_[var];
    countUses(after);
    Soac map;
    map.space = producer->space;
    map.pull = choices.values;
    map.results = choices.columns;
    map.span = soac.span;
    map.origin = soac.origin;
    soac = std::move(changed);
    Stmt chosen;
    chosen.results = choices.columns;
    chosen.node = lcu::Launch{{launch->kernel.name + "_choice", {std::move(map)}, choices.columns}};
    chosen.span = stmt.span;
    return chosen;
  }

  ExprRef replaced(ExprRef e, Choices& choices) {
    return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
      if (node->kind != ExprKind::Project || !isChoice(node, choices)) return nullptr;
      const auto [it, isNew] = choices.replacements.try_emplace(node, nullptr);
      if (isNew) it->second = byPlace(node, choices);
      return it->second;
    });
  }

  bool isChoice(ExprRef e, Choices& choices) {
    if (const auto it = choices.isChoice.find(e); it != choices.isChoice.end()) return it->second;
    const bool result = findChoice(e, choices);
    choices.isChoice.emplace(e, result);
    return result;
  }
  bool findChoice(ExprRef e, Choices& choices) {
    const auto all = [&](ExprRef node) {
      return std::all_of(node->operands.begin(), node->operands.end(),
                         [&](ExprRef operand) { return isChoice(operand, choices); });
    };
    switch (e->kind) {
      case ExprKind::Constant:
      case ExprKind::Host:
        return true;
      case ExprKind::Load:
        return isParam(e->operands[0], 1) && program_.vars[e->index].extent == choices.soac->space.segments;
      case ExprKind::Op:
        return isOfPlace(e) || (e->op < ScalarOp::Sqrt && all(e));
      case ExprKind::Convert:
      case ExprKind::If:
        return all(e);
      case ExprKind::Project:
        return e->operands[0]->kind == ExprKind::If && isChoice(e->operands[0], choices);
      default:
        return false;
    }
  }

  /// The choice by place, of what is chosen for the segment; null if it is none or has too many places.
  ExprRef byPlace(ExprRef choice, Choices& choices) {
    std::set<int64_t> begins = {0};  // of places that are told apart
    std::unordered_set<VarId> arrays;
    lcu::forEachNode({choice}, [&](ExprRef node) {
      if (node->kind == ExprKind::Load) arrays.insert(node->index);
      if (!isOfPlace(node)) return;
      const int64_t bound = *lcu::asIndex(node->operands[1]);
      if (bound > 0) begins.insert(bound);
      if (bound >= 0 && node->op == ScalarOp::Equal) begins.insert(bound + 1);
    });
    if (arrays.size() < 2 || begins.size() > kMostPlaces) return nullptr;
    auto begin = begins.rbegin();
    ExprRef result = column(at(choice, *begin), choices);
    while (++begin != begins.rend()) {
      const ExprRef isBefore = arena_.op(ScalarOp::Less, arena_.param(2), arena_.index(*std::prev(begin)));
      result = arena_.select(isBefore, column(at(choice, *begin), choices), result);
    }
    return result;
  }

  /// The choice at a place, for segment %i.
  ExprRef at(ExprRef choice, int64_t place) {
    const ExprRef ofPlace = arena_.rewrite(choice, [&](ExprRef node) -> ExprRef {
      if (!isOfPlace(node)) return nullptr;
      const int64_t bound = *lcu::asIndex(node->operands[1]);
      return arena_.boolean(node->op == ScalarOp::Less ? place < bound : place == bound);
    });
    return arena_.substituteParams({ofPlace}, {arena_.param(0), arena_.param(0)})[0];
  }

  /// How elements read a value of their segment.
  ExprRef column(ExprRef value, Choices& choices) {
    const ExprRef segment = arena_.param(1);
    if (value->kind == ExprKind::Constant || value->kind == ExprKind::Host) return value;
    if (value->kind == ExprKind::Load) return arena_.load(value->index, value->type, segment);
    const auto [it, isNew] = choices.columnOf.try_emplace(value, nullptr);
    if (isNew) {
      const VarId var =
          program_.newVar({"choice", lcu::VarKind::Array, value->type, choices.soac->space.segments});
      choices.values.push_back(value);
      choices.columns.push_back(var);
      it->second = arena_.load(var, value->type, segment);
    }
    return it->second;
  }

  lcu::Program& program_;
  lcu::ExprArena& arena_;
  std::unordered_map<VarId, const Soac*> maps_;  ///< by result
  std::unordered_map<VarId, int> otherUses_;     ///< statements and others that read more than elements
  int made_ = 0;
};

}  // namespace

int chooseForSegments(lcu::Program& program) { return Chooser(program).run(); }

}  // namespace kelpie::fusion

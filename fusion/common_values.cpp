#include "fusion/common_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fusion/rules.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

constexpr size_t kMany = 16;
/// Nodes of a pull: what all paths lead through is found for each.
constexpr int kMostNodes = 4000;

bool isOfSegment(ExprRef e) { return e->kind == ExprKind::Param && e->index > 0; }

/// A pull of a map over a segmented space.
struct Member {
  size_t statement;
  size_t pull;
};

class Storing {
 public:
  Storing(lcu::Program& program, lcu::Block& block) : program_(program), block_(block) {}

  void run(std::set<VarId>& stored) {
    while (const VarId value = storeOne()) stored.insert(value);
  }

 private:
  Soac& mapOf(const Member& member) {
    return std::get<lcu::Launch>(block_.stmts[member.statement].node).kernel.bindings[0];
  }
  ExprRef pullOf(const Member& member) { return mapOf(member).pull[member.pull]; }

  VarId storeOne() {
    for (const std::vector<Member>& members : groups())
      if (const ExprRef value = mostCommon(members)) return store(value, members);
    return 0;
  }

  /// The maps of each space that has many, which need more than the number of their element.
  std::vector<std::vector<Member>> groups() {
    std::vector<std::vector<Member>> groups;
    for (size_t k = 0; k < block_.stmts.size(); ++k) {
      const auto* launch = std::get_if<lcu::Launch>(&block_.stmts[k].node);
      if (!launch) continue;
      const Soac& map = launch->kernel.bindings[0];
      if (map.kind != SoacKind::Map || !map.space.segmented()) continue;
      auto group = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Member>& other) {
        return mapOf(other[0]).space == map.space;
      });
      for (size_t j = 0; j < map.pull.size(); ++j) {
        if (!isOrdinary(map.pull[j])) continue;
        if (group == groups.end()) group = groups.emplace(group);
        group->push_back({k, j});
      }
    }
    std::erase_if(groups, [](const std::vector<Member>& group) { return group.size() < kMany; });
    return groups;
  }

  static bool isOrdinary(ExprRef pull) {
    bool ofSegment = false;
    int nodes = 0;
    const bool other = lcu::anyNode({pull}, [&](ExprRef e) {
      ofSegment |= isOfSegment(e);
      return lcu::isUnbounded(e) || ++nodes > kMostNodes;
    });
    return ofSegment && !other;
  }

  /// The values that all paths from a node to s and p lead through, itself first, s and p last.
  using Chain = std::vector<ExprRef>;
  using Chains = std::unordered_map<ExprRef, Chain>;
  const Chain& chainOf(ExprRef pull, Chains& chains) {
    std::vector<ExprRef> nodes;
    lcu::forEachNode({pull}, [&](ExprRef e) {
      if (!chains.contains(e)) nodes.push_back(e);
    });
    std::sort(nodes.begin(), nodes.end(),
              [](ExprRef a, ExprRef b) { return a->id < b->id; });  // operands first
    for (const ExprRef e : nodes) {
      Chain common;
      bool any = false;
      for (const ExprRef operand : e->operands) {
        const Chain& below = chains.at(operand);
        if (below.empty()) continue;
        if (any) {
          const std::unordered_set<ExprRef> others(below.begin(), below.end());
          std::erase_if(common, [&](ExprRef value) { return !others.contains(value); });
        } else {
          common = below;
        }
        any = true;
      }
      if (any || isOfSegment(e)) common.insert(common.begin(), e);
      chains[e] = std::move(common);
    }
    return chains.at(pull);
  }

  /// The value that most members need s and p for alone, if many do; of several the one that leaves least.
  ExprRef mostCommon(const std::vector<Member>& members) {
    Chains chains;
    std::unordered_map<ExprRef, size_t> counts;
    for (const Member& member : members)
      for (const ExprRef value : chainOf(pullOf(member), chains)) ++counts[value];
    ExprRef best = nullptr;
    for (const Member& member : members)
      for (const ExprRef value : chains.at(pullOf(member)))
        if (counts[value] >= kMany && (!best || counts[value] > counts[best]) && mayBeStored(value, members))
          best = value;
    return best;
  }

  bool mayBeStored(ExprRef value, const std::vector<Member>& members) {
    if (value->canFail) return false;
    if (value->kind != ExprKind::Op && value->kind != ExprKind::Convert && value->kind != ExprKind::Load &&
        value->kind != ExprKind::Project)
      return false;
    const bool readsCells = lcu::anyNode({value}, [&](ExprRef e) {
      return e->kind == ExprKind::Host && program_.vars[e->index].kind == lcu::VarKind::Cell;
    });
    return !readsCells && std::any_of(members.begin(), members.end(),
                                      [&](const Member& m) { return alwaysEvaluates({pullOf(m)}, value); });
  }

  /// Just before the first map that needs it: all that it needs is there.
  VarId store(ExprRef value, const std::vector<Member>& members) {
    lcu::ExprArena& arena = *program_.arena;
    const auto needs = [&](const Member& m) {
      return lcu::anyNode({pullOf(m)}, [&](ExprRef e) { return e == value; });
    };
    const Member first = *std::find_if(members.begin(), members.end(), needs);
    Soac map = mapOf(first);
    const VarId stored = program_.newVar(
        {"value", lcu::VarKind::Array, value->type, program_.vars[map.results[first.pull]].extent});
    const ExprRef element = arena.load(stored, value->type, arena.param(0));
    for (const Member& m : members) {
      ExprRef& pull = mapOf(m).pull[m.pull];
      pull = arena.rewrite(pull, [&](ExprRef e) { return e == value ? element : nullptr; });
    }
    map.pull = {value};
    map.effects.clear();
    map.results = {stored};
    lcu::Stmt stmt;
    stmt.results = map.results;
    stmt.span = block_.stmts[first.statement].span;
    const std::string name = fmt::format("{}_value_{}", map.origin.empty() ? "main" : map.origin, stored);
    stmt.node = lcu::Launch{{name, {std::move(map)}, stmt.results}};
    block_.stmts.insert(block_.stmts.begin() + static_cast<std::ptrdiff_t>(first.statement), std::move(stmt));
    return stored;
  }

  lcu::Program& program_;
  lcu::Block& block_;
};

}  // namespace

std::set<VarId> storeCommonValues(lcu::Program& program) {
  std::set<VarId> stored;
  lcu::forEachBlock(program, [&](lcu::Block& block) { Storing(program, block).run(stored); });
  return stored;
}

}  // namespace kelpie::fusion

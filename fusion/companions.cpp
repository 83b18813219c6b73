#include "fusion/companions.h"

#include <algorithm>
#include <set>

#include "fusion/effects.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

bool isPointwise(const lcu::Program& program, ExprRef load, const Soac& soac) {
  const ExprRef at = load->operands[0];
  return soac.kind != SoacKind::Once && at->kind == ExprKind::Param && at->index == 0 &&
         program.vars[load->index].extent == soac.space.extent;
}

namespace {

/// Statements of longer blocks have no companions: what needs what takes a bit for each pair.
constexpr size_t kMostStatements = 4096;

constexpr size_t kBits = 64;
void insert(std::vector<uint64_t>& set, size_t s) { set[s / kBits] |= uint64_t{1} << (s % kBits); }
bool contains(const std::vector<uint64_t>& set, size_t s) { return set[s / kBits] >> (s % kBits) & 1; }
void unite(std::vector<uint64_t>& set, const std::vector<uint64_t>& others) {
  for (size_t w = 0; w < set.size(); ++w) set[w] |= others[w];
}

/// What a SOAC reads otherwise than at its own element.
std::set<VarId> readElsewhere(const lcu::Program& program, const Soac& soac) {
  std::set<VarId> own, others;
  lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
    if (e->kind != ExprKind::Host && e->kind != ExprKind::Load) return;
    const bool pointwise = e->kind == ExprKind::Load && isPointwise(program, e, soac);
    (pointwise ? own : others).insert(e->index);
  });
  for (VarId var : lcu::freeVars(soac))  // what its space needs
    if (!own.contains(var)) others.insert(var);
  return others;
}

}  // namespace

void Companions::add(const lcu::Program& program, const lcu::Block& block) {
  const size_t count = block.stmts.size();
  if (count > kMostStatements) return;
  BlockOrder& order = blocks_.emplace_back();
  const Statements none((count + kBits - 1) / kBits);
  order.needed.assign(count, none);
  order.finished.assign(count, none);
  std::map<VarId, size_t> definition;
  for (size_t s = 0; s < count; ++s) {
    const lcu::Stmt& stmt = block.stmts[s];
    const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
    const Soac* soac = launch ? launch->kernel.bindings.data() : nullptr;
    const std::set<VarId> elsewhere = soac ? readElsewhere(program, *soac) : std::set<VarId>{};
    for (VarId var : lcu::freeVars(stmt)) {
      const auto found = definition.find(var);
      if (found == definition.end()) continue;
      const size_t d = found->second;
      const Soac* producer = order.soacs[d];
      const bool together = soac && producer && !elsewhere.contains(var) &&
                            (producer->kind == SoacKind::Map || producer->kind == SoacKind::Scan);
      unite(order.finished[s], together ? order.finished[d] : order.needed[d]);
      if (!together) insert(order.finished[s], d);
      unite(order.needed[s], order.needed[d]);
      insert(order.needed[s], d);
    }
    for (VarId var : stmt.results) definition[var] = s;
    order.soacs.push_back(soac);
    if (!soac || soac->kind == SoacKind::Once || soac->space.segmented()) continue;
    order.byExtent[soac->space.extent].push_back(s);
    places_[soac] = {&order, s};
  }
}

bool Companions::any(const Soac& map, const std::function<bool(const Soac&)>& stays) const {
  const auto found = places_.find(&map);
  if (found == places_.end()) return false;
  const auto& [order, m] = found->second;
  const std::vector<size_t>& beside = order->byExtent.at(map.space.extent);
  return std::any_of(beside.begin(), beside.end(), [&, order = order, m = m](size_t c) {
    return c != m && !contains(order->needed[m], c) && !contains(order->finished[c], m) &&
           stays(*order->soacs[c]);
  });
}

}  // namespace kelpie::fusion

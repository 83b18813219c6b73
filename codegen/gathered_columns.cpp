#include "codegen/gathered_columns.h"

#include <algorithm>

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;
using lcu::VarId;

namespace {

bool isColumn(ExprRef e, const KernelInfo& info) {
  return e->kind == ExprKind::Load && (e->type == ScalarType::Int64 || e->type == ScalarType::Float64) &&
         info.parameter(ParameterKind::Array, e->index);
}

/// The array whose element a position is; nothing if it is anything else.
std::optional<VarId> placesOf(ExprRef position, const KernelInfo& info) {
  ExprRef e = position;
  while (e->kind == ExprKind::Check || e->kind == ExprKind::Convert)
    e = e->operands[e->kind == ExprKind::Check ? 1 : 0];
  const bool element = e->kind == ExprKind::Load && isElement(e->operands[0]);
  if (!element || !info.parameter(ParameterKind::Array, e->index)) return std::nullopt;
  return e->index;
}

}  // namespace

std::optional<GatheredColumns> gatheredColumns(const lcu::Kernel& kernel, const KernelInfo& info,
                                               const lcu::Program& program) {
  std::vector<GatheredColumns> found;
  for (size_t b = 0; b < kernel.bindings.size(); ++b) {
    if (info.bindings[b].role != BindingRole::Element) continue;
    const lcu::Soac& soac = kernel.bindings[b];
    if (soac.kind != SoacKind::Map && soac.kind != SoacKind::Reduce) return std::nullopt;
    if (lcu::anyNode(thunksOf(soac), lcu::isUnbounded)) return std::nullopt;
    lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
      if (!isColumn(e, info)) return;
      const std::optional<VarId> places = placesOf(e->operands[0], info);
      const ExprRef extent = program.vars.at(e->index).extent;
      if (!places || !extent) return;
      const auto known = std::find_if(found.begin(), found.end(), [&](const GatheredColumns& other) {
        return other.position == e->operands[0] && program.vars.at(other.columns[0]).extent == extent;
      });
      if (known == found.end()) {
        found.push_back({e->operands[0], *places, {e->index}});
      } else if (std::find(known->columns.begin(), known->columns.end(), e->index) == known->columns.end()) {
        known->columns.push_back(e->index);
      }
    });
  }
  const auto most = std::max_element(
      found.begin(), found.end(),
      [](const GatheredColumns& a, const GatheredColumns& b) { return a.columns.size() < b.columns.size(); });
  if (most == found.end() || most->columns.size() < 2) return std::nullopt;
  return *most;
}

}  // namespace kelpie::codegen

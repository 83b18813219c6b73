// What the thunks of segmented bindings need of the segment alone, computed once for each segment.
//
// A node moves in front of the loop over the elements when it depends on %s but not on %i or %p, cannot fail,
// and is needed for every element; or when it is needed in one branch of a conditional that depends on the
// segment alone, under the same condition.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "codegen/cpu/kernel_text.h"

namespace kelpie::codegen::cpu {

using fmt::format;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;

namespace {

/// The nodes below the roots that depend on the segment alone and cannot fail.
std::unordered_set<ExprRef> segmentNodes(const std::vector<ExprRef>& roots) {
  std::unordered_set<ExprRef> element, segment;  // depends on the element; on the segment and not the element
  lcu::forEachNode(roots, [&](ExprRef e) {
    const bool variable = e->kind == ExprKind::LoopVar || (e->kind == ExprKind::Param && e->index != 1);
    const auto in = [](const std::unordered_set<ExprRef>& set) {
      return [&set](ExprRef o) { return set.contains(o); };
    };
    if (variable || e->canFail || std::any_of(e->operands.begin(), e->operands.end(), in(element))) {
      element.insert(e);
    } else if ((e->kind == ExprKind::Param && e->index == 1) ||
               std::any_of(e->operands.begin(), e->operands.end(), in(segment))) {
      segment.insert(e);
    }
  });
  return segment;
}

}  // namespace

std::string KernelText::segmentScope(const Indices& bindings, int indent, ExpressionEmitter& inner) {
  std::vector<ExprRef> roots;
  for (uint32_t b : bindings) {
    const auto thunks = thunksOf(soac(b));
    const size_t pulls =
        soac(b).kind == SoacKind::Filter ? width(b) : 0;  // first in thunksOf, and evaluated late
    roots.insert(roots.end(), thunks.begin() + static_cast<ptrdiff_t>(pulls), thunks.end());
  }
  const std::unordered_set<ExprRef> segment = segmentNodes(roots);
  // Worth a name: what a node that depends on the element uses.
  std::unordered_set<ExprRef> used(roots.begin(), roots.end());
  std::vector<ExprRef> projections;
  lcu::forEachNode(roots, [&](ExprRef e) {
    if (e->kind == ExprKind::Project && segment.contains(e)) projections.push_back(e);
    if (!segment.contains(e)) used.insert(e->operands.begin(), e->operands.end());
  });
  const Schedule schedule = scheduleExpressions(roots);
  std::unordered_map<ExprRef, int> places;
  for (const auto& block : schedule.blocks)
    for (const auto& step : block.steps) ++places[step.node];

  // The named values of a block; those of a conditional are its projections.
  auto valuesOf = [&](const ScheduleBlock& block) {
    std::vector<ExprRef> values;
    for (const auto& step : block.steps) {
      if (!segment.contains(step.node)) continue;
      if (!lcu::isMultiValued(step.node)) {
        if (used.contains(step.node)) values.push_back(step.node);
        continue;
      }
      for (ExprRef p : projections)
        if (p->operands[0] == step.node && used.contains(p)) values.push_back(p);
    }
    return values;
  };

  std::string out;
  const std::string margin(static_cast<size_t>(indent), ' ');
  int count = 0;
  std::vector<std::pair<ExprRef, std::string>> named;
  auto nameFor = [&] { return format("of_segment_{}", ++count); };

  const std::vector<ExprRef> always = valuesOf(schedule.blocks[0]);
  ExpressionEmitter outer(dialect_, indent, "s_");
  const auto texts = outer.emit(always);
  out += outer.takeStatements();
  for (size_t k = 0; k < always.size(); ++k) {
    named.emplace_back(always[k], nameFor());
    out += format("{}const {} {} = {};\n", margin, cTypeName(always[k]->type), named.back().second, texts[k]);
  }
  for (const auto& step : schedule.blocks[0].steps) {
    if (step.node->kind != ExprKind::If || segment.contains(step.node) ||
        !segment.contains(step.node->operands[0]))
      continue;
    for (bool whenTrue : {true, false}) {
      std::vector<ExprRef> values = valuesOf(schedule.blocks[whenTrue ? step.first : step.second]);
      std::erase_if(values, [&](ExprRef e) {
        return places[e->kind == ExprKind::Project ? e->operands[0] : e] !=
               1;  // also needed under other conditions
      });
      if (values.empty()) continue;
      ExpressionEmitter branch(dialect_, indent + 2, format("s{}_", count));
      for (const auto& [node, name] : named) branch.define(node, name);
      const std::string condition = branch.atomic(step.node->operands[0]);
      const auto branchTexts = branch.emit(values);
      std::string body = branch.takeStatements();
      for (size_t k = 0; k < values.size(); ++k) {
        const std::string name = nameFor();
        out += format("{}{} {} = {};\n", margin, cTypeName(values[k]->type), name,
                      typed(Scalar::zero(values[k]->type)));
        body += format("{}  {} = {};\n", margin, name, branchTexts[k]);
        inner.define(values[k], name);
      }
      out += format("{}if ({}{}) {{\n{}{}}}\n", margin, whenTrue ? "" : "!", condition, body, margin);
    }
  }
  for (const auto& [node, name] : named) inner.define(node, name);
  return out;
}

}  // namespace kelpie::codegen::cpu

#include "fusion/sizes.h"

#include <unordered_map>

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

class Normaliser {
 public:
  explicit Normaliser(lcu::Program& program) : program_(program) {}

  ExprRef operator()(ExprRef e) {
    return program_.arena->rewrite(
        e, [this](ExprRef node) { return node->kind == ExprKind::Size ? sizeOf(node) : nullptr; });
  }

 private:
  ExprRef sizeOf(ExprRef size) {
    if (const auto it = known_.find(size); it != known_.end()) return it->second;
    known_[size] = size;  // an extent that leads back to itself says nothing
    const ExprRef extent = program_.vars[size->index].extent;
    const ExprRef normal = !extent || extent == size ? size : (*this)(extent);
    return known_[size] = normal;
  }

  lcu::Program& program_;
  std::unordered_map<ExprRef, ExprRef> known_;
};

/// Results whose extents say nothing yet get those that their SOAC gives them.
void nameExtents(const lcu::Soac& soac, lcu::Program& program) {
  using lcu::SoacKind;
  lcu::ExprArena& arena = *program.arena;
  const bool segmented = soac.space.segmented();
  ExprRef extent = soac.space.extent;
  if (soac.kind == SoacKind::Permute) extent = soac.target;
  if (soac.kind == SoacKind::Reduce) extent = soac.space.segments;
  if (soac.kind == SoacKind::Scan && soac.withTotal) extent = arena.add(extent, arena.index(1));
  for (size_t k = 0; k < soac.results.size(); ++k) {
    lcu::VarInfo& var = program.vars[soac.results[k]];
    if (var.kind != lcu::VarKind::Array || var.extent != arena.size(soac.results[k])) continue;
    var.extent = extent;
    if (soac.kind != SoacKind::Filter && soac.kind != SoacKind::Partition) continue;
    const ExprRef count = segmented && k > 0 ? arena.load(soac.results[0], lcu::kIndex, soac.space.segments)
                          : segmented        ? arena.add(soac.space.segments, arena.index(1))
                                             : arena.host(soac.results[0], lcu::kIndex);
    var.extent = k > soac.pull.size() ? arena.sub(extent, count) : count;
  }
}

}  // namespace

void changeExpressions(lcu::Soac& soac, const std::function<ExprRef(ExprRef)>& change) {
  const auto one = [&](ExprRef& e) {
    if (e) e = change(e);
  };
  for (auto* es : {&soac.pull, &soac.effects, &soac.combine.result}) {
    for (ExprRef& e : *es) one(e);
  }
  for (ExprRef* e : {&soac.where, &soac.destination, &soac.target, &soac.space.extent, &soac.space.segments,
                     &soac.space.length}) {
    one(*e);
  }
}

void normaliseSizes(lcu::Program& program) {
  lcu::forEachBlock(program, [&](lcu::Block& block) {
    for (lcu::Stmt& stmt : block.stmts) {
      if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
        for (const lcu::Soac& soac : launch->kernel.bindings) nameExtents(soac, program);
      }
    }
  });
  Normaliser normal(program);
  for (lcu::VarInfo& var : program.vars) {
    if (var.extent) var.extent = normal(var.extent);
  }
  const auto change = [&](ExprRef e) { return normal(e); };
  lcu::forEachBlock(program, [&](lcu::Block& block) {
    for (lcu::Stmt& stmt : block.stmts) {
      if (auto* let = std::get_if<lcu::HostLet>(&stmt.node)) {
        for (ExprRef& e : let->values) e = normal(e);
      } else if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
        for (lcu::Soac& soac : launch->kernel.bindings) changeExpressions(soac, change);
      } else if (auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
        conditional->condition = normal(conditional->condition);
      } else if (auto* grade = std::get_if<lcu::Grade>(&stmt.node)) {
        for (ExprRef* e : {&grade->space.extent, &grade->space.segments, &grade->space.length}) {
          if (*e) *e = normal(*e);
        }
      }
    }
  });
}

}  // namespace kelpie::fusion

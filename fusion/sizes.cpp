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

#include "flatten/loop_invariants.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace kelpie::flatten {
namespace {

using lcu::Block;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Stmt;
using lcu::VarId;
using lcu::VarKind;

/// Removes the entries whose numbers are marked.
template <typename List>
void eraseMarked(List& list, const std::vector<bool>& marked) {
  size_t number = 0;
  std::erase_if(list, [&](const auto&) { return marked[number++]; });
}

class ProgramPass {
 public:
  explicit ProgramPass(lcu::Program& program) : program_(program) {}

  void run() {
    lcu::forEachBlock(std::as_const(program_), [this](const Block& block) {
      for (const Stmt& stmt : block.stmts)
        for (VarId v : stmt.results) definitions_[v] = &stmt;
    });
    for (lcu::HostFunction& f : program_.functions) visit(f.body);
    visit(program_.entry.body);
    if (!replaced_.empty()) substitute();
  }

 private:
  /// Inner loops first.
  void visit(Block& block) {
    for (Stmt& stmt : block.stmts) {
      if (auto* branch = std::get_if<lcu::HostIf>(&stmt.node)) {
        visit(*branch->thenBlock);
        visit(*branch->elseBlock);
      } else if (auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
        visit(*loop->condition);
        visit(*loop->body);
        shorten(stmt, *loop);
      }
    }
  }

  /// One parameter that stays may show that another one does.
  void shorten(Stmt& stmt, lcu::HostLoop& loop) {
    std::vector<bool> marked;
    do {
      marked.clear();
      for (size_t k = 0; k < loop.params.size(); ++k) {
        marked.push_back(stays(loop.body->results[k], loop.params[k], loop.initial[k]));
        if (!marked.back()) continue;
        replaced_[loop.params[k]] = loop.initial[k];
        replaced_[stmt.results[k]] = loop.initial[k];
      }
      eraseMarked(loop.params, marked);
      eraseMarked(loop.initial, marked);
      eraseMarked(loop.body->results, marked);
      eraseMarked(stmt.results, marked);
    } while (std::find(marked.begin(), marked.end(), true) != marked.end());
  }

  /// Whether `v` is `param` or equal to `initial` on every way.
  bool stays(VarId v, VarId param, VarId initial) const {
    const VarId source = sourceOf(v);
    if (source == param || source == sourceOf(initial)) return true;
    const auto definition = definitions_.find(source);
    if (definition == definitions_.end()) return false;
    const Stmt& stmt = *definition->second;
    const auto number = static_cast<size_t>(std::find(stmt.results.begin(), stmt.results.end(), source) -
                                            stmt.results.begin());
    if (const auto* branch = std::get_if<lcu::HostIf>(&stmt.node))
      return stays(branch->thenBlock->results[number], param, initial) &&
             stays(branch->elseBlock->results[number], param, initial);
    const ExprRef constant = constantOf(source);
    return constant && constant == constantOf(sourceOf(initial));
  }

  /// What a variable is a copy of.
  VarId sourceOf(VarId v) const {
    while (true) {
      if (const auto other = replaced_.find(v); other != replaced_.end()) {
        v = other->second;
        continue;
      }
      const ExprRef value = letOf(v);
      if (!value || value->kind != ExprKind::Host || program_.vars[value->index].kind != VarKind::Host)
        return v;
      v = value->index;
    }
  }
  /// The constant that a variable is on every way; null: none.
  ExprRef constantOf(VarId v) const {
    const VarId source = sourceOf(v);
    const auto definition = definitions_.find(source);
    if (definition == definitions_.end()) return nullptr;
    if (const auto* branch = std::get_if<lcu::HostIf>(&definition->second->node)) {
      const auto& results = definition->second->results;
      const auto number =
          static_cast<size_t>(std::find(results.begin(), results.end(), source) - results.begin());
      const ExprRef value = constantOf(branch->thenBlock->results[number]);
      return value && value == constantOf(branch->elseBlock->results[number]) ? value : nullptr;
    }
    const ExprRef value = letOf(source);
    return value && value->kind == ExprKind::Constant ? value : nullptr;
  }
  /// The expression of the host let that defines a variable; null: there is none.
  ExprRef letOf(VarId v) const {
    const auto definition = definitions_.find(v);
    if (definition == definitions_.end()) return nullptr;
    const auto* let = std::get_if<lcu::HostLet>(&definition->second->node);
    if (!let) return nullptr;
    const auto& results = definition->second->results;
    return let->values[static_cast<size_t>(std::find(results.begin(), results.end(), v) - results.begin())];
  }

  // ---- the program without them ----

  VarId now(VarId v) const {
    for (auto other = replaced_.find(v); other != replaced_.end(); other = replaced_.find(v))
      v = other->second;
    return v;
  }
  void rename(std::vector<VarId>& vars) const {
    for (VarId& v : vars) v = now(v);
  }
  ExprRef rewritten(ExprRef e) {
    if (!e) return e;
    return program_.arena->rewriteUp(e, [this](ExprRef n, const std::vector<ExprRef>& operands) -> ExprRef {
      const bool names = n->kind == ExprKind::Host || n->kind == ExprKind::Size || n->kind == ExprKind::Load;
      if (!names || !replaced_.contains(n->index)) return nullptr;
      const VarId var = now(n->index);
      if (n->kind == ExprKind::Size) return program_.arena->size(var);
      if (n->kind == ExprKind::Load) return program_.arena->load(var, n->type, operands[0]);
      const VarId source = sourceOf(var);
      const ExprRef constant = constantOf(source);
      return constant ? constant : program_.arena->host(source, n->type);
    });
  }
  void rewrite(ExprRef& e) { e = rewritten(e); }
  void rewrite(std::vector<ExprRef>& es) {
    for (ExprRef& e : es) rewrite(e);
  }
  void rewrite(lcu::Space& space) {
    rewrite(space.extent);
    rewrite(space.segments);
    rewrite(space.length);
    space.offsets = now(space.offsets);
  }

  void substitute() {
    for (lcu::VarInfo& var : program_.vars) rewrite(var.extent);
    lcu::forEachBlock(program_, [this](Block& block) {
      for (Stmt& stmt : block.stmts) substitute(stmt);
      rename(block.results);
    });
  }
  void substitute(Stmt& stmt) {
    if (auto* let = std::get_if<lcu::HostLet>(&stmt.node)) {
      rewrite(let->values);
    } else if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
      for (lcu::Soac& soac : launch->kernel.bindings) {
        rewrite(soac.space);
        rewrite(soac.pull);
        rewrite(soac.effects);
        rewrite(soac.where);
        rewrite(soac.destination);
        rewrite(soac.target);
      }
    } else if (auto* call = std::get_if<lcu::CallFunction>(&stmt.node)) {
      rename(call->arguments);
    } else if (auto* branch = std::get_if<lcu::HostIf>(&stmt.node)) {
      rewrite(branch->condition);
    } else if (auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
      rename(loop->initial);
    } else if (auto* join = std::get_if<lcu::Join>(&stmt.node)) {
      rename(join->arrays);
    } else if (auto* grade = std::get_if<lcu::Grade>(&stmt.node)) {
      grade->keys = now(grade->keys);
      rewrite(grade->space);
    } else if (auto* service = std::get_if<lcu::Service>(&stmt.node)) {
      rename(service->arguments);
    }
  }

  lcu::Program& program_;
  std::unordered_map<VarId, const Stmt*> definitions_;
  std::unordered_map<VarId, VarId> replaced_;  ///< loop parameters and results by what they are
};

}  // namespace

void removeLoopInvariants(lcu::Program& program) { ProgramPass(program).run(); }

}  // namespace kelpie::flatten

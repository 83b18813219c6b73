#include "flatten/host_part.h"

#include <algorithm>

namespace kelpie::flatten {
namespace {

using lcu::Block;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Stmt;
using lcu::VarId;
using lcu::VarKind;

class HostPart {
 public:
  HostPart(lcu::Program& program, const EvenCalls& calls) : program_(program), calls_(calls) {}

  std::optional<lcu::HostFunction> of(const lcu::HostFunction& function) {
    lcu::HostFunction result;
    result.name = function.name + "_lengths";
    for (VarId v : function.params)
      if (isHost(v)) result.params.push_back(copyOf(v));
    const std::optional<ExprRef> good = block(function.body, result.body);
    if (!good) return std::nullopt;
    result.body.results = {let(*good, result.body)};
    for (VarId v : function.body.results) {
      if (!isHost(v)) continue;
      if (!copies_.contains(v)) return std::nullopt;
      result.body.results.push_back(copies_.at(v));
    }
    return result;
  }

 private:
  lcu::ExprArena& arena() { return *program_.arena; }
  bool isHost(VarId v) const { return program_.vars[v].kind == VarKind::Host; }
  VarId copyOf(VarId v) {
    const lcu::VarInfo& info = program_.vars[v];
    return copies_[v] = program_.newVar({info.name, VarKind::Host, info.type, nullptr});
  }
  VarId let(ExprRef e, Block& out) {
    Stmt stmt;
    stmt.results = {program_.newVar({"good", VarKind::Host, e->type, nullptr})};
    stmt.node = lcu::HostLet{{e}};
    out.stmts.push_back(std::move(stmt));
    return out.stmts.back().results[0];
  }
  ExprRef host(VarId v) { return arena().host(v, program_.vars[v].type); }

  /// Over the copies, with fallbacks for checks; null: it needs what the host part does not have.
  ExprRef known(ExprRef e) {
    const bool unknown = lcu::anyNode({e}, [&](ExprRef n) {
      return n->kind == ExprKind::Load || n->kind == ExprKind::Size || n->kind == ExprKind::Param ||
             (n->kind == ExprKind::Host && !copies_.contains(n->index));
    });
    if (unknown) return nullptr;
    const ExprRef copied = arena().rewrite(
        e, [&](ExprRef n) { return n->kind == ExprKind::Host ? host(copies_.at(n->index)) : nullptr; });
    return withoutChecks(copied);
  }
  ExprRef withoutChecks(ExprRef e) {
    while (e->canFail) {
      // The innermost ones first: what a check is made of has none then.
      ExprRef check = nullptr;
      lcu::forEachNode({e}, [&](ExprRef n) {
        const bool inner = n->kind == ExprKind::Check && std::none_of(n->operands.begin(), n->operands.end(),
                                                                      [](ExprRef o) { return o->canFail; });
        if (inner) check = n;
      });
      if (!check) return nullptr;
      const ExprRef value = arena().select(check->operands[0], check->operands[1], check->operands[2]);
      e = arena().rewrite(e, [&](ExprRef n) { return n == check ? value : nullptr; });
    }
    return e;
  }

  bool callsEven(const Block& block) const {
    return std::any_of(block.stmts.begin(), block.stmts.end(), [&](const Stmt& stmt) {
      if (const auto* call = std::get_if<lcu::CallFunction>(&stmt.node))
        return calls_.callee(call->function) != EvenCalls::Callee::Other;
      if (const auto* branch = std::get_if<lcu::HostIf>(&stmt.node))
        return callsEven(*branch->thenBlock) || callsEven(*branch->elseBlock);
      const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node);
      return loop && (callsEven(*loop->condition) || callsEven(*loop->body));
    });
  }

  /// Whether all conditions hold, after the statements put into `out`.
  std::optional<ExprRef> block(const Block& in, Block& out) {
    ExprRef good = arena().boolean(true);
    for (const Stmt& stmt : in.stmts) {
      std::optional<ExprRef> now = good;
      if (const auto* let = std::get_if<lcu::HostLet>(&stmt.node)) {
        lets(stmt, *let, out);
      } else if (const auto* branch = std::get_if<lcu::HostIf>(&stmt.node)) {
        now = conditional(stmt, *branch, good, out);
      } else if (const auto* call = std::get_if<lcu::CallFunction>(&stmt.node)) {
        now = called(stmt, *call, good, out);
      } else if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
        if (callsEven(*loop->condition) || callsEven(*loop->body)) return std::nullopt;
      }
      if (!now) return std::nullopt;
      good = *now;
    }
    return good;
  }

  void lets(const Stmt& stmt, const lcu::HostLet& node, Block& out) {
    Stmt copy;
    lcu::HostLet values;
    for (size_t k = 0; k < stmt.results.size(); ++k) {
      const ExprRef value = known(node.values[k]);
      if (!value) continue;
      values.values.push_back(value);
      copy.results.push_back(copyOf(stmt.results[k]));
    }
    if (copy.results.empty()) return;
    copy.node = std::move(values);
    out.stmts.push_back(std::move(copy));
  }

  std::optional<ExprRef> conditional(const Stmt& stmt, const lcu::HostIf& node, ExprRef good, Block& out) {
    const ExprRef condition = known(node.condition);
    if (!condition) {
      if (callsEven(*node.thenBlock) || callsEven(*node.elseBlock)) return std::nullopt;
      return good;
    }
    lcu::HostIf branch{condition, std::make_shared<Block>(), std::make_shared<Block>()};
    const std::optional<ExprRef> first = block(*node.thenBlock, *branch.thenBlock);
    const std::optional<ExprRef> second = block(*node.elseBlock, *branch.elseBlock);
    if (!first || !second) return std::nullopt;
    Stmt copy;
    branch.thenBlock->results = {let(*first, *branch.thenBlock)};
    branch.elseBlock->results = {let(*second, *branch.elseBlock)};
    copy.results = {program_.newVar({"good", VarKind::Host, ScalarType::Bool, nullptr})};
    for (size_t k = 0; k < stmt.results.size(); ++k) {
      const VarId a = node.thenBlock->results[k], b = node.elseBlock->results[k];
      if (!isHost(stmt.results[k]) || !copies_.contains(a) || !copies_.contains(b)) continue;
      branch.thenBlock->results.push_back(copies_.at(a));
      branch.elseBlock->results.push_back(copies_.at(b));
      copy.results.push_back(copyOf(stmt.results[k]));
    }
    const VarId both = copy.results[0];
    copy.node = std::move(branch);
    out.stmts.push_back(std::move(copy));
    return arena().op(ScalarOp::And, good, host(both));
  }

  std::optional<ExprRef> called(const Stmt& stmt, const lcu::CallFunction& node, ExprRef good, Block& out) {
    const EvenCalls::Callee callee = calls_.callee(node.function);
    if (callee == EvenCalls::Callee::Other) return good;
    if (callee == EvenCalls::Callee::Unfinished) return std::nullopt;
    if (const auto found = calls_.conditions.find(node.arguments[0]); found != calls_.conditions.end()) {
      const ExprRef condition = known(found->second);
      if (!condition) return std::nullopt;
      good = arena().op(ScalarOp::And, good, condition);
    }
    const std::optional<uint32_t> function = calls_.hostPart(node.function);
    if (!function) return good;
    lcu::CallFunction call{*function, {}};
    for (VarId v : node.arguments) {
      if (!isHost(v)) continue;
      if (!copies_.contains(v)) return std::nullopt;
      call.arguments.push_back(copies_.at(v));
    }
    // A recursion that went on in spite of a condition might not end.
    lcu::HostIf guard{good, std::make_shared<Block>(), std::make_shared<Block>()};
    Stmt inside, outside;
    const auto result = [&](const std::string& name, ScalarType type) {
      inside.results.push_back(program_.newVar({name, VarKind::Host, type, nullptr}));
      guard.elseBlock->results.push_back(let(arena().constant(Scalar::zero(type)), *guard.elseBlock));
    };
    result("good", ScalarType::Bool);
    outside.results = {program_.newVar({"good", VarKind::Host, ScalarType::Bool, nullptr})};
    for (VarId v : stmt.results) {
      if (!isHost(v)) continue;
      result(program_.vars[v].name, program_.vars[v].type);
      outside.results.push_back(copyOf(v));
    }
    guard.thenBlock->results = inside.results;
    inside.node = std::move(call);
    guard.thenBlock->stmts.push_back(std::move(inside));
    const VarId all = outside.results[0];
    outside.node = std::move(guard);
    out.stmts.push_back(std::move(outside));
    return host(all);
  }

  lcu::Program& program_;
  const EvenCalls& calls_;
  std::unordered_map<VarId, VarId> copies_;  ///< of what the host part has
};

}  // namespace

std::optional<lcu::HostFunction> hostPart(lcu::Program& program, const lcu::HostFunction& function,
                                          const EvenCalls& calls) {
  return HostPart(program, calls).of(function);
}

}  // namespace kelpie::flatten

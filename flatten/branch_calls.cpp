#include "flatten/branch_calls.h"

#include <unordered_set>

#include "flatten/core_walk.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::Call;
using core::Exp;
using core::ExpPtr;
using core::FunctionId;
using core::If;
using core::Var;

bool same(const Atom& a, const Atom& b) {
  if (a.isConstant() != b.isConstant() || !(a.type == b.type)) return false;
  return a.isConstant() ? a.constant() == b.constant() : a.var() == b.var();
}

/// The functions that an apply-to-each calls, or that such a function calls.
std::unordered_set<FunctionId> calledInside(const core::Program& program) {
  std::unordered_set<FunctionId> found;
  std::vector<FunctionId> work;
  const std::function<void(const ExpPtr&, bool)> visit = [&](const ExpPtr& e, bool inside) {
    const Chain chain = takeApart(e);
    const auto part = [&](const ExpPtr& x) {
      if (const auto* call = std::get_if<Call>(&x->node);
          call && inside && found.insert(call->function).second)
        work.push_back(call->function);
      const bool each = std::holds_alternative<core::Each>(x->node);
      forEachPart(*x, [&](const ExpPtr& body) { visit(body, inside || each); });
    };
    for (const Chain::Binding& let : chain.lets) part(let.rhs);
    part(chain.tail);
  };
  visit(program.entry, false);
  for (const core::Function& function : program.functions)
    if (function.body) visit(function.body, false);
  while (!work.empty()) {
    const FunctionId f = work.back();
    work.pop_back();
    if (program.functions[f].body) visit(program.functions[f].body, true);
  }
  return found;
}

/// In the body of one function.
class Joiner {
 public:
  Joiner(core::Program& program, FunctionId self) : program_(program), self_(self) {}

  ExpPtr chain(const ExpPtr& e) {
    Chain chain = takeApart(e);
    for (Chain::Binding& let : chain.lets) let.rhs = joined(let.rhs);
    chain.tail = joined(chain.tail);
    return putTogether(std::move(chain));
  }

 private:
  /// From the inside out: each branch then ends in one call at most.
  ExpPtr joined(const ExpPtr& e) {
    const ExpPtr inside = rebuilt(
        e, [](const Atom& a) { return a; }, [&](const ExpPtr& part) { return chain(part); });
    const auto* node = std::get_if<If>(&inside->node);
    if (!node) return inside;
    const Call* first = callAtEnd(node->thenBranch);
    const Call* second = callAtEnd(node->elseBranch);
    return first && second ? together(inside, *node, *first, *second) : inside;
  }

  /// The call of the function itself that a branch ends in, or that a branch of its end does; null: none.
  const Call* callAtEnd(const ExpPtr& branch) const {
    const Exp* e = branch.get();
    while (const auto* let = std::get_if<core::Let>(&e->node)) e = let->body.get();
    if (const auto* call = std::get_if<Call>(&e->node)) return call->function == self_ ? call : nullptr;
    const auto* node = std::get_if<If>(&e->node);
    if (!node) return nullptr;
    const Call* call = callAtEnd(node->thenBranch);
    return call ? call : callAtEnd(node->elseBranch);
  }

  static bool isCall(const ExpPtr& branch) {
    const Exp* e = branch.get();
    while (const auto* let = std::get_if<core::Let>(&e->node)) e = let->body.get();
    return std::holds_alternative<Call>(e->node);
  }

  /// What a branch hands on: whether it calls, its results if it does not, the arguments of the call if it
  /// does.
  struct Handed {
    bool flag;                      ///< some branch ends without a call
    Row results;                    ///< none without a flag
    std::vector<size_t> arguments;  ///< positions of those that differ
    Row types;
  };

  ExpPtr together(const ExpPtr& e, const If& node, const Call& first, const Call& second) {
    Handed handed;
    handed.flag = !isCall(node.thenBranch) || !isCall(node.elseBranch);
    if (handed.flag) {
      handed.results = e->type;
      handed.types.push_back(CoreType(ScalarType::Bool));
      handed.types.insert(handed.types.end(), e->type.begin(), e->type.end());
    }
    for (size_t k = 0; k < first.arguments.size(); ++k) {
      if (same(first.arguments[k], second.arguments[k])) continue;
      handed.arguments.push_back(k);
      handed.types.push_back(first.arguments[k].type);
    }
    if (handed.arguments.empty()) return e;
    const Call call = first;
    If choice{node.condition, handing(node.thenBranch, handed), handing(node.elseBranch, handed)};
    Chain result;
    std::vector<Var> vars;
    for (const CoreType& type : handed.types) vars.push_back({program_.nextVar++, "", type});
    result.lets.push_back({vars, makeExp(std::move(choice), handed.types, e->span), e->span});
    Call next = call;
    const size_t arguments = vars.size() - handed.arguments.size();
    for (size_t k = 0; k < handed.arguments.size(); ++k)
      next.arguments[handed.arguments[k]] = atomOf(vars[arguments + k]);
    result.tail = makeExp(std::move(next), e->type, e->span);
    if (handed.flag) {
      core::Values results;
      for (size_t k = 1; k < arguments; ++k) results.atoms.push_back(atomOf(vars[k]));
      result.tail = makeExp(If{atomOf(vars[0]), result.tail, makeExp(std::move(results), e->type, e->span)},
                            e->type, e->span);
    }
    return putTogether(std::move(result));
  }

  ExpPtr handing(const ExpPtr& branch, const Handed& handed) {
    Chain chain = takeApart(branch);
    const Span span = chain.tail->span;
    if (const auto* node = std::get_if<If>(&chain.tail->node); node && callAtEnd(chain.tail)) {
      chain.tail =
          makeExp(If{node->condition, handing(node->thenBranch, handed), handing(node->elseBranch, handed)},
                  handed.types, span);
      return putTogether(std::move(chain));
    }
    core::Values values;
    const auto* call = std::get_if<Call>(&chain.tail->node);
    const bool calls = call && call->function == self_;
    if (handed.flag) values.atoms.push_back({Scalar::ofBool(calls), CoreType(ScalarType::Bool)});
    if (calls) {
      for (const CoreType& type : handed.results) values.atoms.push_back(nothing(type, chain, span));
      for (size_t k : handed.arguments) values.atoms.push_back(call->arguments[k]);
    } else {
      std::vector<Var> results;
      for (const CoreType& type : handed.results) results.push_back({program_.nextVar++, "", type});
      chain.lets.push_back({results, chain.tail, span});
      for (const Var& var : results) values.atoms.push_back(atomOf(var));
      for (size_t k = handed.results.size() + 1; k < handed.types.size(); ++k)
        values.atoms.push_back(nothing(handed.types[k], chain, span));
    }
    chain.tail = makeExp(std::move(values), handed.types, span);
    return putTogether(std::move(chain));
  }

  /// A value that nobody looks at.
  Atom nothing(const CoreType& type, Chain& chain, Span span) {
    if (type.isScalar()) return {Scalar::zero(type.scalar()), type};
    const Var var{program_.nextVar++, "", type};
    chain.lets.push_back({{var}, makeExp(core::Constant{{zeroColumn(type, 1)}}, {type}, span), span});
    return atomOf(var);
  }

  core::Program& program_;
  FunctionId self_;
};

}  // namespace

core::Program joinBranchCalls(core::Program program, const Analysis& analysis) {
  const std::unordered_set<FunctionId> inside = calledInside(program);
  for (FunctionId f = 0; f < program.functions.size(); ++f) {
    const ExpPtr body = program.functions[f].body;
    if (!body || !inside.contains(f) || !analysis.recursive(f) || analysis.scalarLoop(f) ||
        analysis.scalarRecursion(f) || analysis.effects(body))
      continue;
    program.functions[f].body = Joiner(program, f).chain(body);
  }
  return program;
}

}  // namespace kelpie::flatten

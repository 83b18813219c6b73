#include "flatten/core_walk.h"

#include <utility>

namespace kelpie::flatten {

using core::Atom;
using core::Exp;
using core::ExpPtr;

Chain takeApart(ExpPtr e) {
  Chain chain;
  while (auto* let = std::get_if<core::Let>(&e->node)) {
    chain.lets.push_back({let->vars, let->rhs, e->span});
    e = let->body;
  }
  chain.tail = std::move(e);
  return chain;
}

ExpPtr putTogether(Chain chain) {
  ExpPtr e = std::move(chain.tail);
  for (size_t k = chain.lets.size(); k-- > 0;) {
    Chain::Binding& let = chain.lets[k];
    auto exp = std::make_shared<Exp>();
    exp->type = e->type;
    exp->span = let.span;
    exp->node = core::Let{std::move(let.vars), std::move(let.rhs), std::move(e)};
    e = std::move(exp);
  }
  return e;
}

namespace {

/// Calls `atom` on every atom and `part` on every part of an expression, const or not.
template <typename AnyExp, typename OnAtom, typename OnPart>
void visit(AnyExp& e, const OnAtom& atom, const OnPart& part) {
  if (auto* values = std::get_if<core::Values>(&e.node))
    for (auto& a : values->atoms) atom(a);
  if (auto* call = std::get_if<core::Call>(&e.node))
    for (auto& a : call->arguments) atom(a);
  if (auto* prim = std::get_if<core::Prim>(&e.node))
    for (auto& a : prim->arguments) atom(a);
  if (auto* invariant = std::get_if<core::Invariant>(&e.node)) part(invariant->body);
  if (auto* branch = std::get_if<core::If>(&e.node)) {
    atom(branch->condition);
    part(branch->thenBranch);
    part(branch->elseBranch);
  }
  if (auto* each = std::get_if<core::Each>(&e.node)) {
    for (auto& binding : each->bindings) atom(binding.sequence);
    part(each->body);
  }
}

}  // namespace

bool same(const Atom& a, const Atom& b) {
  if (a.isConstant() != b.isConstant() || !(a.type == b.type)) return false;
  return a.isConstant() ? a.constant() == b.constant() : a.var() == b.var();
}

core::ExpPtr makeExp(decltype(core::Exp::node) node, Row type, Span span) {
  auto e = std::make_shared<core::Exp>();
  e->node = std::move(node);
  e->type = std::move(type);
  e->span = span;
  return e;
}

core::Atom unusedValue(core::Program& program, const CoreType& type, Chain& chain, Span span) {
  if (type.isScalar()) return {Scalar::zero(type.scalar()), type};
  const core::Var var{program.nextVar++, "", type};
  chain.lets.push_back({{var}, makeExp(core::Constant{{zeroColumn(type, 1)}}, {type}, span), span});
  return atomOf(var);
}

bool isChecked(core::PrimOp op) {
  using core::PrimOp;
  switch (op) {
    case PrimOp::Scalar:
    case PrimOp::Length:
    case PrimOp::Literal:
    case PrimOp::Reduce:
    case PrimOp::Scan:
    case PrimOp::Append:
    case PrimOp::Flatten:
    case PrimOp::Project:
    case PrimOp::Grade:
      return false;
    default:
      return true;
  }
}

void changeBodies(core::Program& program, const std::function<ExpPtr(const ExpPtr&)>& change) {
  for (size_t f = 0, count = program.functions.size(); f < count; ++f) {
    if (!program.functions[f].body) continue;
    ExpPtr body = change(program.functions[f].body);
    program.functions[f].body = std::move(body);  // not before: functions may have been added
  }
  program.entry = change(program.entry);
}

void forEachAtom(const Exp& e, const std::function<void(const Atom&)>& on) {
  visit(e, on, [](const ExpPtr&) {});
}

void forEachPart(const Exp& e, const std::function<void(const ExpPtr&)>& on) {
  visit(
      e, [](const Atom&) {}, on);
}

ExpPtr rebuilt(const ExpPtr& e, const std::function<Atom(const Atom&)>& atom,
               const std::function<ExpPtr(const ExpPtr&)>& part) {
  auto copy = std::make_shared<Exp>(*e);
  visit(
      *copy, [&](Atom& a) { a = atom(a); }, [&](ExpPtr& inner) { inner = part(inner); });
  return copy;
}

void collectUses(const ExpPtr& e, std::unordered_set<core::VarId>& uses) {
  const Chain chain = takeApart(e);
  auto visit = [&](const ExpPtr& x) {
    forEachAtom(*x, [&](const Atom& a) {
      if (!a.isConstant()) uses.insert(a.var());
    });
    forEachPart(*x, [&](const ExpPtr& part) { collectUses(part, uses); });
  };
  for (const Chain::Binding& let : chain.lets) visit(let.rhs);
  visit(chain.tail);
}

ExpPtr renamed(const ExpPtr& e, const std::unordered_map<core::VarId, Atom>& names) {
  const auto one = [&](const ExpPtr& x) {
    return rebuilt(
        x,
        [&](const Atom& a) {
          const auto name = a.isConstant() ? names.end() : names.find(a.var());
          return name == names.end() ? a : name->second;
        },
        [&](const ExpPtr& part) { return renamed(part, names); });
  };
  Chain chain = takeApart(e);
  for (Chain::Binding& let : chain.lets) let.rhs = one(let.rhs);
  chain.tail = one(chain.tail);
  return putTogether(std::move(chain));
}

ExpPtr copied(core::Program& program, const ExpPtr& e, std::unordered_map<core::VarId, Atom>& names) {
  const auto rename = [&](core::Var& var) {
    const core::VarId original = std::exchange(var.id, program.nextVar++);
    names[original] = atomOf(var);
  };
  const auto one = [&](const ExpPtr& x) {
    auto result = std::make_shared<Exp>(*x);
    if (auto* each = std::get_if<core::Each>(&result->node))
      for (core::Each::Binding& binding : each->bindings)
        for (core::Var& var : binding.vars) rename(var);
    visit(
        *result,
        [&](Atom& a) {
          const auto name = a.isConstant() ? names.end() : names.find(a.var());
          if (name != names.end()) a = name->second;
        },
        [&](ExpPtr& part) { part = copied(program, part, names); });
    return result;
  };
  Chain chain = takeApart(e);
  for (Chain::Binding& let : chain.lets) {
    let.rhs = one(let.rhs);
    for (core::Var& var : let.vars) rename(var);
  }
  chain.tail = one(chain.tail);
  return putTogether(std::move(chain));
}

std::unordered_set<core::VarId> usesOf(const ExpPtr& e) {
  std::unordered_set<core::VarId> uses;
  collectUses(e, uses);
  return uses;
}

}  // namespace kelpie::flatten

#include "flatten/hoist.h"

#include <unordered_map>
#include <unordered_set>

#include "flatten/core_walk.h"
#include "flatten/fixed_lets.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::Each;
using core::Exp;
using core::ExpPtr;
using core::If;
using core::Prim;
using core::PrimOp;
using core::Var;
using core::VarId;

class Hoisting {
 public:
  Hoisting(core::Program& program, const Analysis& analysis)
      : program_(program), fixedLets_(program, analysis) {}

  void run() {
    changeBodies(program_, [this](const ExpPtr& body) { return chain(body); });
  }

 private:
  ExpPtr chain(const ExpPtr& e) {
    Chain in = takeApart(e), out;
    for (Chain::Binding& let : in.lets) {
      let.rhs = inside(let.rhs, out);
      out.lets.push_back(std::move(let));
    }
    out.tail = inside(in.tail, out);
    return putTogether(std::move(out));
  }

  /// An expression that is no let; what is hoisted out of it is appended to `out`, just before it.
  ExpPtr inside(const ExpPtr& e, Chain& out) {
    if (std::holds_alternative<core::Let>(e->node)) return chain(e);
    auto same = [](const Atom& a) { return a; };
    ExpPtr result = rebuilt(e, same, [&](const ExpPtr& inner) { return chain(inner); });
    auto* each = std::get_if<Each>(&result->node);
    return each ? hoistFrom(result, *each, out) : result;
  }

  ExpPtr hoistFrom(const ExpPtr& e, const Each& each, Chain& out) {
    Chain body = takeApart(each.body);
    std::unordered_set<VarId> elements;
    for (const Each::Binding& binding : each.bindings)
      for (const Var& var : binding.vars) elements.insert(var.id);
    const std::vector<bool> moves = fixedLets_.moving(body, std::move(elements));
    Chain stays;
    std::vector<Chain::Binding> moved;
    bool guarded = false;
    for (size_t k = 0; k < body.lets.size(); ++k) {
      guarded |= moves[k] && fixedLets_.risky(body.lets[k].rhs);
      (moves[k] ? moved : stays.lets).push_back(body.lets[k]);
    }
    if (moved.empty()) return e;
    stays.tail = body.tail;
    if (guarded) {
      std::unordered_set<VarId> used;
      for (const Chain::Binding& let : stays.lets) collectUses(let.rhs, used);
      collectUses(stays.tail, used);
      moved = {underTest(each, std::move(moved), used, out)};
    }
    for (Chain::Binding& let : moved) out.lets.push_back(std::move(let));
    auto result = std::make_shared<Exp>(*e);
    std::get<Each>(result->node).body = putTogether(std::move(stays));
    return result;
  }

  /// One let that computes the moved ones only if there are elements, and sequences have one length, as the
  /// apply-to-each fails first otherwise; of their variables it binds those that are `used`.
  Chain::Binding underTest(const Each& each, std::vector<Chain::Binding> moved,
                           const std::unordered_set<VarId>& used, Chain& out) {
    const Span span = moved.front().span;
    auto make = [&](auto node, Row type) {
      auto e = std::make_shared<Exp>();
      e->node = std::move(node);
      e->type = std::move(type);
      e->span = span;
      return ExpPtr(e);
    };
    auto bindFresh = [&](ExpPtr rhs) {
      Var var{program_.nextVar++, "", rhs->type[0]};
      out.lets.push_back({{var}, std::move(rhs), span});
      return Atom{var.id, var.type};
    };
    const CoreType integer(program_.intType);
    const CoreType boolean(ScalarType::Bool);
    const auto lengthOf = [&](const Each::Binding& binding) {
      return bindFresh(make(Prim{.op = PrimOp::Length, .arguments = {binding.sequence}}, {integer}));
    };
    const auto scalar = [&](ScalarOp op, const Atom& x, const Atom& y) {
      return bindFresh(make(Prim{.op = PrimOp::Scalar, .arguments = {x, y}, .scalarOp = op}, {boolean}));
    };
    const Atom n = lengthOf(each.bindings[0]);
    Atom condition = scalar(ScalarOp::Greater, n, Atom{Scalar::ofInt(program_.intType, 0), integer});
    for (size_t k = 1; k < each.bindings.size(); ++k)
      condition = scalar(ScalarOp::And, condition, scalar(ScalarOp::Equal, n, lengthOf(each.bindings[k])));

    // Inside the branch the variables get new names; the old ones are bound to its results.
    std::unordered_map<VarId, Atom> names;
    Chain then, otherwise;
    std::vector<Var> vars;
    core::Values computed, zeros;
    Row row;
    for (Chain::Binding& let : moved) {
      let.rhs = renamed(let.rhs, names);
      for (Var& var : let.vars) {
        const Var original = var;
        var.id = program_.nextVar++;
        names.emplace(original.id, atomOf(var));
        if (!used.contains(original.id)) continue;
        vars.push_back(original);
        row.push_back(var.type);
        computed.atoms.push_back(atomOf(var));
        zeros.atoms.push_back(unusedValue(program_, var.type, otherwise, span));
      }
      then.lets.push_back(std::move(let));
    }
    then.tail = make(computed, row);
    otherwise.tail = make(zeros, row);
    return {vars, make(If{condition, putTogether(std::move(then)), putTogether(std::move(otherwise))}, row),
            span};
  }

  core::Program& program_;
  FixedLets fixedLets_;
};

}  // namespace

core::Program hoist(core::Program program, const Analysis& analysis) {
  Hoisting(program, analysis).run();
  return program;
}

}  // namespace kelpie::flatten

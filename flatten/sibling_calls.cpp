#include "flatten/sibling_calls.h"

#include <algorithm>

#include "flatten/core_walk.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::Call;
using core::Exp;
using core::ExpPtr;
using core::Prim;
using core::PrimOp;
using core::Var;
using core::VarId;

template <typename Node>
ExpPtr make(Node node, Row type, Span span) {
  auto e = std::make_shared<Exp>();
  e->node = std::move(node);
  e->type = std::move(type);
  e->span = span;
  return e;
}

class Joiner {
 public:
  Joiner(core::Program& program, const Analysis& analysis) : program_(program), analysis_(analysis) {}

  void run() {
    changeBodies(program_, [this](const ExpPtr& body) { return chain(body); });
  }

 private:
  ExpPtr chain(const ExpPtr& e) {
    Chain chain = takeApart(e);
    for (Chain::Binding& let : chain.lets) let.rhs = inside(let.rhs);
    chain.tail = inside(chain.tail);
    for (size_t first = 0; first < chain.lets.size(); ++first) join(chain, first);
    return putTogether(std::move(chain));
  }

  ExpPtr inside(const ExpPtr& e) {
    return rebuilt(
        e, [](const Atom& a) { return a; }, [&](const ExpPtr& part) { return chain(part); });
  }

  /// The call of a let that may be made with others; null: there is none.
  const Call* candidate(const Chain::Binding& let) const {
    const auto* call = std::get_if<Call>(&let.rhs->node);
    if (!call || let.vars.empty() || call->arguments.empty()) return nullptr;
    const core::FunctionId f = call->function;
    const bool hostSteps =
        analysis_.recursive(f) && !analysis_.tailRecursive(f) && !analysis_.scalarRecursion(f);
    return hostSteps && !analysis_.effects(let.rhs) ? call : nullptr;
  }

  /// Joins the call of let number `first` with later ones that do not need its results.
  void join(Chain& chain, size_t first) {
    const Call* call = candidate(chain.lets[first]);
    if (!call) return;
    std::unordered_set<VarId> results;  // what needs a result of the calls, and the results
    const auto addVars = [&](const Chain::Binding& let) {
      for (const Var& var : let.vars) results.insert(var.id);
    };
    std::vector<size_t> calls = {first}, later;
    addVars(chain.lets[first]);
    for (size_t k = first + 1; k < chain.lets.size(); ++k) {
      const Chain::Binding& let = chain.lets[k];
      if (analysis_.effects(let.rhs)) break;
      const std::unordered_set<VarId> uses = usesOf(let.rhs);
      const bool needs = std::any_of(uses.begin(), uses.end(), [&](VarId v) { return results.contains(v); });
      const Call* other = needs ? nullptr : candidate(let);
      if (other && other->function == call->function) {
        calls.push_back(k);
        addVars(let);
      } else if (needs) {
        addVars(let);
      }
    }
    if (calls.size() < 2) return;
    std::vector<Chain::Binding> joined = together(chain, calls);
    if (joined.empty()) return;
    // What stands between them: first what does not need their results, then the calls, then what does.
    std::unordered_set<VarId> needing;
    std::vector<Chain::Binding> before, after;
    for (size_t k = first; k <= calls.back(); ++k) {
      Chain::Binding& let = chain.lets[k];
      const bool isCall = std::find(calls.begin(), calls.end(), k) != calls.end();
      const std::unordered_set<VarId> uses = usesOf(let.rhs);
      const bool needs = std::any_of(uses.begin(), uses.end(), [&](VarId v) { return needing.contains(v); });
      if (isCall || needs)
        for (const Var& var : let.vars) needing.insert(var.id);
      if (!isCall) (needs ? after : before).push_back(std::move(let));
    }
    before.insert(before.end(), std::make_move_iterator(joined.begin()),
                  std::make_move_iterator(joined.end()));
    before.insert(before.end(), std::make_move_iterator(after.begin()), std::make_move_iterator(after.end()));
    const auto begin = chain.lets.begin() + static_cast<ptrdiff_t>(first);
    chain.lets.erase(begin, chain.lets.begin() + static_cast<ptrdiff_t>(calls.back()) + 1);
    chain.lets.insert(chain.lets.begin() + static_cast<ptrdiff_t>(first),
                      std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
  }

  /// The calls as an apply-to-each over the arguments in which they differ, and their results out of it.
  std::vector<Chain::Binding> together(const Chain& chain, const std::vector<size_t>& calls) {
    const auto callAt = [&](size_t k) -> const Call& {
      return std::get<Call>(chain.lets[calls[k]].rhs->node);
    };
    const Chain::Binding& let = chain.lets[calls[0]];
    const Span span = let.rhs->span;
    std::vector<Chain::Binding> out;
    const auto bind = [&](ExpPtr rhs) {
      const Var var{program_.nextVar++, "", rhs->type[0]};
      out.push_back({{var}, std::move(rhs), span});
      return Atom{var.id, var.type};
    };
    core::Each each;
    Call body = callAt(0);
    for (size_t p = 0; p < body.arguments.size(); ++p) {
      Prim literal{.op = PrimOp::Literal, .arguments = {}};
      bool differs = false;
      for (size_t k = 0; k < calls.size(); ++k) {
        literal.arguments.push_back(callAt(k).arguments[p]);
        differs |= !same(literal.arguments[0], literal.arguments[k]);
      }
      if (!differs) continue;
      const CoreType type = body.arguments[p].type;
      literal.count = static_cast<uint32_t>(calls.size());
      const Atom sequence = bind(make(literal, {CoreType::sequence({type})}, span));
      const Var element{program_.nextVar++, "", type};
      each.bindings.push_back({{element}, sequence});
      body.arguments[p] = Atom{element.id, type};
    }
    if (each.bindings.empty()) return {};
    const Row row = let.rhs->type;
    each.body = make(body, row, span);
    const Atom results = bind(make(each, {CoreType::sequence(row)}, span));
    for (size_t k = 0; k < calls.size(); ++k) {
      const Atom position{Scalar::ofInt(program_.intType, static_cast<int64_t>(k)),
                          CoreType(program_.intType)};
      const Prim index{.op = PrimOp::Index, .arguments = {results, position}};
      const Chain::Binding& own = chain.lets[calls[k]];
      out.push_back({own.vars, make(index, row, own.rhs->span), own.span});
    }
    return out;
  }

  core::Program& program_;
  const Analysis& analysis_;
};

}  // namespace

core::Program joinSiblingCalls(core::Program program, const Analysis& analysis) {
  Joiner(program, analysis).run();
  return program;
}

}  // namespace kelpie::flatten

#include "flatten/branch_calls.h"

#include <algorithm>
#include <unordered_set>

#include "flatten/core_walk.h"
#include "flatten/cut_branches.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::Call;
using core::Exp;
using core::ExpPtr;
using core::FunctionId;
using core::If;
using core::Var;

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

/// Joins calls of one function.
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
  /// What the ends of branches hand on: whether they call, results if they do not, arguments if they do.
  struct Handed {
    bool flag = false;              ///< some end is no call
    Row results;                    ///< none without a flag
    std::vector<size_t> arguments;  ///< positions of those that differ
    Row types;                      ///< of all that
  };

  ExpPtr joined(const ExpPtr& e) {
    const auto* node = std::get_if<If>(&e->node);
    std::vector<const Call*> first, second;
    bool flag = false;
    if (node) {
      collectEnds(node->thenBranch, first, flag);
      collectEnds(node->elseBranch, second, flag);
    }
    const size_t ends = first.size() + second.size();
    if (node && static_cast<size_t>(countCalls(e, self_)) > ends)
      if (const ExpPtr cut = cutAtCalls(program_, self_, e)) return chain(cut);
    if (!first.empty() && !second.empty()) {
      first.insert(first.end(), second.begin(), second.end());
      const Handed handed = handedBy(first, flag, e->type);
      if (!handed.arguments.empty()) return together(e, *node, *first[0], handed);
    }
    return rebuilt(
        e, [](const Atom& a) { return a; }, [&](const ExpPtr& part) { return chain(part); });
  }

  /// Adds the calls of the function itself that a branch ends in, in branches of its end, too. `others`: some
  /// end is something else.
  void collectEnds(const ExpPtr& branch, std::vector<const Call*>& calls, bool& others) const {
    const Exp* e = branch.get();
    while (const auto* let = std::get_if<core::Let>(&e->node)) e = let->body.get();
    const auto* call = std::get_if<Call>(&e->node);
    if (call && call->function == self_) {
      calls.push_back(call);
    } else if (const auto* node = std::get_if<If>(&e->node)) {
      collectEnds(node->thenBranch, calls, others);
      collectEnds(node->elseBranch, calls, others);
    } else {
      others = true;
    }
  }

  /// Arguments that are the same in calls of both branches are bound outside of them.
  static Handed handedBy(const std::vector<const Call*>& calls, bool flag, const Row& results) {
    Handed handed;
    handed.flag = flag;
    if (flag) {
      handed.results = results;
      handed.types.push_back(CoreType(ScalarType::Bool));
      handed.types.insert(handed.types.end(), results.begin(), results.end());
    }
    const std::vector<Atom>& first = calls[0]->arguments;
    for (size_t k = 0; k < first.size(); ++k) {
      const auto differs = [&](const Call* call) { return !same(call->arguments[k], first[k]); };
      if (std::none_of(calls.begin(), calls.end(), differs)) continue;
      handed.arguments.push_back(k);
      handed.types.push_back(first[k].type);
    }
    return handed;
  }

  ExpPtr together(const ExpPtr& e, const If& node, Call call, const Handed& handed) {
    Chain result;
    std::vector<Var> vars;
    for (const CoreType& type : handed.types) vars.push_back({program_.nextVar++, "", type});
    If choice{node.condition, handing(node.thenBranch, handed), handing(node.elseBranch, handed)};
    result.lets.push_back({vars, makeExp(std::move(choice), handed.types, e->span), e->span});
    const size_t arguments = vars.size() - handed.arguments.size();
    for (size_t k = 0; k < handed.arguments.size(); ++k)
      call.arguments[handed.arguments[k]] = atomOf(vars[arguments + k]);
    result.tail = makeExp(std::move(call), e->type, e->span);
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
    for (Chain::Binding& let : chain.lets) let.rhs = joined(let.rhs);
    const Span span = chain.tail->span;
    if (const auto* node = std::get_if<If>(&chain.tail->node)) {
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
      for (const CoreType& type : handed.results)
        values.atoms.push_back(unusedValue(program_, type, chain, span));
      for (size_t k : handed.arguments) values.atoms.push_back(call->arguments[k]);
    } else {
      std::vector<Var> results;
      for (const CoreType& type : handed.results) results.push_back({program_.nextVar++, "", type});
      chain.lets.push_back({results, joined(chain.tail), span});
      for (const Var& var : results) values.atoms.push_back(atomOf(var));
      for (size_t k = handed.results.size() + 1; k < handed.types.size(); ++k)
        values.atoms.push_back(unusedValue(program_, handed.types[k], chain, span));
    }
    chain.tail = makeExp(std::move(values), handed.types, span);
    return putTogether(std::move(chain));
  }

  core::Program& program_;
  FunctionId self_;
};

/// Joins calls of functions that come to much code, callees first.
class LongCalls {
 public:
  LongCalls(core::Program& program, const Analysis& analysis) : program_(program), analysis_(analysis) {}

  void run() {
    const size_t functions = program_.functions.size();
    lengths_.assign(functions, 0);
    for (FunctionId f = 0; f < functions; ++f) lengthOf(f);
    program_.entry = joined(program_.entry);
  }

 private:
  /// Nodes of what calls become, from which on these are joined.
  static constexpr size_t kLong = 300;
  static constexpr size_t kMost = size_t{1} << 40;

  /// Nodes of a function in which each call is its function's nodes; its calls are joined then. Recursive
  /// ones are calls.
  size_t lengthOf(FunctionId f) {
    if (lengths_[f] > 0 || !program_.functions[f].body) return std::max<size_t>(1, lengths_[f]);
    lengths_[f] = 1;
    for (FunctionId g : callees(program_.functions[f].body)) lengthOf(g);
    ExpPtr& body = program_.functions[f].body;
    body = joined(body);
    return lengths_[f] = analysis_.recursive(f) ? 1 : std::min(kMost, nodesOf(body));
  }

  ExpPtr joined(ExpPtr e) {
    if (analysis_.effects(e)) return e;  // which keep their order
    for (FunctionId g : callees(e))
      if (lengths_[g] >= kLong && !analysis_.recursive(g)) e = Joiner(program_, g).chain(e);
    return e;
  }

  static void visit(const ExpPtr& e, const std::function<void(const Exp&)>& f) {
    const Chain chain = takeApart(e);
    const auto part = [&](const ExpPtr& x) {
      f(*x);
      forEachPart(*x, [&](const ExpPtr& body) { visit(body, f); });
    };
    for (const Chain::Binding& let : chain.lets) part(let.rhs);
    part(chain.tail);
  }
  /// In the order in which they are called first.
  static std::vector<FunctionId> callees(const ExpPtr& e) {
    std::vector<FunctionId> found;
    visit(e, [&](const Exp& x) {
      const auto* call = std::get_if<Call>(&x.node);
      if (call && std::find(found.begin(), found.end(), call->function) == found.end())
        found.push_back(call->function);
    });
    return found;
  }
  size_t nodesOf(const ExpPtr& e) const {
    size_t nodes = 0;
    visit(e, [&](const Exp& x) {
      const auto* call = std::get_if<Call>(&x.node);
      nodes = std::min(kMost, nodes + 1 + (call ? lengths_[call->function] : 0));
    });
    return nodes;
  }

  core::Program& program_;
  const Analysis& analysis_;
  std::vector<size_t> lengths_;  ///< 0: not known yet
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
  LongCalls(program, Analysis(program)).run();
  return program;
}

}  // namespace kelpie::flatten

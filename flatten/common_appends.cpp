#include "flatten/common_appends.h"

#include <algorithm>
#include <optional>

#include "flatten/core_walk.h"
#include "flatten/functions_of_instances.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::ExpPtr;
using core::If;
using core::Prim;
using core::PrimOp;
using core::Values;

bool hasRows(const CoreType& type) {
  if (type.isScalar() || type.elements().size() != 1) return false;
  return !type.elements()[0].isScalar();
}

/// A branch of a conditional, as a chain that ends in atoms.
struct Branch {
  Chain chain;
  std::vector<Atom> results;
};

/// What a result appends to, and what it appends; nothing if it is not what the branch appends.
struct Appended {
  Atom base, part;
};

class Sharing {
 public:
  explicit Sharing(core::Program& program) : program_(program) {}

  void run() {
    const std::vector<bool> ofInstances = functionsOfInstances(program_);
    for (size_t f = 0; f < program_.functions.size(); ++f)
      if (core::Function& function = program_.functions[f]; function.body)
        function.body = chain(function.body, ofInstances[f]);
    program_.entry = chain(program_.entry, false);
  }

 private:
  ExpPtr chain(const ExpPtr& e, bool instances) {
    Chain in = takeApart(e), out;
    for (Chain::Binding& let : in.lets) {
      let.rhs = inside(let.rhs, instances, out);
      out.lets.push_back(std::move(let));
    }
    out.tail = inside(in.tail, instances, out);
    return putTogether(std::move(out));
  }

  /// An expression that is no let; what it needs is appended to `out`.
  ExpPtr inside(const ExpPtr& e, bool instances, Chain& out) {
    const bool of = instances || std::holds_alternative<core::Each>(e->node);
    const ExpPtr changed = rebuilt(
        e, [](const Atom& a) { return a; }, [&](const ExpPtr& part) { return chain(part, of); });
    const bool choice = instances && std::holds_alternative<If>(changed->node);
    return choice && std::any_of(e->type.begin(), e->type.end(), hasRows) ? shared(changed, out) : changed;
  }

  ExpPtr shared(const ExpPtr& e, Chain& out) {
    const If& choice = std::get<If>(e->node);
    Branch branches[2] = {branchOf(choice.thenBranch), branchOf(choice.elseBranch)};
    std::vector<std::optional<Atom>> bases(e->type.size());
    for (size_t k = 0; k < bases.size(); ++k)
      if (hasRows(e->type[k])) bases[k] = shareResult(branches, k);
    if (std::none_of(bases.begin(), bases.end(), [](const auto& base) { return base.has_value(); })) return e;
    ExpPtr parts[2];
    for (size_t b = 0; b < 2; ++b) {
      branches[b].chain.tail = makeExp(Values{branches[b].results}, e->type, e->span);
      parts[b] = putTogether(std::move(branches[b].chain));
    }
    Chain::Binding binding{{}, makeExp(If{choice.condition, parts[0], parts[1]}, e->type, e->span), e->span};
    std::vector<Atom> results;
    for (const CoreType& type : e->type) {
      binding.vars.push_back({program_.nextVar++, "", type});
      results.push_back(atomOf(binding.vars.back()));
    }
    out.lets.push_back(std::move(binding));
    for (size_t k = 0; k < bases.size(); ++k) {
      if (!bases[k]) continue;
      const core::Var whole{program_.nextVar++, "", e->type[k]};
      Prim append{.op = PrimOp::Append, .arguments = {*bases[k], results[k]}};
      out.lets.push_back({{whole}, makeExp(std::move(append), {e->type[k]}, e->span), e->span});
      results[k] = atomOf(whole);
    }
    return makeExp(Values{results}, e->type, e->span);
  }

  Branch branchOf(const ExpPtr& e) {
    Branch branch{takeApart(e), {}};
    if (const auto* values = std::get_if<Values>(&branch.chain.tail->node)) {
      branch.results = values->atoms;
      return branch;
    }
    Chain::Binding binding{{}, branch.chain.tail, branch.chain.tail->span};
    for (const CoreType& type : branch.chain.tail->type) {
      binding.vars.push_back({program_.nextVar++, "", type});
      branch.results.push_back(atomOf(binding.vars.back()));
    }
    branch.chain.lets.push_back(std::move(binding));
    return branch;
  }

  static std::optional<Appended> appended(const Branch& branch, size_t k) {
    if (branch.results[k].isConstant()) return std::nullopt;
    for (const Chain::Binding& let : branch.chain.lets) {
      if (let.vars.size() != 1 || let.vars[0].id != branch.results[k].var()) continue;
      const auto* prim = std::get_if<Prim>(&let.rhs->node);
      if (prim && prim->op == PrimOp::Append) return Appended{prim->arguments[0], prim->arguments[1]};
    }
    return std::nullopt;
  }

  /// What result `k` of both branches appends to, whose results become what they append.
  std::optional<Atom> shareResult(Branch (&branches)[2], size_t k) {
    const std::optional<Appended> a = appended(branches[0], k), b = appended(branches[1], k);
    if (a && b && same(a->base, b->base)) {
      become(branches[0], k, a->part);
      become(branches[1], k, b->part);
      return a->base;
    }
    if (a && same(a->base, branches[1].results[k])) {
      become(branches[0], k, a->part);
      becomeEmpty(branches[1], k);
      return a->base;
    }
    if (b && same(b->base, branches[0].results[k])) {
      becomeEmpty(branches[0], k);
      become(branches[1], k, b->part);
      return b->base;
    }
    return std::nullopt;
  }

  /// The part in the place of the whole, which is dropped if nothing else needs it.
  static void become(Branch& branch, size_t k, const Atom& part) {
    const core::VarId whole = branch.results[k].var();
    branch.results[k] = part;
    std::vector<Chain::Binding>& lets = branch.chain.lets;
    const bool used =
        std::any_of(branch.results.begin(), branch.results.end(),
                    [&](const Atom& result) { return !result.isConstant() && result.var() == whole; }) ||
        std::any_of(lets.begin(), lets.end(),
                    [&](const Chain::Binding& let) { return usesOf(let.rhs).contains(whole); });
    if (used) return;
    std::erase_if(lets,
                  [&](const Chain::Binding& let) { return let.vars.size() == 1 && let.vars[0].id == whole; });
  }
  void becomeEmpty(Branch& branch, size_t k) {
    const CoreType type = branch.results[k].type;
    const core::Var none{program_.nextVar++, "", type};
    const Span span = branch.chain.tail->span;
    branch.chain.lets.push_back({{none}, makeExp(core::Constant{{zeroColumn(type, 1)}}, {type}, span), span});
    branch.results[k] = atomOf(none);
  }

  core::Program& program_;
};

}  // namespace

core::Program shareAppends(core::Program program) {
  Sharing(program).run();
  return program;
}

}  // namespace kelpie::flatten

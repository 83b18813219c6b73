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

bool isSequence(const CoreType& type) { return !type.isScalar(); }

/// A branch of a conditional, as a chain that ends in atoms.
struct Branch {
  Chain chain;
  std::vector<Atom> results;
};

/// A result, what it was appended to, what that was appended to, and so on; parts[i] is what made wholes[i]
/// of wholes[i + 1].
struct Appends {
  std::vector<Atom> wholes, parts;
};

/// What both branches append to, or put something in front of.
struct Base {
  Atom sequence;
  bool fromBack;
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
    return choice && std::any_of(e->type.begin(), e->type.end(), isSequence) ? shared(changed, out) : changed;
  }

  ExpPtr shared(const ExpPtr& e, Chain& out) {
    const If& choice = std::get<If>(e->node);
    Branch branches[2] = {branchOf(choice.thenBranch), branchOf(choice.elseBranch)};
    std::vector<std::optional<Base>> bases(e->type.size());
    for (size_t k = 0; k < bases.size(); ++k)
      for (const bool fromBack : {false, true})
        if (const std::optional<Atom> base =
                isSequence(e->type[k]) && !bases[k] ? shareResult(branches, k, fromBack) : std::nullopt)
          bases[k] = Base{*base, fromBack};
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
      Prim append = appendOf(bases[k]->sequence, results[k], bases[k]->fromBack);
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

  /// What result `k` is put together from, of which the base comes first, or, from the back, last.
  static Appends appendsOf(const Branch& branch, size_t k, bool fromBack) {
    Appends found{{branch.results[k]}, {}};
    const std::vector<Chain::Binding>& lets = branch.chain.lets;
    for (size_t l = lets.size(); l-- > 0 && !found.wholes.back().isConstant();) {
      if (lets[l].vars.size() != 1 || lets[l].vars[0].id != found.wholes.back().var()) continue;
      const auto* prim = std::get_if<Prim>(&lets[l].rhs->node);
      if (!prim || prim->op != PrimOp::Append) break;
      found.wholes.push_back(prim->arguments[fromBack ? 1 : 0]);
      found.parts.push_back(prim->arguments[fromBack ? 0 : 1]);
    }
    return found;
  }

  /// What result `k` of both branches appends to, whose results become what they append.
  std::optional<Atom> shareResult(Branch (&branches)[2], size_t k, bool fromBack) {
    const Appends appends[2] = {appendsOf(branches[0], k, fromBack), appendsOf(branches[1], k, fromBack)};
    for (size_t i = 0; i < appends[0].wholes.size(); ++i)
      for (size_t j = 0; j < appends[1].wholes.size(); ++j)
        if (i + j > 0 && same(appends[0].wholes[i], appends[1].wholes[j])) {
          const Atom base = appends[0].wholes[i];
          become(branches[0], k, appends[0], i, fromBack);
          become(branches[1], k, appends[1], j, fromBack);
          return base;
        }
    return std::nullopt;
  }

  /// Instead of the whole, result `k` has the first `count` parts alone; wholes that nothing else needs are
  /// dropped.
  void become(Branch& branch, size_t k, const Appends& appends, size_t count, bool fromBack) {
    std::vector<Chain::Binding>& lets = branch.chain.lets;
    const CoreType type = branch.results[k].type;
    const Span span = branch.chain.tail->span;
    const auto made = [&](ExpPtr value) {
      const core::Var var{program_.nextVar++, "", type};
      lets.push_back({{var}, std::move(value), span});
      return atomOf(var);
    };
    if (count == 0) branch.results[k] = made(makeExp(core::Constant{{zeroColumn(type, 1)}}, {type}, span));
    for (size_t p = count; p-- > 0;) {
      const Atom& part = appends.parts[p];
      const Atom& before = branch.results[k];
      branch.results[k] =
          p + 1 == count ? part : made(makeExp(appendOf(before, part, fromBack), {type}, span));
    }
    for (size_t w = 0; w < count; ++w) dropUnused(branch, appends.wholes[w].var());
  }

  static Prim appendOf(const Atom& base, const Atom& part, bool fromBack) {
    return {.op = PrimOp::Append, .arguments = fromBack ? std::vector{part, base} : std::vector{base, part}};
  }

  static void dropUnused(Branch& branch, core::VarId var) {
    std::vector<Chain::Binding>& lets = branch.chain.lets;
    const bool used =
        std::any_of(branch.results.begin(), branch.results.end(),
                    [&](const Atom& result) { return !result.isConstant() && result.var() == var; }) ||
        std::any_of(lets.begin(), lets.end(),
                    [&](const Chain::Binding& let) { return usesOf(let.rhs).contains(var); });
    if (used) return;
    std::erase_if(lets,
                  [&](const Chain::Binding& let) { return let.vars.size() == 1 && let.vars[0].id == var; });
  }

  core::Program& program_;
};

}  // namespace

core::Program shareAppends(core::Program program) {
  Sharing(program).run();
  return program;
}

}  // namespace kelpie::flatten

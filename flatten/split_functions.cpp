#include "flatten/split_functions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "flatten/core_walk.h"
#include "flatten/fixed_lets.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::Call;
using core::Each;
using core::ExpPtr;
using core::FunctionId;
using core::Var;
using core::VarId;

class Splitting {
 public:
  Splitting(core::Program& program, Analysis& analysis)
      : program_(program), analysis_(analysis), fixedLets_(program, analysis) {}

  /// Whether there was anything to split.
  bool run() {
    changeBodies(program_, [this](const ExpPtr& body) { return inside(body); });
    return split_;
  }

 private:
  /// A function that does part of what one does, and the parameters of that one that it takes.
  struct Part {
    FunctionId function = 0;
    std::vector<size_t> parameters;
  };
  /// What the first gives, the second takes behind its other parameters.
  struct Halves {
    Part fixed, rest;
  };

  ExpPtr inside(const ExpPtr& e) {
    Chain chain = takeApart(e);
    for (Chain::Binding& let : chain.lets) let.rhs = part(let.rhs);
    chain.tail = part(chain.tail);
    return putTogether(std::move(chain));
  }

  ExpPtr part(const ExpPtr& e) {
    const auto same = [](const Atom& a) { return a; };
    ExpPtr result = rebuilt(e, same, [this](const ExpPtr& inner) { return inside(inner); });
    const auto* each = std::get_if<Each>(&result->node);
    if (!each) return result;
    std::unordered_set<VarId> varying;
    for (const Each::Binding& binding : each->bindings)
      for (const Var& var : binding.vars) varying.insert(var.id);
    const Chain body = takeApart(each->body);
    Chain splitBody = splitCalls(body, std::move(varying));
    split_ |= splitBody.lets.size() > body.lets.size();
    Each changed = *each;
    changed.body = putTogether(std::move(splitBody));
    return makeExp(std::move(changed), result->type, result->span);
  }

  /// Splits calls among the lets of a chain, some of whose arguments do not vary. What uses something that
  /// varies varies, and so does what an effect gives, as FixedLets::moving has it.
  Chain splitCalls(const Chain& chain, std::unordered_set<VarId> varying) {
    Chain out;
    for (const Chain::Binding& let : chain.lets) {
      const ExpPtr rhs = splitCall(let.rhs, varying, out);
      bool varies = analysis_.effects(rhs);
      for (VarId var : usesOf(rhs)) varies |= varying.contains(var);
      if (varies)
        for (const Var& var : let.vars) varying.insert(var.id);
      out.lets.push_back({let.vars, rhs, let.span});
    }
    out.tail = splitCall(chain.tail, varying, out);
    return out;
  }

  /// The rest of the call, if it can be split; its fixed part is appended to `out`.
  ExpPtr splitCall(const ExpPtr& e, const std::unordered_set<VarId>& varying, Chain& out) {
    const auto* call = std::get_if<Call>(&e->node);
    if (!call) return e;
    std::vector<bool> varies;
    for (const Atom& argument : call->arguments)
      varies.push_back(!argument.isConstant() && varying.contains(argument.var()));
    if (std::find(varies.begin(), varies.end(), true) == varies.end()) return e;  // hoisted as it is
    const std::optional<Halves> halves = halvesOf(call->function, varies);
    if (!halves) return e;
    const auto callOf = [&](const Part& part) {
      Call result{part.function, {}};
      for (size_t k : part.parameters) result.arguments.push_back(call->arguments[k]);
      return result;
    };
    Call fixed = callOf(halves->fixed), rest = callOf(halves->rest);
    std::vector<Var> results;
    const Row& types = program_.functions[fixed.function].result;
    for (const CoreType& type : types) {
      results.push_back({program_.nextVar++, "", type});
      rest.arguments.push_back(atomOf(results.back()));
    }
    out.lets.push_back({results, makeExp(std::move(fixed), types, e->span), e->span});
    return makeExp(std::move(rest), e->type, e->span);
  }

  std::optional<Halves> halvesOf(FunctionId f, const std::vector<bool>& varies) {
    const auto known = halves_.find({f, varies});
    if (known != halves_.end()) return known->second;
    std::optional<Halves> halves = makeHalves(f, varies);
    halves_.emplace(std::pair(f, varies), halves);
    return halves;
  }

  std::optional<Halves> makeHalves(FunctionId f, const std::vector<bool>& varies) {
    const core::Function whole = program_.functions[f];  // a copy: functions are added
    if (!whole.body || analysis_.recursive(f)) return std::nullopt;
    // What needs no kernels is not worth an array for its elements to find it in.
    if (analysis_.delayable(f) && !analysis_.repeats(whole.body)) return std::nullopt;
    std::unordered_set<VarId> varying;
    for (size_t k = 0; k < varies.size(); ++k)
      if (varies[k]) varying.insert(whole.parameters[k].id);
    const Chain body = splitCalls(takeApart(whole.body), varying);
    const std::vector<bool> moves = fixedLets_.moving(body, varying);
    Chain fixed, rest;
    for (size_t k = 0; k < moves.size(); ++k) (moves[k] ? fixed : rest).lets.push_back(body.lets[k]);
    rest.tail = body.tail;

    std::unordered_set<VarId> used = usesOf(rest.tail);
    for (const Chain::Binding& let : rest.lets) collectUses(let.rhs, used);
    std::vector<Var> handed;
    for (const Chain::Binding& let : fixed.lets)
      for (const Var& var : let.vars)
        if (used.contains(var.id)) handed.push_back(var);
    if (handed.empty()) return std::nullopt;

    Row types;
    core::Values results;
    for (const Var& var : handed) {
      types.push_back(var.type);
      results.atoms.push_back(atomOf(var));
    }
    fixed.tail = makeExp(std::move(results), types, whole.span);
    const Part first = add(f, {}, types, putTogether(std::move(fixed)), true);
    const Part second = add(f, handed, whole.result, putTogether(std::move(rest)), false);
    return Halves{first, second};
  }

  /// A function with a body that is made of lets of `f`, and with the parameters that it uses; `handed`: what
  /// it takes beside them. `pure`: it has no effects.
  Part add(FunctionId f, const std::vector<Var>& handed, Row result, const ExpPtr& body, bool pure) {
    core::Function function = program_.functions[f];
    Part part;
    std::vector<Var> parameters;
    const std::unordered_set<VarId> used = usesOf(body);
    for (size_t k = 0; k < function.parameters.size(); ++k) {
      if (!used.contains(function.parameters[k].id)) continue;
      part.parameters.push_back(k);
      parameters.push_back(function.parameters[k]);
    }
    parameters.insert(parameters.end(), handed.begin(), handed.end());
    std::unordered_map<VarId, Atom> names;  // variables are bound once in a program
    for (Var& var : parameters) {
      const VarId original = std::exchange(var.id, program_.nextVar++);
      names[original] = atomOf(var);
    }
    function.parameters = std::move(parameters);
    function.result = std::move(result);
    function.body = copied(program_, body, names);
    program_.functions.push_back(std::move(function));
    analysis_.addPartOf(f, pure);
    part.function = static_cast<FunctionId>(program_.functions.size() - 1);
    return part;
  }

  core::Program& program_;
  Analysis& analysis_;
  FixedLets fixedLets_;
  std::map<std::pair<FunctionId, std::vector<bool>>, std::optional<Halves>> halves_;
  bool split_ = false;
};

}  // namespace

std::optional<core::Program> splitFunctions(core::Program program, Analysis analysis) {
  if (!Splitting(program, analysis).run()) return std::nullopt;
  return program;
}

}  // namespace kelpie::flatten

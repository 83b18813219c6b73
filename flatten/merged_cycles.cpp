#include "flatten/merged_cycles.h"

#include <map>
#include <optional>
#include <unordered_map>

#include "flatten/core_walk.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::ExpPtr;
using core::FunctionId;
using core::Prim;
using core::PrimOp;
using core::Var;
using core::VarId;

class Merger {
 public:
  Merger(core::Program& program, const Analysis& analysis, const std::vector<FunctionId>& cycle)
      : program_(program), analysis_(analysis), cycle_(cycle) {}

  void run() {
    merged_.name = program_.functions[cycle_[0]].name + "_cycle";
    merged_.result = program_.functions[cycle_[0]].result;
    merged_.fromLibrary = program_.functions[cycle_[0]].fromLibrary;
    merged_.span = program_.functions[cycle_[0]].span;
    addParameter(integer());
    for (FunctionId f : cycle_) placeParameters(f);
    id_ = static_cast<FunctionId>(program_.functions.size());

    ExpPtr body = bodyOf(cycle_.size() - 1);
    for (size_t k = cycle_.size() - 1; k-- > 0;) {
      const Span span = program_.functions[cycle_[k]].span;
      const Var own{program_.nextVar++, "", CoreType(ScalarType::Bool)};
      Prim equal{.op = PrimOp::Scalar, .arguments = {atomOf(merged_.parameters[0]), number(k)}};
      equal.scalarOp = ScalarOp::Equal;
      Chain chain;
      chain.lets.push_back({{own}, makeExp(std::move(equal), {own.type}, span), span});
      chain.tail = makeExp(core::If{atomOf(own), bodyOf(k), std::move(body)}, merged_.result, span);
      body = putTogether(std::move(chain));
    }
    merged_.body = std::move(body);
    for (size_t k = 0; k < cycle_.size(); ++k) {
      core::Function& function = program_.functions[cycle_[k]];
      std::vector<Atom> arguments;
      for (const Var& parameter : function.parameters) arguments.push_back(atomOf(parameter));
      function.body = makeExp(core::Call{id_, placed(k, arguments, false)}, function.result, {});
    }
    program_.functions.push_back(std::move(merged_));
  }

 private:
  CoreType integer() const { return program_.intType; }
  Atom number(size_t k) const {
    return {Scalar::ofInt(program_.intType, static_cast<int64_t>(k)), integer()};
  }

  size_t addParameter(const CoreType& type) {
    merged_.parameters.push_back({program_.nextVar++, "", type});
    return merged_.parameters.size() - 1;
  }

  /// Chooses the parameter of the merged function that each parameter of `f` is.
  void placeParameters(FunctionId f) {
    const std::vector<Var>& parameters = program_.functions[f].parameters;
    std::map<ScalarType, size_t> used;
    std::vector<size_t>& places = places_.emplace_back();
    for (size_t k = 0; k < parameters.size(); ++k) {
      if (const size_t set = analysis_.unchangedSet(f, k)) {
        const auto known = unchanged_.find(set);
        places.push_back(known != unchanged_.end() ? known->second
                                                   : unchanged_[set] = addParameter(parameters[k].type));
        continue;
      }
      std::vector<size_t>& shared = shared_[parameters[k].type.scalar()];
      const size_t place = used[parameters[k].type.scalar()]++;
      if (place == shared.size()) shared.push_back(addParameter(parameters[k].type));
      places.push_back(shared[place]);
    }
  }

  /// What the merged function is given to be function number k of the cycle. Places that this one does not
  /// use keep what they hold, if the call is `inside` of it.
  std::vector<Atom> placed(size_t k, const std::vector<Atom>& arguments, bool inside) const {
    std::vector<Atom> result;
    for (const Var& parameter : merged_.parameters)
      result.push_back(inside || parameter.type.isSequence()
                           ? atomOf(parameter)
                           : Atom{Scalar::zero(parameter.type.scalar()), parameter.type});
    result[0] = number(k);
    for (size_t j = 0; j < arguments.size(); ++j) result[places_[k][j]] = arguments[j];
    return result;
  }

  ExpPtr bodyOf(size_t k) const {
    const core::Function& function = program_.functions[cycle_[k]];
    std::unordered_map<VarId, Atom> renaming;
    for (size_t j = 0; j < function.parameters.size(); ++j)
      renaming.emplace(function.parameters[j].id, atomOf(merged_.parameters[places_[k][j]]));
    return changed(function.body, renaming);
  }
  /// With the parameters of the merged function, and calls of it.
  ExpPtr changed(const ExpPtr& e, const std::unordered_map<VarId, Atom>& renaming) const {
    const auto one = [&](const ExpPtr& x) -> ExpPtr {
      ExpPtr copy = rebuilt(
          x,
          [&](const Atom& a) {
            const auto it = a.isConstant() ? renaming.end() : renaming.find(a.var());
            return it == renaming.end() ? a : it->second;
          },
          [&](const ExpPtr& part) { return changed(part, renaming); });
      const auto* call = std::get_if<core::Call>(&copy->node);
      if (!call) return copy;
      for (size_t k = 0; k < cycle_.size(); ++k)
        if (cycle_[k] == call->function)
          return makeExp(core::Call{id_, placed(k, call->arguments, true)}, copy->type, copy->span);
      return copy;
    };
    Chain chain = takeApart(e);
    for (Chain::Binding& let : chain.lets) let.rhs = one(let.rhs);
    chain.tail = one(chain.tail);
    return putTogether(std::move(chain));
  }

  core::Program& program_;
  const Analysis& analysis_;
  const std::vector<FunctionId>& cycle_;
  core::Function merged_;
  FunctionId id_ = 0;
  std::vector<std::vector<size_t>> places_;           ///< by function of the cycle and parameter
  std::unordered_map<size_t, size_t> unchanged_;      ///< by set of parameters
  std::map<ScalarType, std::vector<size_t>> shared_;  ///< of what changes
};

}  // namespace

core::Program mergeCycles(core::Program program, const Analysis& analysis) {
  for (const std::vector<FunctionId>& cycle : analysis.mergeableCycles())
    Merger(program, analysis, cycle).run();
  return program;
}

}  // namespace kelpie::flatten

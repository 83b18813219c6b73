// Fixed lets: what a chain of lets computes from none of the variables that vary, and that is worth computing
// elsewhere, once. Hoisting (hoist.h) asks for the body of an apply-to-each, whose elements vary; splitting
// functions (split_functions.h) for a body some of whose parameters vary.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "flatten/analysis.h"
#include "flatten/core_walk.h"
#include "ir/core.h"

namespace kelpie::flatten {

class FixedLets {
 public:
  FixedLets(const core::Program& program, const Analysis& analysis)
      : program_(program), analysis_(analysis) {}

  /// Which lets can move in front of the chain and should: those that need kernels or take steps whose number
  /// cannot be told, use nothing of `varying` and have no effect, and what they use. One that can fail stays
  /// if something before it, which would fail first, stays.
  std::vector<bool> moving(const Chain& body, std::unordered_set<core::VarId> varying) const;
  /// Whether an expression may fail, or not come to an end.
  bool risky(const core::ExpPtr& e) const;

 private:
  bool riskyFunction(core::FunctionId f) const;

  const core::Program& program_;
  const Analysis& analysis_;
  mutable std::unordered_map<core::FunctionId, bool> riskyFunctions_;
};

}  // namespace kelpie::flatten

// What the flattener must know about Core before it starts: which functions are recursive, which code is
// *uncontained* (may run forever on zero instances because it reaches a recursive call), and which code is
// *delayable*: it can become part of a thunk, without any kernel of its own (vectorisation avoidance).
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/core.h"

namespace kelpie::flatten {

class Analysis {
 public:
  explicit Analysis(const core::Program& program);

  /// The program has got one more function, which does part of what `f` does, and needs kernels. What else is
  /// known of it is what is known of `f`, though it may do less; `pure`: it has no effects.
  void addPartOf(core::FunctionId f, bool pure);

  /// Member of a cycle of the call graph.
  bool recursive(core::FunctionId f) const { return functions_[f].recursive; }
  /// Recursive, all recursive calls are calls of itself in tail position.
  bool tailRecursive(core::FunctionId f) const { return functions_[f].tailRecursive; }
  /// Tail recursive, and its iterations need no kernels: a scalar loop inside a thunk. All results and all
  /// parameters that change from one iteration to the next are scalars.
  bool scalarLoop(core::FunctionId f) const { return functions_[f].scalarLoop; }
  /// Recursive otherwise, but it still needs no kernels: a recursive function inside a thunk. All results of
  /// the functions of its cycle and all parameters that change are scalars.
  bool scalarRecursion(core::FunctionId f) const { return functions_[f].scalarRecursion; }
  /// Takes steps whose number cannot be told: reaches a scalar loop or a scalar recursion.
  bool repeats(const core::ExpPtr& e) const;
  /// Parameters that every recursive call passes on unchanged.
  const std::vector<bool>& invariantParameters(core::FunctionId f) const { return functions_[f].invariant; }
  /// Whether every call of the function in its own body, of which there are some, passes parameter `k` on
  /// unchanged.
  bool passedOn(core::FunctionId f, size_t k) const { return functions_[f].passedOn[k]; }
  /// Cycles of several functions that could be one scalar recursion (merged_cycles.h).
  const std::vector<std::vector<core::FunctionId>>& mergeableCycles() const { return mergeable_; }
  /// Of a function of such a cycle: the number of the set of parameters that parameter `k` belongs to, which
  /// the functions hand to each other unchanged; 0: it changes.
  size_t unchangedSet(core::FunctionId f, size_t k) const { return functions_[f].unchanged[k]; }
  /// Contains a call that reaches a recursive function which does not become a scalar loop.
  bool uncontained(const core::ExpPtr& e) const;
  /// Needs no kernel: scalar operations, conditionals, indexing, lengths, views, scalar loops, and calls of
  /// functions that are themselves delayable.
  bool delayable(const core::ExpPtr& e) const;
  bool delayable(core::FunctionId f) const { return functions_[f].delayable; }
  /// How many choices between sequences follow each other in it, of which each may choose what the one before
  /// chose.
  size_t choices(const core::ExpPtr& e) const;
  /// Has an effect or draws random numbers.
  bool effects(const core::ExpPtr& e) const;
  /// Flags of a filter: bound to a delayable apply-to-each and used once, by a Pack of the same chain of
  /// lets. They become the filter's predicate and are never stored.
  bool predicate(core::VarId flags) const { return predicates_.contains(flags); }
  /// Number of Core nodes, to bound inlining.
  size_t size(core::FunctionId f) const { return functions_[f].size; }

 private:
  struct FunctionFacts {
    bool recursive = false, tailRecursive = false, scalarLoop = false, scalarRecursion = false;
    bool uncontained = false, delayable = false, effects = false, repeats = false;
    std::vector<bool> invariant, passedOn;
    std::vector<size_t> unchanged;
    size_t size = 0, choices = 0;
  };
  void findPredicates(const core::ExpPtr& e, const std::unordered_map<core::VarId, int>& uses);
  void findCycles();
  void findTailRecursion(core::FunctionId f);
  bool tailCallsOnly(const core::ExpPtr& e, core::FunctionId f, std::vector<bool>& invariant) const;
  bool callsDirectly(const core::ExpPtr& e, core::FunctionId f) const;
  void findPassedOn(core::FunctionId f);
  void findScalarRecursion(const std::vector<core::FunctionId>& cycle);
  void findUnchanged(const std::vector<core::FunctionId>& cycle);
  bool expandsTo(core::FunctionId f, const std::vector<core::FunctionId>& cycle,
                 std::vector<core::FunctionId>& around, size_t& nodes) const;
  bool delayableBody(const core::ExpPtr& e, const std::vector<core::FunctionId>& selves) const;

  const core::Program& program_;
  std::vector<FunctionFacts> functions_;
  std::vector<std::vector<core::FunctionId>> callees_;
  std::unordered_set<core::VarId> predicates_;
  std::vector<std::vector<core::FunctionId>> mergeable_;
};

}  // namespace kelpie::flatten

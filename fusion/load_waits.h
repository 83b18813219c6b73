// How long an element waits for its loads, where these come one after the other.
//
// A GPU hides what a load takes behind other threads, and behind other elements of the same thread: code
// without branches loads for all of them before it needs the first. Where a load stands in a branch, the warp
// has to know the condition first, and goes on to the next element once it is done with this one. So nested
// branches that each need a load, or a search that decides by what it loads where it looks next, take the sum
// of what these loads take from call to answer, divided only by how many threads a multiprocessor has at
// once. (Hong and Kim, "An analytical model for a GPU architecture with memory-level and thread-level
// parallelism awareness", ISCA 2009, count waits by warp; here they are counted by element and step.)
//
// Nomenclature. A load's *wait* is the time from its call to its answer. A load is *awaited* by its loop if
// the next turn cannot load before it has answered: a position, or whether the loop ends, depends on it.
// Others are loaded some turns ahead, as compilers unroll.
//
// What the segment of an element has is loaded at once in front of all branches, as there is one for each
// segment (codegen/cuda/pass_items.cpp). Where elements know their segment, their code has no branch around
// it, and short branches in it are none either (blocksBehindBranches of compiled_blocks.h).
//
// Example: `if p < a[i] then x[i] else if p < b[i] then y[j] else z[k]` waits for a, which eight elements
// load at once, then for b if some of 32 neighbours does not take the first branch, then for x, y and z
// together: who is in one branch does not wait for who is in the other. If all are taken by some and each
// load takes 1, an element waits for 2 1/8.
#pragma once

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/expression_schedule.h"

namespace kelpie::fusion {

/// Loads in loops that the next turn waits for.
std::unordered_set<lcu::ExprRef> awaitedInLoops(const codegen::Schedule& schedule);

class LoadWaits {
 public:
  /// The schedule must live as long.
  /// `behindBranches`, by block: elements load one after the other there; elsewhere several do together.
  LoadWaits(const codegen::Schedule& schedule, std::vector<bool> behindBranches);
  /// Of a load that is a step of `block`, which may be (in) a loop: `wait`, in any unit.
  void add(size_t block, lcu::ExprRef load, double wait, bool inLoop);
  /// Of a load that an element does before all others.
  void addBefore(double wait) { before_ = std::max(before_, wait); }
  /// Of one element, in that unit; `inStep`: how often some of 32 neighbours enters each block.
  double ofElement(const std::vector<double>& inStep) const;

 private:
  using Times = std::unordered_map<lcu::ExprRef, double>;  ///< since the element began, when a value is there
  /// From when a block is entered to when all that it computes is there.
  double ofBlock(size_t block, double from, const std::vector<double>& inStep, Times& times) const;
  const codegen::Schedule& schedule_;
  const std::vector<bool> behindBranches_;
  const std::unordered_set<lcu::ExprRef> awaited_;
  double before_ = 0;
  std::map<std::pair<size_t, lcu::ExprRef>, double> waits_;  ///< by block: a node may be a step of several
};

}  // namespace kelpie::fusion

// Contexts: the instances for which an expression is evaluated at once.
//
//   Root      one instance: host level. Expressions have no parameters.
//   Lifted    the n active instances of a lifted function: a flat space; its arguments are arrays over it.
//   Each      entering `{e : x in xs}` in context P: one instance for every element, the space of xs. If P is
//   a
//             root the space is flat, otherwise segmented, with the instances of P as segments.
//   Restrict  the instances of P that take a branch: a flat space with the array `active` of their numbers in
//   P.
//
// A value of P used in a child C is reached through the number of C's instance in P: the segment %s for Each,
// active[%i] for Restrict. Values of a root are simply read.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "flatten/value.h"

namespace kelpie::flatten {

struct Context {
  enum class Kind : uint8_t { Root, Lifted, Each, Restrict };
  Kind kind = Kind::Root;
  Context* parent = nullptr;
  Space space;                 ///< of the instances; unused for Root
  VarId active = 0;            ///< Restrict
  ExprRef positive = nullptr;  ///< Restrict, or null: a length of P that is zero for all other instances
  /// Restrict, when the branch has a block of its own: the block of the filter of `active`, its condition,
  /// and the first variable of the branch.
  lcu::Block* around = nullptr;
  ExprRef taken = nullptr;
  VarId firstInside = 0;
  lcu::Block* block = nullptr;  ///< where statements that compute values of this context go

  /// Expressions of this context that have been stored: expression -> how to read it now.
  std::unordered_map<ExprRef, ExprRef> stored;
  /// Segmented spaces made for sequences of these lengths, so that equal lengths give one space.
  std::unordered_map<ExprRef, Space> spaces;
  /// Root: lengths that were checked to be the same; each one leads to the one that stands for it, or nearer.
  std::unordered_map<ExprRef, ExprRef> sameExtents;
  /// Conditions that the host has checked where the context begins, or found to hold if there are instances.
  std::unordered_set<ExprRef> holds;
  /// Numbers of an instance of this context or of those around, as expressions of this one, each with numbers
  /// that it is below; it is never below 0. `{{m[i][j] : j in [0:n]} : i in [0:n]}` needs no check if m has n
  /// rows of n.
  std::unordered_map<ExprRef, std::vector<ExprRef>> places;
  /// Let-bound expressions that can fail and that nothing stored so far evaluates: strictness owes them an
  /// evaluation even if their value is never used (language.md 4.1).
  std::vector<ExprRef> pending;

  bool isRoot() const { return kind == Kind::Root; }
};

}  // namespace kelpie::flatten

// What can fail in expressions whose values nobody needs.
//
// A value that nobody needs is evaluated all the same for the checks in it. Of `let t = sqrt(x / y)` only the
// division's check and the root's can fail, not what is computed from them; and a check that is made anyway
// need not be made for this:
//
//   c = check(y != 0, x / y, @1)
//   failures of  -sqrt(c)  where  c  is evaluated:                          nothing
//   failures of  if p then c + 1 else 0:                                    itself
//   ... where  c  is evaluated, or  if p then 2.0 * c else 1.0:             nothing
//
// In:  expressions, and roots that are evaluated, or will be. Out: expressions, to be evaluated beside them.
// Of conditionals inside of conditionals a part is looked at, as branches share what they are made of; the
// others count as if they made checks of their own.
#pragma once

#include <map>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace kelpie::lcu {

/// The nodes that are evaluated whenever some roots are: all operands, but the branches of an If and what a
/// Loop or a Recursion repeats. What is evaluated in both branches of an If is, too.
class Evaluated {
 public:
  void add(ExprRef root) { add(root, work_); }
  /// Whether a node is one of them, or another value of a loop or call that is.
  bool contains(ExprRef e) const;
  /// The nodes that are evaluated, too, where a condition has come out so. Null: none.
  const Evaluated* where(ExprRef condition, bool holds) const;

 private:
  static constexpr int kMostWork = 1 << 14;
  void add(ExprRef root, int& work);

  std::unordered_set<ExprRef> nodes_;
  std::map<std::pair<uint32_t, bool>, std::unique_ptr<Evaluated>> branches_;  ///< by ids of conditions
  int work_ = kMostWork;  ///< nodes that may still be looked at before no more branches are
};

/// Expressions without whose evaluation a check of `es` would not be made where `roots` are evaluated: in
/// their order, none of them inside of another.
std::vector<ExprRef> failuresIn(const std::vector<ExprRef>& es, const std::vector<ExprRef>& roots);
/// The same, of thunks that become those of one SOAC. Loads from near the element's own place stay, with the
/// checks of their positions, where roots need them in branches: each of these would wait for its own loads.
/// Of a grid whose points look at four neighbours under a condition each, 0.74 of the time is left on an H200
/// if the loads come before the conditions.
std::vector<ExprRef> failuresBeside(const std::vector<ExprRef>& es, const std::vector<ExprRef>& roots);

}  // namespace kelpie::lcu

// What is known of integers at a place in a thunk: bounds of differences.
//
// A fact is `a - b <= c`, where a and b are expressions of type Int64 or nothing (0), and c is a number.
// Facts come from conditions that hold, or do not. To prove `a - b <= c` is to find facts that lead from a to
// b and together allow no more than c, and to know of some operations what they do:
//
//   i < n, j <= i - 1   |=   j < n                 j - i <= -1, i - n <= -1
//   0 < k <= #v         |=   0 <= k - 1 < #v
//                            0 <= max(0, min(j, #v - 1)) < #v, if #v > 0
//
// Integers wrap around. A sum with a constant is taken apart only where it is known not to: lengths are below
// 2^48 (kLengthBits), and what is between facts' bounds cannot wrap either. Anything else is an expression of
// which nothing is known but what facts say.
//
// Searching takes counted work: where that ends, nothing is proven.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace kelpie::fusion {

class KnownBounds {
 public:
  /// `condition` holds, or does not.
  void learn(lcu::ExprRef condition, bool holds);
  /// a < b.
  void learnLess(lcu::ExprRef a, lcu::ExprRef b);
  /// 0 <= a.
  void learnNotNegative(lcu::ExprRef a);

  /// Whether the condition always comes out so.
  bool implies(lcu::ExprRef condition, bool holds);

  /// The numbers from `least` to `most`.
  struct Interval {
    int64_t least, most;
  };

  /// What has been learned since a mark can be forgotten.
  struct Mark {
    size_t facts = 0, decided = 0;
  };
  Mark mark() const { return {facts_.size(), decided_.size()}; }
  void forget(Mark mark);

 private:
  struct Fact {
    lcu::ExprRef a, b;  ///< null: 0
    int64_t most;
  };
  /// An expression and a number to add to it; null: 0.
  struct Sum {
    lcu::ExprRef of;
    int64_t plus;
  };
  void learn(lcu::ExprRef condition, bool holds, int depth);
  void learnDifference(lcu::ExprRef a, lcu::ExprRef b, int64_t most, int depth);
  void learnComparison(ScalarOp op, lcu::ExprRef a, lcu::ExprRef b, int depth);
  bool follows(lcu::ExprRef condition, bool holds);
  bool provesComparison(ScalarOp op, lcu::ExprRef a, lcu::ExprRef b);
  bool proves(lcu::ExprRef a, lcu::ExprRef b, int64_t most, int depth);
  bool provesOfOperation(lcu::ExprRef a, lcu::ExprRef b, int64_t most, int depth);
  bool provesBelowOperation(lcu::ExprRef a, lcu::ExprRef b, int64_t most, int depth);
  Interval interval(lcu::ExprRef e, int depth);
  bool notNegative(lcu::ExprRef e, int depth) { return proves(nullptr, e, 0, depth); }
  bool isModest(lcu::ExprRef e, int depth);
  bool onBothSides(lcu::ExprRef choice, int depth, const std::function<bool(lcu::ExprRef)>& isProven);
  Sum taken(lcu::ExprRef e, int depth);

  std::vector<Fact> facts_;
  std::vector<std::pair<lcu::ExprRef, bool>> decided_;  ///< conditions
  int work_ = 0;                                        ///< done for the question, or the condition, at hand
};

}  // namespace kelpie::fusion

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
#include <optional>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace kelpie::fusion {

class KnownBounds {
 public:
  /// `condition` holds, or does not.
  void learn(lcu::ExprRef condition, bool holds);
  /// Whether the condition always comes out so.
  bool implies(lcu::ExprRef condition, bool holds);

  /// a - b <= most; null: 0.
  struct Difference {
    lcu::ExprRef a, b;
    int64_t most;
  };
  void learn(const Difference& difference);
  bool implies(const Difference& difference);

  /// The numbers from `least` to `most`.
  struct Interval {
    int64_t least, most;
  };
  /// Where an integer lies for certain.
  Interval range(lcu::ExprRef e);

  /// Whether a check's value is taken to have passed it, which costs more; what that was before.
  bool countChecks(bool count) { return std::exchange(checksCount_, count); }
  /// Expressions that have been looked at so far.
  int64_t spent() const { return spent_ + work_; }
  /// How many of these a question may take; what it was before.
  int allow(int most) { return std::exchange(mostWork_, most); }

  /// What has been learned since a mark can be forgotten.
  struct Mark {
    size_t facts = 0, decided = 0;
  };
  Mark mark() const { return {facts_.size(), decided_.size()}; }
  void forget(Mark mark);

 private:
  using Fact = Difference;
  /// An expression and a number to add to it; null: 0.
  struct Sum {
    lcu::ExprRef of;
    int64_t plus;
  };
  void learn(lcu::ExprRef condition, bool holds, int depth);
  void learnDifference(lcu::ExprRef a, lcu::ExprRef b, int64_t most, int depth);
  void learnComparison(ScalarOp op, lcu::ExprRef a, lcu::ExprRef b, int depth);
  std::optional<bool> decision(lcu::ExprRef condition) const;  ///< how it came out, if that is known
  bool follows(lcu::ExprRef condition, bool holds);
  bool provesComparison(ScalarOp op, lcu::ExprRef a, lcu::ExprRef b);
  bool proves(lcu::ExprRef a, lcu::ExprRef b, int64_t most, int depth);
  bool provesOfOperation(lcu::ExprRef a, lcu::ExprRef b, int64_t most, int depth);
  bool provesBelowOperation(lcu::ExprRef a, lcu::ExprRef b, int64_t most, int depth);
  Interval interval(lcu::ExprRef e, int depth);
  /// The same, where conditions in it count.
  Interval rangeOf(lcu::ExprRef e, int depth);
  bool notNegative(lcu::ExprRef e, int depth) { return proves(nullptr, e, 0, depth); }
  bool isModest(lcu::ExprRef e, int depth);
  bool isMiddle(lcu::ExprRef e, int depth);
  bool onBothSides(lcu::ExprRef choice, int depth, const std::function<bool(lcu::ExprRef)>& isProven);
  /// The same where a condition came out so.
  bool where(lcu::ExprRef condition, bool holds, int depth, const std::function<bool()>& isProven);
  bool whereChecked(lcu::ExprRef check, int depth, const std::function<bool()>& isProven);
  Sum taken(lcu::ExprRef e, int depth);

  void begin();  ///< a question, or a condition
  bool mayGoOn();

  std::vector<Fact> facts_;
  std::vector<std::pair<lcu::ExprRef, bool>> decided_;  ///< conditions
  int work_ = 0;                                        ///< done for the question, or the condition, at hand
  int64_t spent_ = 0;                                   ///< before that
  int mostWork_ = 30000;
  bool checksCount_ = false;
};

}  // namespace kelpie::fusion

// What the calls of a recursion leave pending, for code that keeps the frames of its calls itself.
//
// In:  a Recursion in a schedule (expression_schedule.h).
// Out: for each Call of it, the nodes that are used when the call has come back and were computed before it:
//      what a frame has to hold, but for arguments that all calls hand on as they are.
//
//     fib(n) = if n < 2 then n else fib(n - 1) + fib(n - 2)
//       fib(n - 1): n          of n - 2
//       fib(n - 2): fib(n - 1)
//
// In a loop everything is used that the loop uses anywhere: it may go around again.
//
// Nothing is pending behind a call whose results are those of the function: it needs no frame, and the last
// of n such calls no n frames. Nor is it where all that is done with a result is to combine it with what was
// computed before, by an operation for which order does not matter (integers and truth values): that is done
// before the call, to what the function has so far. Of fib that is the second call: fib(n) = so far + n, or
// fib(n - 1) is added to what there is so far, and n becomes n - 2.
//
// Then of another call, too, what there is so far need not wait for it, if its result is only combined with
// others into that of the function, once whenever the call is made: it goes on from what there is so far and
// gives back all of it. So the frame of fib(n - 1) is n alone.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "codegen/expression_schedule.h"

namespace kelpie::codegen {

struct ById {
  bool operator()(lcu::ExprRef a, lcu::ExprRef b) const { return a->id < b->id; }
};

/// `and` with false: what it is about is evaluated, as it may fail, but not used.
inline bool neverHolds(lcu::ExprRef e) {
  return e->kind == lcu::ExprKind::Op && e->op == ScalarOp::And && e->type == ScalarType::Bool &&
         e->operands[1]->kind == lcu::ExprKind::Constant && e->operands[1]->constant.i == 0;
}

struct PendingCalls {
  std::map<lcu::ExprRef, std::vector<lcu::ExprRef>, ById> uses;  ///< of each Call
  /// Calls behind which nothing is pending: for each result, what it is combined with before.
  std::map<lcu::ExprRef, std::vector<std::vector<lcu::ExprRef>>, ById> last;
  /// For each result, by which operation; none: these calls give it as it is.
  std::vector<std::optional<ReduceOp>> operations;
  /// Of each other call, by result: whether it goes on from what there is so far.
  std::map<lcu::ExprRef, std::vector<bool>, ById> goesOn;
  std::vector<bool> invariant;  ///< arguments that all calls hand on
  size_t places = 0;            ///< where calls go on that leave something pending
  /// About how many values a frame has, for each other call.
  std::map<lcu::ExprRef, size_t, ById> values;
};

/// None: another recursion is inside, whose body may call this one, or this one calls one around it.
std::optional<PendingCalls> pendingCalls(const Schedule& schedule, const ScheduleStep& recursion);

}  // namespace kelpie::codegen

// What the calls of a recursion leave pending, for code that keeps the frames of its calls itself.
//
// In:  a Recursion in a schedule (expression_schedule.h).
// Out: for each Call of it, the nodes that are used when the call has come back. Those that were computed
//      before the call are what a frame has to hold.
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
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "codegen/expression_schedule.h"

namespace kelpie::codegen {

struct ById {
  bool operator()(lcu::ExprRef a, lcu::ExprRef b) const { return a->id < b->id; }
};

struct PendingCalls {
  std::map<lcu::ExprRef, std::vector<lcu::ExprRef>, ById> uses;  ///< of each Call
  /// Calls behind which nothing is pending: for each result, what it is combined with before.
  std::map<lcu::ExprRef, std::vector<std::vector<lcu::ExprRef>>, ById> last;
  /// For each result, by which operation; none: these calls give it as it is.
  std::vector<std::optional<ReduceOp>> operations;
};

/// None: another recursion is inside, whose body may call this one, or this one calls one around it.
std::optional<PendingCalls> pendingCalls(const Schedule& schedule, const ScheduleStep& recursion);

}  // namespace kelpie::codegen

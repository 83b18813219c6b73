// Choices by the same condition that compute something alike.
//
// A filter that goes into several reductions becomes a condition of each of them, and what the survivors are
// stands in a branch of each: a thread would go through the same loop once for every reduction.
//
//   (if c then f(x) else 0), (if c then f(x) * f(x) else 1)  ->  if c then (f(x), f(x) * f(x)) else (0, 1)
//
// In:  a kernel. Out: in its thunks, Ifs of one condition that are evaluated together (by the schedule of
//      codegen/expression_schedule.h) are one, if branches of both have a loop, a recursion or a long
//      operation in common. (Compilers find out about loads.)
// Invariant: the same is evaluated, but once; a check in both branches fails as it did.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

void mergeChoices(lcu::Kernel& kernel, lcu::ExprArena& arena);

}  // namespace kelpie::fusion

// Checks that an earlier one of the same element has decided.
//
// Code that uses an index again and again checks it again and again: `xs[p] - xs[q]` and later `ys[p] *
// xs[p]` test three times whether p is in range, each for its own place in the source. When the first fails
// the others do not matter, and when it holds so do they. Each check costs an instruction or more, and it
// keeps code generators from seeing that two loads are one:
//
//   r[check(within(p, #r), p, @3)] ... r[check(within(p, #r), p, @7)]  ->  both r[check(within(p, #r), p,
//   @3)]
//
// In:  a kernel. Out: in its thunks every Check whose condition and value are those of another Check that is
//      evaluated whenever it is (for the same element, by the schedule of codegen/expression_schedule.h) is
//      that other one. What a SOAC evaluates for its checks alone is what makes checks that it does not make
//      anyway (ir/failures.h).
// Invariant: which error a launch reports does not change. Of the errors of a launch the one with the lowest
// site counts, so a check gives way to one of a lower site, or to one in front of the loop around it, as a
// loop is not entered once a check has failed.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

void mergeChecks(lcu::Kernel& kernel, lcu::ExprArena& arena);

}  // namespace kelpie::fusion

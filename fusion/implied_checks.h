// Checks, and choices, that conditions around them have decided.
//
// Programs look before they read, and what they read looks again:
//
//   if i > 0 then v[check(i - 1 >= 0 and i - 1 < #v, i - 1, @1)] else 0  ->  if i > 0 then v[i - 1] else 0
//
// In:  a kernel. Out: in its thunks every Check that cannot fail wherever it is evaluated, by the schedule of
//      codegen/expression_schedule.h, is its value, and every If that always comes out the same there is that
//      side of it (as those that keep a position in range should a check fail). What is known there: which
//      elements a space has, and how the conditions of Ifs and Loops around, and of filters, came out
//      (known_bounds.h).
// Invariant: nothing else is evaluated, and no launch reports another error: a loop that is rebuilt stays in
// front of the checks and loops that it was in front of (ExprArena::rewriteInOrder). A check or choice that
// is undecided at one of its places stays at all of them, as they share what it gives. Afterwards: a load, or
// a quotient, without a check may stand behind a condition that alone makes it valid. Whatever moves
// expressions in front of conditions needs another reason why they do no harm there, as that an array has an
// element for each segment (codegen/values_of_segments.h) or for each element of the space (isHarmless in
// rules.h).
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// Expressions that may be looked at for all kernels of a form, which takes about 0.3 s. Then questions get a
/// few each, so that checks stay which may have gone. (Of a chain of five choices in an apply-to-each
/// compiling took 28 s; most programs that were measured take less than a twentieth, 800,000 the most.)
constexpr int64_t kMostForImpliedChecks = 10'000'000;

/// `left`: what is left of these.
void dropImpliedChecks(lcu::Kernel& kernel, lcu::ExprArena& arena, int64_t& left);
inline void dropImpliedChecks(lcu::Kernel& kernel, lcu::ExprArena& arena) {
  int64_t left = kMostForImpliedChecks;
  dropImpliedChecks(kernel, arena, left);
}

}  // namespace kelpie::fusion

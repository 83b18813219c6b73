// Values that take long and do not change with a loop, but need an array, are computed before it.
//
// What a function is called with is computed once in NESL. As an expression it stands where it is needed: in
// the branch of a loop's body that goes on, where code computes it anew in every turn. What is simple the
// schedule computes before the loop (codegen/expression_schedule.h). What loads must not be: if there is no
// turn, its place may lie outside of the array. So it becomes a variable of the loop, whose first value has
// the condition of the first turn.
//
//   loop (done = false, k = x) { if k < 1.0 then true, k else false, k * exp(a[i]) } while not(done)
//   ->  loop (done = false, k = x, e = if x < 1.0 then 0.0 else exp(a[i]))
//         { if k < 1.0 then true, k, e else false, k * e, e } while not(done)
//
// In:  a kernel after fusion. Out: the same with further variables in loops of its thunks.
// Invariant: an operation is evaluated only for elements for which it was; of two errors of an element the same
//      one is told, so a loop stays as it is where a check behind it would come to stand before it.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

void computeBeforeLoops(lcu::Kernel& kernel, lcu::ExprArena& arena);

}  // namespace kelpie::fusion

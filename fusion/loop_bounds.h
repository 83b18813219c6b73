// What variables of a loop stay between, in all turns and when it has ended.
//
// Candidates are what a reader of the loop would try: that a variable stays between constants that occur in
// it, or does not go below or beyond where it begins, or another value that the loop compares it with. Those
// that hold at first are assumed to hold at the start of a turn; who cannot be proven to hold at its end is
// dropped, until all that are left can. (Flanagan and Leino, "Houdini, an annotation assistant for ESC/Java",
// FME 2001: the largest set of candidates that is inductive.)
//
//   loop (k = 0, x = 1) { while k != n next k + 1, x * 2 }        0 <= k, and k <= n if 0 <= n
//   loop (lo = 0, hi = #v) { while lo < hi                        0 <= lo <= hi <= #v
//     next if v[(lo + hi) / 2] < x then (lo + hi) / 2 + 1, hi else lo, (lo + hi) / 2 }
//
// In:  a Loop, and what is known where it is evaluated (known_bounds.h).
// Out: differences of its variables, other values and constants.
// Invariant: they hold after an error, too, when checks have given their fallbacks.
#pragma once

#include <vector>

#include "fusion/known_bounds.h"
#include "ir/lcu.h"

namespace kelpie::fusion {

std::vector<KnownBounds::Difference> boundsOfLoop(KnownBounds& known, lcu::ExprRef loop,
                                                  lcu::ExprArena& arena);

/// Marks variables of loops in a kernel's thunks that are never negative, whatever is known around the loop
/// (Expr::nonNegative): code generators give those below 2^32 one word.
void markLoopVariables(const lcu::Kernel& kernel, lcu::ExprArena& arena);

}  // namespace kelpie::fusion

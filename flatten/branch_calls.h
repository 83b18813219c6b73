// Calls of one recursive function at the ends of both branches of a conditional are one. Core -> Core.
//
//   In:  a verified program and its analysis.
//   Out: an equivalent program in which, in functions that an apply-to-each reaches and whose recursion takes
//   host steps, a conditional ends in one call of the function itself at most.
//
//   kth(v, k) = if k < n then kth(less, k) else if k >= m then kth(more, k - m) else pivot
//
// becomes
//
//   kth(v, k) = let again, r, v1, k1 = if k < n then t, 0, less, k
//                                      else if k >= m then t, 0, more, k - m
//                                      else f, pivot, [], 0
//               in if again then kth(v1, k1) else r
//
// Branches of a conditional in an apply-to-each are compiled for the instances that take them, one branch
// after the other. With a call in each, every step would have twice as many groups of instances as the step
// before, up to one for each instance; with one call, all instances take their next step together. What both
// calls are given alike stays an argument of the call; where both branches are nothing but calls there is no
// flag. Of errors of both branches another one may be reported: that of the step that comes first. Functions
// with effects stay as they are. Where branches go on after their calls, the conditional is cut there
// (cut_branches.h).
//
// So are calls of any other function that comes to much code, in which each call is compiled for itself: of
//
//   { if c then f(a) else f(b) : ... }         { let x = if c then a else b in f(x) : ... }
//
// the first, where f does the same with another function, and so on, would become 2^n copies of the last one.
// Little code is left as it was: a branch may be a view of what the other would have to be copied with.
#pragma once

#include "flatten/analysis.h"
#include "ir/core.h"

namespace kelpie::flatten {

core::Program joinBranchCalls(core::Program program, const Analysis& analysis);

}  // namespace kelpie::flatten

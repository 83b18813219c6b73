// Calls of one recursive function that do not need each other are made together. Core -> Core.
//
//   In:  a verified program and its analysis.
//   Out: an equivalent program in which, within one chain of lets, calls of a function whose recursion takes
//   host steps are one apply-to-each where that is possible.
//
//   let l = f(a, x); r = f(b, x) in l ++ r     becomes     let s = {f(v, x) : v in [a, b]} in s[0] ++ s[1]
//
// A recursion takes as many steps as its calls are deep, however many run side by side; one after the other
// they would take the sum, and where every call makes two (a merge sort that is not written with an
// apply-to-each) as many as there are calls. Functions with effects stay as they are. Of errors of both calls
// another one may be reported: that of the step that comes first.
#pragma once

#include "flatten/analysis.h"
#include "ir/core.h"

namespace kelpie::flatten {

core::Program joinSiblingCalls(core::Program program, const Analysis& analysis);

}  // namespace kelpie::flatten

// Functions that call each other in a cycle become one function. Core -> Core.
//
//   In:  a verified program and its analysis.
//   Out: an equivalent program in which functions of a cycle that needs no kernels, and whose results have
//   the same types, call one function that is all of them; its first parameter says which.
//
//   odd(n) = if n == 0 then f else even(n - 1)           cycle(which, n) = if which == 0
//   even(n) = if n == 0 then t else odd(n - 1)             then (if n == 0 then f else cycle(1, n - 1))
//                                                          else (if n == 0 then t else cycle(0, n - 1))
//                                                        odd(n) = cycle(0, n), even(n) = cycle(1, n)
//
// So an automaton that is written as a function for each state is one loop. Compiled inside each other
// (scalar_recursion.cpp), four states that can all follow each other would be 16 copies of them.
//
// No two of the functions need their parameters at the same time, so these share places. What every call
// passes on unchanged stays one parameter.
#pragma once

#include "flatten/analysis.h"
#include "ir/core.h"

namespace kelpie::flatten {

core::Program mergeCycles(core::Program program, const Analysis& analysis);

}  // namespace kelpie::flatten

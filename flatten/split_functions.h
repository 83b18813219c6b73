// Splitting functions: what a function computes from arguments that are the same for all elements of an
// apply-to-each is computed before it. Core -> Core.
//
//   In:  a program and its analysis, hoisted.
//   Out: an equivalent program in which a call inside an apply-to-each, some of whose arguments use none of
//        its element variables, is two: of a function of these arguments, which hoisting then moves out, and
//        of one that does the rest. None if there is no such call.
//
//   function near(p, pts) = let m = sum(pts) in p / m;
//   {near(p, pts) : p in ps}
//
// becomes
//
//   function near(pts) = sum(pts);                              the fixed part
//   function near(p, pts, m) = p / m;                           the rest
//   {let m = near(pts) in near(p, pts, m) : p in ps}
//
// Calls inside the function are split likewise, as far as they stand among its own lets. What they stand in
// there, an apply-to-each, has to be hoisted before its function can be split: so the passes alternate until
// there is nothing to split.
//
// Hoisting guards what can fail or recurse, and leaves the first call where it is if something before it,
// which would fail first, stays; then nothing is gained. Recursive functions are not split.
#pragma once

#include <optional>

#include "flatten/analysis.h"
#include "ir/core.h"

namespace kelpie::flatten {

std::optional<core::Program> splitFunctions(core::Program program, Analysis analysis);

}  // namespace kelpie::flatten

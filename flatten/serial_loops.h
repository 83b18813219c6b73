// Serial apply-to-eaches whose order can be observed become recursion. Core -> Core.
//
//   In:  a verified program and its analysis.
//   Out: an equivalent program in which no apply-to-each that is marked serial has effects or draws random
//   numbers; the remaining ones may run in parallel like any other.
//
//   {* let a = f(x, k) in a : x in v}      becomes      let n = #v; c = n > 0 in if c then serial(v, k, 0, n)
//   else []
//
//   serial(v, k, start, n) =
//     if n == 1 then let x = v[start]; a = f(x, k) in [a]
//     else let a = serial(v, k, start, n / 2); b = serial(v, k, start + n / 2, n - n / 2) in a ++ b
//
// Halving keeps the recursion shallow and copies each result log n times only.
#pragma once

#include "flatten/analysis.h"
#include "ir/core.h"

namespace kelpie::flatten {

/// Whether any apply-to-each is marked serial. Few programs have one.
bool hasSerialLoops(const core::Program& program);
core::Program unrollSerialLoops(core::Program program, const Analysis& analysis);

}  // namespace kelpie::flatten

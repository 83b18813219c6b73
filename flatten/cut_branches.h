// A conditional whose branches go on after their calls of one recursive function is cut at the calls. Core ->
// Core, for branch_calls.h.
//
//   power(a, k) = if k == 0 then one
//                 else if even(k) then square(power(a, k / 2)) else times(b, power(a, k - 1))
//
// becomes
//
//   power(a, k) = let calls, k1 = if k == 0 then f, 0 else if even(k) then t, k / 2 else t, k - 1
//                 let r = if calls then power(a, k1) else []
//                 in if k == 0 then one else if even(k) then square(r) else times(b, r)
//
// so that all instances make their call together (branch_calls.h tells why). *Before* the calls is what their
// arguments and the conditions need, and what can fail in front of them, and what of that is needed *after*
// them is handed on in *slots*, of which branches share those of one type. A branch that calls several times
// before it needs any result, or calls in an apply-to-each (split_applies.h), hands on sequences of
// arguments; then all branches do, and those without calls hand on empty ones:
//
//   let a1 = if c then [x, y] else if d then parts else []
//   let r = {f(a) : a in a1}
//   in if c then r[0] ++ r[1] else if d then flatten(r) else z
#pragma once

#include "ir/core.h"

namespace kelpie::flatten {

/// The conditional, cut at the first calls of `self` in its branches. Null if fewer than two of them call, or
/// more than 16, or if one calls otherwise: in a conditional of an apply-to-each, or in front of more.
core::ExpPtr cutAtCalls(core::Program& program, core::FunctionId self, const core::ExpPtr& conditional);

/// Calls of a function anywhere in an expression.
int countCalls(const core::ExpPtr& e, core::FunctionId function);

}  // namespace kelpie::flatten

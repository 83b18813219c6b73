// Recursion inside thunks that calls itself once on every path becomes loops, where what is pending after the
// call can be done without a stack. On a GPU the stacks of all threads go through memory: a few hundred bytes
// for every call.
//
//   In:  a recursion: its arguments, its results in terms of its LoopVars and Calls (ir/expr.h).
//   Out: the results of its first call; or nothing, where neither of the two ways below will do.
//
// Nomenclature: r are the results of the call, p the parameters, p' the arguments of the call, reached(p)
// whether the function with these parameters calls itself.
//
// 1. *Accumulation*, where arguments differ in any way, but what becomes of r is, for each result, one of
//      A(p) * r + B(p)          integers, which wrap around, so that order is of no consequence
//      max(r, B(p)), min(...)   integers
//      any function of r        truth values: known by its two values
//    and such functions compose: (a * r + b) after (A * r + B) is (a * A) * r + (a * B + b).
//
//      ones(x) = if x == 0 then 0 else 1 + ones(x and (x - 1))
//      =>  b = 0;  while x != 0: b = b + 1, x = x and (x - 1);  0 + b
//
// 2. *Undoing*, where every argument is its parameter plus what never changes, so that p follows from p'.
//    One loop goes down to the last call and counts, another one comes back, and each of its turns evaluates
//    the function with r in place of the call: all operations in their order, so floats keep their bits.
//
//      power(x, n) = if n == 0 then 1.0 else x * power(x, n - 1)
//      =>  d = 0;    while n != 0: d = d + 1, n = n - 1
//          r = 1.0;  while d > 0:  d = d - 1, n = n + 1, r = x * r
//
// Both record the recursion's error after kDeepest calls. What can fail before a call is evaluated on the way
// down, what can fail behind it on the way back, so of several calls that fail it is the first whose error is
// recorded; except where steps cannot be undone: then it is the outermost.
#pragma once

#include <optional>
#include <vector>

#include "ir/expr.h"
#include "ir/lcu.h"

namespace kelpie::flatten {

struct LinearRecursion {
  uint32_t id;
  lcu::SiteId tooDeep;
  std::vector<lcu::ExprRef> arguments, results;
};

std::optional<std::vector<lcu::ExprRef>> recursionAsLoops(const LinearRecursion& recursion,
                                                          lcu::ExprArena& arena);

}  // namespace kelpie::flatten

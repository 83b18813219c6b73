// Loop parameters that never change are not parameters.
//
//   In:  λcu before fusion.
//   Out: the same program; a parameter of a host loop whose next value is, on every way through the body,
//        itself or what it started as, is replaced by what it started as; or by a constant, where that is one
//        whatever branch it comes from.
//
// A sequence that a tail-recursive function hands on is a length, a start and a store. Its store changes from
// step to step, its length and its start (0) often do not:
//
//   loop (length: int64 = n, start: int64 = 0, grid: [float64] = g) ... do {
//     let r: [float64; length] = MAP flat length { i => 0.5 * grid[start + i] }
//     let start_1: int64 = 0
//     yield length, start_1, r
//
// becomes a loop over `grid` alone with MAP flat n { i => 0.5 * grid[i] }: equal sizes are equal again, and
// elements are read in order.
#pragma once

#include "ir/lcu.h"

namespace kelpie::flatten {

void removeLoopInvariants(lcu::Program& program);

}  // namespace kelpie::flatten

// What loops cost in passes whose warps wait for each other.
//
// A block of a map ends when the slowest of its warps has, and its multiprocessor has fewer to work on until
// then.
//
// A tile of a scan or filter ends when the slowest of its warps has, and no tile behind it before that
// (look_back.cuh): those that run at the same time, thousands of warps, all wait for the slowest of them. A
// warp goes through the loops of its items one after the other, so of r items, one of which takes R times as
// long as most,
//
//   R + r - 1 times what one takes counts, instead of r times.
//
// Cycles of permutations, up to 400 steps long where 16 were usual, took 4.9 ms on an H200 in a filter with
// four items a thread, where 0.8 would have done.
#pragma once

#include <unordered_set>
#include <vector>

#include "codegen/expression_schedule.h"

namespace kelpie::fusion {

// Both of these change `inStep`, how often some of 32 neighbours enters each block, times 32, in loops.

/// Of a pass whose tiles wait for those before them, and whose lanes have `items` each. `slowest`: the same
/// if all did as the slowest; empty: it is not known.
void waitForSlowest(const codegen::Schedule& schedule, double items, const std::vector<double>& slowest,
                    std::vector<double>& inStep);

/// Of another pass of tiles. `ofFour`: ThunkSample::ofFour.
void waitForBlocks(const codegen::Schedule& schedule, const std::vector<double>& ofFour,
                   std::vector<double>& inStep);

}  // namespace kelpie::fusion

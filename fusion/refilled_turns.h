// How often the lanes of a warp enter the blocks of a loop if they take elements one by one.
#pragma once

#include <vector>

#include "codegen/expression_schedule.h"
#include "codegen/refilled_loop.h"

namespace kelpie::fusion {

/// If it pays to refill the lanes of `refilled` (codegen/refilled_loop.h), which may be in the schedule,
/// changes `inStep` accordingly: how often some of 32 neighbours enters each block, times 32. `entered`: how
/// often elements do. `elements`: how many there are; `ofLane`: how many a lane has, if each has the same
/// number.
void refillTurns(const codegen::Schedule& schedule, const codegen::RefilledLoop& refilled, double elements,
                 double ofLane, const std::vector<double>& entered, std::vector<double>& inStep);

}  // namespace kelpie::fusion

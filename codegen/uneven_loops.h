// Which loops of a thunk may turn more often for one element than for another: those whose end depends on
// something that differs from element to element, as a walk through data, an iteration until it converges or
// a loop over bits do, and a loop over all of one array does not.
//
// In:  expressions. Out: facts about loops in them.
#pragma once

#include <unordered_set>

#include "codegen/expression_schedule.h"
#include "ir/lcu.h"

namespace kelpie::codegen {

/// Whether how often the loop turns differs from element to element.
bool turnsUnevenly(lcu::ExprRef loop);

/// Loops that may turn more often for one element than for another, and recursions.
std::unordered_set<lcu::ExprRef> unevenLoops(const Schedule& schedule);

}  // namespace kelpie::codegen

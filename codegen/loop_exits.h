// Where a loop ends in the middle of its body.
//
// Flattening makes a tail recursion a loop with a flag, `loop (done = false, results..., parameters...) while
// not(done)`. Its body is a tree of Ifs; each leaf knows whether the recursion ends there, and with which
// results, or goes on with which parameters. Code generators leave such a loop at the leaf instead of handing
// flag and values through every If around it, which costs a GPU a branch and a selection for each.
//
// In:  a loop, the blocks of its schedule (expression_schedule.h).
// Out: the variable that is the flag; which step ends a block; what a condition says of a flag.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "codegen/expression_schedule.h"

namespace kelpie::codegen {

/// Conditions known on the way to a leaf, and how they came out.
using Facts = std::vector<std::pair<lcu::ExprRef, bool>>;

/// The number of the variable that ends the loop when it becomes true, and that is false at first; none: the
/// loop has another condition.
std::optional<uint32_t> endFlag(lcu::ExprRef loop);

/// What a bool is, given facts; none: unknown.
std::optional<bool> knownValue(lcu::ExprRef e, const Facts& facts);

/// The If that can be the last step of a block: what comes after it neither needs it nor can fail. None:
/// there is no such If. `ends` are the values that the block is for.
std::optional<size_t> lastIf(const ScheduleBlock& block, const std::vector<lcu::ExprRef>& ends);

/// What `ends` are in a branch of the If: its value for each projection, the others as they are.
std::vector<lcu::ExprRef> endsOfBranch(lcu::ExprRef ifNode, bool then, const std::vector<lcu::ExprRef>& ends);

}  // namespace kelpie::codegen

// What compilers make of the blocks of a thunk (codegen/expression_schedule.h), as far as it changes how
// often something is computed, or waited for: for predictions (kernel_time.h).
//
// In:  a schedule, and how often its blocks are entered. Out: facts by node or block.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/expression_schedule.h"

namespace kelpie::fusion {

/// Where compilers compute what a schedule has in a loop: arithmetic that no turn changes, in front of it.
class Homes {
 public:
  Homes(const codegen::Schedule& schedule, const std::vector<lcu::ExprRef>& roots);
  /// The block for a node that is a step of `block`.
  size_t of(lcu::ExprRef e, size_t block) const;

 private:
  struct Entry {
    size_t block = 0;
    lcu::ExprRef by = nullptr;  ///< an If, Loop or Recursion of that block
  };
  std::vector<Entry> entries_;  ///< by block, how it is entered
  std::unordered_map<lcu::ExprRef, std::unordered_set<lcu::ExprRef>> changing_;
};

/// Loops that compilers unroll, as nothing but constants decides how often they turn, which is not often; and
/// what of their turns is a constant then. `entered` by block.
std::unordered_set<lcu::ExprRef> countedInLoops(const codegen::Schedule& schedule,
                                                const std::vector<double>& entered);

/// Words of 32 bits of what a turn of a loop changes, but for its flags: each is moved.
double changedWords(lcu::ExprRef loop);

/// By block: it is behind a branch or in a loop, so that elements wait for its condition one after the other.
/// Branches with short sides that have none themselves do not count: compilers put the condition on each of
/// their instructions, and several elements go on together.
std::vector<bool> blocksBehindBranches(const codegen::Schedule& schedule);

/// For each call of a recursion over frames, how many values its frame has; none: a call that leaves nothing
/// pending, a turn of a loop (codegen/pending_calls.h).
using Frames = std::unordered_map<lcu::ExprRef, std::optional<size_t>>;
Frames framesOf(const codegen::Schedule& schedule);

/// Marks variables of a loop of whose values for the next turn `has` says so, until it finds no more: it may
/// look at the marks.
void markVariables(lcu::ExprRef loop, std::vector<bool>& variables,
                   const std::function<bool(lcu::ExprRef)>& has);

/// What decides where a loop ends, and passes nothing on (codegen/loop_exits.h): the Ifs by which a turn
/// ends, and the test of the flag. Of the loop that is this step, and of all.
std::unordered_set<lcu::ExprRef> exitsOfLoop(const codegen::Schedule& schedule,
                                             const codegen::ScheduleStep& loop);
std::unordered_set<lcu::ExprRef> exitsOfLoops(const codegen::Schedule& schedule);

}  // namespace kelpie::fusion

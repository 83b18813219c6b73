// Placement of scalar expressions: turns a DAG of λcu expressions into nested blocks of steps.
//
// In:  the roots whose values are wanted, and nodes that are available already.
// Out: a `Schedule`: block 0 computes the roots; the branches of each If, the condition and the body of each
//      Loop and the body of each Recursion are blocks of their own. Within a block, steps come operands
//      before users.
// Invariant: a node is placed in the outermost block that needs it on *every* path through that block, and
//      never outside of one; so nothing is evaluated that the definition (ir/expr.h) does not evaluate, and
//      nothing twice on one path. A value needed by both branches of an If is needed by the If; one that the
//      condition of a Loop or the body of a Recursion needs and that does not change with it is needed by the
//      Loop or Recursion. A value needed in two unrelated branches is placed in each. The one exception:
//      operations that take long, read no array, make no check that is not made anyway and do not change with
//      a Loop are computed before it, although its steps may need them in branches only; compilers leave a
//      cosine in the loop.
//
// The last call of a recursion in a block comes as late as it may: behind all that is computed without it,
// but for what may fail. So less is pending behind it (pending_calls.h).
//
// Shared by the code generators and by the evaluator of λcu (runtime/interp).
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "ir/expr.h"

namespace kelpie::codegen {

/// Constants, parameters, host values, sizes, loop variables and projections need no step: they are names.
bool isAtom(lcu::ExprRef e);
/// Operations that compilers make code with branches (a division of 64 bits, a sine) or calls of.
bool takesLong(lcu::ExprRef e);

struct ScheduleStep {
  lcu::ExprRef node;
  /// If: blocks of the then and the else values. Loop: blocks of the condition and of the next values.
  /// Recursion: `first` is the block of the results. Block 0 is no such block.
  uint32_t first = 0, second = 0;
};

struct ScheduleBlock {
  std::vector<lcu::ExprRef> roots;  ///< the values this block is for
  std::vector<ScheduleStep> steps;
};

struct Schedule {
  std::vector<ScheduleBlock> blocks;
  bool hasLoop = false, hasCheck = false, hasRecursion = false;
};

Schedule scheduleExpressions(const std::vector<lcu::ExprRef>& roots,
                             const std::unordered_set<lcu::ExprRef>& available = {});

/// Operands of an If, a Loop or a Recursion by role.
std::vector<lcu::ExprRef> thenValues(lcu::ExprRef ifNode);
std::vector<lcu::ExprRef> elseValues(lcu::ExprRef ifNode);
lcu::ExprRef loopCondition(lcu::ExprRef loop);
std::vector<lcu::ExprRef> loopInitial(lcu::ExprRef loop);
std::vector<lcu::ExprRef> loopNext(lcu::ExprRef loop);
std::vector<lcu::ExprRef> recursionArguments(lcu::ExprRef recursion);
std::vector<lcu::ExprRef> recursionResults(lcu::ExprRef recursion);

}  // namespace kelpie::codegen

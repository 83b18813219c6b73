// What elements of a segmented space compute from the number of their segment alone, so that it can be
// computed once for each segment, in front of the conditions under which elements need it.
//
// Nothing that an element does not reach may be done there: where a condition tells that a position is in
// range, no check is left (fusion/implied_checks.h), and the load behind the condition fails where it does
// not hold. So is a quotient's divisor zero.
//
//     {sum({if x > 0.5 and i < #w then exp(w[i]) else x : x in row}) : row in rows; i in [0:#rows]}
//
// computes exp(w[i]) in front of a row if w has an element for each row, and not if it has fewer.
#pragma once

#include <unordered_set>
#include <vector>

#include "codegen/kernel_analysis.h"
#include "ir/lcu.h"

namespace kelpie::codegen {

/// Whether an expression loads, from a parameter, at the number of its element's segment; and whether the
/// array is known to have an element for each segment, or a few more.
bool loadsAtSegment(lcu::ExprRef e, const KernelInfo& info);
bool loadsValueOfSegment(lcu::ExprRef e, const KernelInfo& info, const lcu::Program& program);

/// What thunks evaluate for every element: neither in branches or loops nor behind an `and` or `or`. None of
/// them may be evaluated for the survivors of a filter alone (lateThunks), nor in what follows.
std::unordered_set<lcu::ExprRef> evaluatedForAll(const std::vector<lcu::ExprRef>& thunks);

/// What takes long (quotients, functions), is made of the segment alone, can be computed in front of all
/// conditions of a segment that has elements, and is part of the thunks. Ascending by id; none is part of
/// another one.
std::vector<lcu::ExprRef> longValuesOfSegments(const std::vector<lcu::ExprRef>& thunks,
                                               const KernelInfo& info, const lcu::Program& program);

/// Loads at the number of the segment that can be done in front of conditions, which compilers cannot know:
/// those that thunks do under a condition or in a loop, of arrays that have an element for each segment, and
/// those behind an `and` or `or`, of any, as both of its operands are evaluated (language.md) and this one
/// has no check. `late` thunks are evaluated for survivors alone: there every load is under a condition. In
/// the order of the thunks, as many as `most`.
std::vector<lcu::ExprRef> guardedValuesOfSegments(const std::vector<lcu::ExprRef>& eager,
                                                  const std::vector<lcu::ExprRef>& late,
                                                  const KernelInfo& info, const lcu::Program& program,
                                                  size_t most);

}  // namespace kelpie::codegen

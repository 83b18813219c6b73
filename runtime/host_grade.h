// lcu::Grade in the memory of the host: the stable ascending order within each segment.
//
// Keys are mapped to unsigned integers that order as the keys do (all NaNs equal and last, -0.0 equal to
// 0.0). Long segments are sorted by a stable radix sort of (key, position), eight bits a pass, skipping
// passes in which all digits agree, in parallel; short ones by a stable comparison sort, in parallel over
// segments. The order is unique, so nothing depends on the number of threads.
#pragma once

#include "runtime/target.h"
#include "runtime/thread_team.h"

namespace kelpie::runtime {

void gradeOnHost(const GradeRequest& request, ThreadTeam& team);

}  // namespace kelpie::runtime

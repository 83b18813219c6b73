// lcu::Grade in the memory of the host: the stable ascending order within each segment.
//
// Long segments are sorted by a stable radix sort (host_radix_sort.h), in parallel; short ones by a stable
// comparison sort, in parallel over segments. The order is unique, so nothing depends on the number of threads.
#pragma once

#include "runtime/target.h"
#include "runtime/thread_team.h"

namespace kelpie::runtime {

/// `request.scratch` may be null. Throws std::bad_alloc.
void gradeOnHost(const GradeRequest& request, ThreadTeam& team);

}  // namespace kelpie::runtime

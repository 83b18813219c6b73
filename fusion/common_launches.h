// Common launches: a kernel that does again what an earlier one of the same block, or of a block around it,
// did.
//
//   - The same SOAC over the same space, but for where its checks are in the source: its results are the
//   earlier
//     ones', whose checks fail first.
//   - A filter with the condition and space of an earlier one, whatever it pulls: both become one filter, so
//   that all
//     that lives over these survivors lives over the same elements. (Its pulls must be known at the earlier
//     place; otherwise it stays.)
//
// In and out: λcu before fusion, sizes normalised. Variables that go are replaced everywhere.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of launches removed.
int removeCommonLaunches(lcu::Program& program);

}  // namespace kelpie::fusion

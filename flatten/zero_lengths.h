// Instances that a condition leaves out, and whose sequences it says to be empty: `if #v == 0 then ..`,
// `{.. : v in vs | #v > 0}`.
//
// Those that are left have all elements between them: their segments lie one behind the other in the stores
// of all, and no element has to be looked for.
#pragma once

#include "ir/expr.h"

namespace kelpie::flatten {

/// The length that is zero for all instances but those for which `condition` is `taken`; null: there is none.
lcu::ExprRef lengthOfOthersZero(lcu::ExprRef condition, bool taken);

}  // namespace kelpie::flatten

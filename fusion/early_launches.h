// Kernels over the elements of a sequence stand before the condition that asks whether there are any: a loop
// `if #frontier == 0 then ... else ...` then launches the first kernels of a step while the number is on the
// device only (runtime/launcher.h), and waits for it together with what they have found out.
//
// In and out: λcu after fusion. Moved are the first kernels of a branch, as long as they run over exactly so
// many elements: in the other branch, where there are none, they do nothing. Never what writes to places
// (whose memory would be needed in both branches), and no Once, which would run in both.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of kernels moved.
int launchEarly(lcu::Program& program);

}  // namespace kelpie::fusion

// Lengths from their offsets: where `o` is the exclusive sum of lengths, o[e+1] - o[e] is the length of e
// again, and is computed as that. Whoever needs only lengths then no longer waits for the scan, and who needs
// o[%i] besides can share its kernel.
//
// In and out: λcu before fusion. Only scans of Int64 sums whose thunk may be evaluated again (no check, no
// loop).
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of differences replaced.
int useScannedLengths(lcu::Program& program);

}  // namespace kelpie::fusion

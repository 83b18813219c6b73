// Lengths from their offsets: where `o` is the exclusive sum of lengths, o[e+1] - o[e] is the length of e
// again, and is computed as that. Whoever needs only lengths then no longer waits for the scan, and who needs
// o[%i] besides can share its kernel. A segmented filter whose offsets are only read to tell how many
// elements of each segment it keeps, `#{x in xs | x > 0}` in an apply-to-each, becomes a reduction that
// counts them.
//
// In and out: λcu before fusion. Only scans of Int64 sums whose thunk may be evaluated again (no check, no
// loop).
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of differences replaced.
int useScannedLengths(lcu::Program& program);

}  // namespace kelpie::fusion

// What is known about the order that a sort gives (lcu::Grade): it has every position of its space once.
//
//   - A check that a position out of it is in range holds, and goes; so of segments, where the elements that
//     are looked at have the same.
//   - Keys at such positions are the sorted keys, of which the sort itself is the cheapest source: it gives
//     them as a second result, and a map that only gathers them goes; so within segments, where all of one
//     are gathered. (Not floats, of which equal ones may differ in their bits.)
//   - A permute to the places of the order writes each once: its destinations are distinct, and it needs no
//     fill. Of the positions themselves it makes the ranks, which have every position once, too.
//   - A permute of the positions to their ranks gives the order again. So `permute(xs, rank(keys))`, which
//     looks for the writer of each place, becomes xs[order[i]].
//
// In and out: λcu before fusion, sizes normalised. What nobody uses then is left to dead_code.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of sorts that give their keys now.
int useGradedOrder(lcu::Program& program);

}  // namespace kelpie::fusion

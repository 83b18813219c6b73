// Writes into sequences, `d <- v` of NESL, as permutes.
//
// Flattening spells them for any values and any collisions: a permute finds the last writer of every place,
// and a map over all places takes the value of that writer, or what was there. Where the order of the writes
// is of no consequence one permute does it, onto the array that was there: because the destinations differ,
// as those of neighbours do, because there is only one, or because values are a function of the destination.
// Where the value is the number of the writer, the first permute has it already. A few writes, of a list that
// the program spells, are made one after the other. And a map that replaces one element of an array that a
// loop carries, where nothing needs the old one, is a write, too:
//
//   d <- [(i, x), (j, y)]                          two permutes of one element each, the second onto the
//   first MAP flat n { j => if j == k then v else d[j] }     PERMUTE flat 1 { v } to { k } where k is in
//   range, onto d
//
// Single values that are read from the array afterwards, and scalars of the host that these need, are computed
// before the write, where no check or effect that stays behind it comes between.
//
// In and out: λcu before fusion, sizes normalised. Invariant: every place holds what it held before; checks
// fail as before. What nobody uses then is left to dead_code.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of maps replaced.
int scatterWrites(lcu::Program& program);

}  // namespace kelpie::fusion

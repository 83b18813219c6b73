// Elements that choose among values of their segment: the values are chosen before, for each segment.
//
// An apply-to-each that makes a short sequence of each element, by cases, is a map over all elements of the
// results that asks, for its segment, which case it was, and then for what that case has at its place:
//
//   parts = {if c then [p] else if d then [p, q] else [r] : ...}
//
//   MAP seg(...) { i, s, p => if c[s] then p1[s] else if d[s] then (if p < 1 then p2[s] else q[s]) else r[s]
//   }
//
// Each case would be stored with all its values, six arrays here, of which an element needs one. At a given
// place the choice depends on the segment alone, so it is made where the values are:
//
//   first  = MAP { i => if c[i] then p1[i] else if d[i] then p2[i] else r[i] }
//   second = MAP { i => if c[i] then 0 else if d[i] then q[i] else 0 }
//   MAP seg(...) { i, s, p => if p < 1 then first[s] else second[s] }
//
// In and out: λcu before fusion, sizes normalised. A choice is a tree of Ifs whose conditions and values are
// made, by a few quick operations, of constants, scalars, elements %s of arrays over the segments, and
// comparisons of the place with constants. It is made before where fewer bytes are then stored for a segment.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of maps made.
int chooseForSegments(lcu::Program& program);

}  // namespace kelpie::fusion

// A reduction over the elements that equal the least or greatest one, in one pass with that one: where it is
// and how often it comes (min_index, max_index and whatever programs spell like them).
//
//   m = REDUCE S { x } (inf) { min }                    m, r = REDUCE S { x, v } (inf, id)
//   r = REDUCE S { if x == m[s] then v else id } (id) { op }      { min of both; op of those v whose x is it
//   }
//
// The other direction, m first and then all elements again, is what NESL can say. The operator of pairs is
// associative as `op` is: an element that equals the least one of all equals the least one of its part.
//
// In and out: λcu before fusion, sizes normalised. Invariant: values and checks stay. (Of numbers that are
// not ordered, NaN, the least one depends on the order in any case.) Maps that nobody reads then are left to
// dead_code.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of reductions that went into another one.
int pairReductions(lcu::Program& program);

}  // namespace kelpie::fusion

// What many maps of a segmented space compute first is stored once, so that these are maps of it.
//
// In:  λcu before fusion.
// Out: where kMany maps or more over the segments and elements of one space each compute the same value, and
//      need the number of their segment or their place in it for nothing else, a map that stores that value
//
//   x = MAP seg(..) { i, s, p => n[s] / 10 % 10 < 3 }      digit = MAP seg(..) { i, s, p => n[s] / 10 % 10 }
//   y = MAP seg(..) { i, s, p => n[s] / 10 % 10 == 7 }     x = MAP seg(..) { i, s, p => digit[i] < 3 }  ...
//
// Text that is put together in branches of branches (a number in words) needs all conditions again when its
// characters are written, by the elements of other segments, where s and p are not at hand: one column for
// each condition. What is left of them needs the element alone, and is computed again there (inline_maps.h).
//
// Invariant: the value is computed for no element for which it was not: it cannot fail, and one of the maps
// always computes it.
#pragma once

#include <set>

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The arrays of values.
std::set<lcu::VarId> storeCommonValues(lcu::Program& program);

}  // namespace kelpie::fusion

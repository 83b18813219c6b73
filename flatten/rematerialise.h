// Rematerialisation: a map whose elements are cheaper to compute again than to keep is not kept.
//
//   In:  λcu before fusion.
//   Out: the same program without the maps in question; their thunks stand where their elements were read.
//
// Fusion joins a map with consumers that can run in the map's own pass. A consumer that must come later,
// because it also needs a result of an earlier consumer, would make the map store every element. Nearest
// neighbours by brute force:
//
//   r   = MAP    regular(q, n) { i,s,p => (x[s] - y[p])^2 }           q*n distances
//   m   = REDUCE regular(q, n) { r[i] } min                           runs with the map
//   idx = REDUCE regular(q, n) { if r[i] == m[s] then p ... } min     needs m, so it cannot
//
// Stored, r takes q*n*8 bytes where inputs and outputs take q+n. Computing the distance twice reads nothing
// more.
//
// A map is dissolved when
//   - some consumer depends on another consumer through a result that no single pass can hand over,
//   - all uses are pointwise, over the map's own space, in the map's own block,
//   - its elements cannot fail, take few operations, and read from memory, beyond what is read once for a
//     segment or a position, no more bytes than they themselves have.
#pragma once

#include "ir/lcu.h"

namespace kelpie::flatten {

void rematerialise(lcu::Program& program);

}  // namespace kelpie::flatten

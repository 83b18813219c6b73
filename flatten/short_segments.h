// Short segments of one known length are unrolled.
//
//   In:  λcu before fusion.
//   Out: the same program, with the segments of a regular space whose length is a small constant taken apart:
//   a
//        reduction of them is a map over the segments that computes all elements of one and combines them in
//        order, and an array of their elements is one array for each position.
//
// An apply-to-each of a few elements inside of another, as over the neighbours of a point or the coordinates
// of a vector, is not where the parallelism is. Nested parallelism makes a space of it all the same, with a
// thread for each element and what it takes to combine segments:
//
//   r   = MAP    regular(n, 3, n * 3) { i,s,p => xs[s + p] * weights[p] }
//   add = REDUCE regular(n, 3, n * 3) { r[i] } (0.0) +
//
// becomes, with weights = [0.25, 0.5, 0.25],
//
//   r_0, r_1, r_2 = MAP flat n { i => xs[i] * 0.25, xs[i + 1] * 0.5, xs[i + 2] * 0.25 }
//   add           = MAP flat n { i => 0.0 + r_0[i] + r_1[i] + r_2[i] }
//
// which is one kernel with whatever else maps over the n. Segments of segments are unrolled from the inside
// out.
//
// A SOAC over such a space (element i = length * s + p) is unrolled when
//   - it is a map, a reduction or a scan, its thunks neither loop nor recurse, and all of its code together
//   is
//     small;
//   - what it makes for elements is read only by SOACs that are unrolled, too, or as element number k of
//   segment
//     %i or %s, k a constant: r[length * i + k];
//   - it does not read rows: elements that lie one after the other in memory, a segment's behind those of the
//     segment before. Threads that each go through a row touch a piece of memory each, where the lanes of a
//     warp share one as long as each has an element. (Of arrays that are taken apart nothing lies in memory.)
#pragma once

#include "ir/lcu.h"

namespace kelpie::flatten {

constexpr int64_t kLongestUnrolled = 16;

void unrollShortSegments(lcu::Program& program);

}  // namespace kelpie::flatten

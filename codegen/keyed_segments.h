// Reductions of a regular space in which a key says to which segment an element belongs.
//
// `{sum({x : x in xs; k in keys | k == c}) : c in [0:n]}` folds #xs elements for each of n segments, but
// every element counts in one segment at most: elsewhere it is the identity. Who knows that looks at each
// position once instead of n times.
//
// In:  a kernel and its KernelInfo. Out: what tells an element's segment, if something does.
//
//     REDUCE regular(n, #xs) { i, s, p => if keys[p] == s then xs[p] else 0.0 } (0.0) { x, y => x + y }
//     test: keys[p] == s, key: keys[p]
#pragma once

#include <optional>

#include "codegen/kernel_analysis.h"

namespace kelpie::codegen {

struct KeyedSegments {
  lcu::ExprRef test;    ///< that the key is the number of the segment, which may be narrowed, plus `offset`
  lcu::ExprRef key;     ///< an Int64 or Int32 that does not depend on the segment
  lcu::ExprRef offset;  ///< of the same type, the same for all elements; null: 0
};

/// Of a kernel that folds nothing but segments of a regular space, by operations that may be made in any
/// order and with identities left out. Results keep their bits if every fold begins with the identity.
std::optional<KeyedSegments> keyedSegments(const lcu::Kernel& kernel, const KernelInfo& info);

}  // namespace kelpie::codegen

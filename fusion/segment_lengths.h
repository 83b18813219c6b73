// How long segments can be, as far as the thunk tells that their offsets are a scan of: where an
// apply-to-each makes a short sequence of each element, `if c then [] else [a, b]`, lengths are 0 and 2.
//
// In:  a Scan of an Int64 sum with its total.
// Out: the least and the most that its thunk yields.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/lcu.h"

namespace kelpie::fusion {

struct LengthRange {
  int64_t least = 0, most = 0;
};

/// Whether result k of the scan is offsets: the exclusive sum, from 0 on, of component k alone, with the
/// total.
bool isOffsets(const lcu::Soac& scan, size_t k);

/// The lengths of the segments of such offsets, where they are bounded by constants.
std::optional<LengthRange> lengthRange(const lcu::Soac& scan, size_t k);

}  // namespace kelpie::fusion

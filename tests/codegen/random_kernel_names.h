// Names by which data is found for the parameters of a random kernel, and bounds of it.
#pragma once

#include <cstdint>

namespace kelpie::tests {

inline constexpr const char* kPermutation = "permutation";
inline constexpr const char* kDestinations = "destinations";
inline constexpr const char* kOffsets = "offsets";
inline constexpr const char* kGathered = "gathered";
inline constexpr const char* kPerSegment = "weights";
inline constexpr const char* kByPosition = "by_position_";
inline constexpr const char* kColumn = "column_";
inline constexpr int64_t kGatheredSize = 64, kMostSpare = 9;

}  // namespace kelpie::tests

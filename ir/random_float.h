// How a draw becomes a float32 below a bound.
#pragma once

namespace kelpie {

/// The values of `rand(bound)`, computed in float64, are at most `bound * kBelowFloat32 - kHalfLeastFloat32`:
/// the greatest number, nearly, that is not rounded up to the bound.
inline constexpr double kBelowFloat32 = 1 - 0x1p-24, kHalfLeastFloat32 = 0x1p-150;

}  // namespace kelpie

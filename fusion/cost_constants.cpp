// Measured by scripts/calibrate.sh, which writes what is between `name` and `collectiveBudget`; raw output in
// bench/results/calibration-*.
#include "fusion/cost_constants.h"

namespace kelpie::fusion {

namespace {

// One NVIDIA H200: estimates, not calibrated yet.
constexpr TargetCosts kCuda{
    .name = "cuda",
    .launch = 4,
    .byte = 2.37e-07,
    .cachedLoad = 1e-07,
    .randomLoad = 2.6e-05,
    .cacheBytes = 3.36e+07,
    .operation = 1e-07,
    .integerDivision = 1.8e-06,
    .division = 1.3e-06,
    .exponential = 1.7e-06,
    .logarithm = 3.3e-06,
    .trigonometric = 2e-06,
    .float32 = 0.5,
    .overlap = 1,
    .scanElement = 0,
    .scanByte = 1.35e-07,
    .filterElement = 0,
    .filterByte = 4.5e-07,
    .segmentedElement = 1.2e-06,
    .segment = 1e-06,
    .foldedElement = 5e-07,
    .foldedSegment = 2e-06,
    .permuteElement = 7.7e-06,
    .randomStore = 5.5e-05,
    .collectiveBudget = 64,
};

// Two cores of an AMD EPYC.
constexpr TargetCosts kCpu{
    .name = "cpu",
    .launch = 4.03,
    .byte = 6.63e-05,
    .cachedLoad = 0.00169,
    .randomLoad = 0.0224,
    .cacheBytes = 8.39e+06,
    .operation = 9.91e-05,
    .integerDivision = 0.000783,
    .division = 0.0025,
    .exponential = 0.008,
    .logarithm = 0.00654,
    .trigonometric = 0.0181,
    .float32 = 0.596,
    .overlap = 0.9,
    .scanElement = 0.00123,
    .scanByte = 0,
    .filterElement = 0.00218,
    .filterByte = 0.000105,
    .segmentedElement = 0,
    .segment = 0.00771,
    .foldedElement = 0,
    .foldedSegment = 0.0101,
    .permuteElement = 0.0047,
    .randomStore = 0.0303,
    .collectiveBudget = 256,
};

constexpr TargetCosts kInterp{
    .name = "interp",
    .launch = 15.1,
    .byte = 0.000569,
    .cachedLoad = 0.00325,
    .randomLoad = 0.292,
    .cacheBytes = 6.71e+07,
    .operation = 0.00325,
    .integerDivision = 0.00407,
    .division = 0.00892,
    .exponential = 0.00704,
    .logarithm = 0.025,
    .trigonometric = 0.0114,
    .float32 = 1,
    .overlap = 0,
    .scanElement = 0.0213,
    .scanByte = 0,
    .filterElement = 0.0102,
    .filterByte = 0,
    .segmentedElement = 0.00347,
    .segment = 0,
    .foldedElement = 0.0129,
    .foldedSegment = 0.0475,
    .permuteElement = 0.0138,
    .randomStore = 0,
    .collectiveBudget = 256,
};

}  // namespace

const TargetCosts& cudaCosts() { return kCuda; }
const TargetCosts& cpuCosts() { return kCpu; }
const TargetCosts& interpCosts() { return kInterp; }

}  // namespace kelpie::fusion

// Measured by scripts/calibrate.sh, which writes what is between `name` and `collectiveBudget`; raw output in
// bench/results/calibration-*.
#include "fusion/cost_constants.h"

namespace kelpie::fusion {

namespace {

// One NVIDIA H200.
constexpr TargetCosts kCuda{
    .name = "cuda",
    .launch = 4,
    .byte = 2.41e-07,
    .cachedLoad = 7.03e-08,
    .sharedLoad = 4.72e-06,
    .randomLoad = 2.3e-05,
    .ownBytes = 2.62e+05,
    .cacheBytes = 3.36e+07,
    .guardedLoad = 2.82e-08,
    .operation = 7.03e-08,
    .integerDivision = 6.28e-07,
    .longDivision = 7.52e-07,
    .division = 8.84e-07,
    .exponential = 1.61e-06,
    .logarithm = 3.2e-06,
    .trigonometric = 1.87e-06,
    .float32 = 0.204,
    .overlap = 1,
    .collectiveOverlap = 0.8,
    .passes = 1,
    .scanElement = 5.52e-07,
    .scanByte = 6.9e-08,
    .filterElement = 7.95e-07,
    .filterByte = 0,
    .segmentedElement = 5.66e-07,
    .segment = 9.92e-06,
    .numberedElement = 7.33e-07,
    .foldedElement = 3.54e-08,
    .foldedSegment = 6.49e-06,
    .headedElement = 5.1e-07,
    .headedSegment = 1.58e-06,
    .permuteElement = 7.86e-06,
    .randomStore = 5.26e-05,
    .collectiveBudget = 64,
};

// Two cores of an AMD EPYC.
constexpr TargetCosts kCpu{
    .name = "cpu",
    .launch = 4.7,
    .byte = 7.17e-05,
    .cachedLoad = 0.000943,
    .sharedLoad = 0.00284,
    .randomLoad = 0.0208,
    .ownBytes = 5.24e+05,
    .cacheBytes = 8.39e+06,
    .guardedLoad = 0,
    .operation = 9.28e-05,
    .integerDivision = 0.000784,
    .longDivision = 0.000784,
    .division = 0.00241,
    .exponential = 0.00806,
    .logarithm = 0.00672,
    .trigonometric = 0.0183,
    .float32 = 0.46,
    .overlap = 1,
    .collectiveOverlap = 0,
    .passes = 1,
    .scanElement = 0,
    .scanByte = 0.000141,
    .filterElement = 0.000314,
    .filterByte = 0.000292,
    .segmentedElement = 0.000542,
    .segment = 0.00475,
    .numberedElement = 0,
    .foldedElement = 0,
    .foldedSegment = 0.0106,
    .headedElement = 0,
    .headedSegment = 0.00145,
    .permuteElement = 0.00505,
    .randomStore = 0.0349,
    .collectiveBudget = 256,
};

constexpr TargetCosts kInterp{
    .name = "interp",
    .launch = 15.1,
    .byte = 0.000569,
    .cachedLoad = 0.00325,
    .sharedLoad = 0.00325,
    .randomLoad = 0.292,
    .ownBytes = 1,
    .cacheBytes = 6.71e+07,
    .guardedLoad = 0,
    .operation = 0.00325,
    .integerDivision = 0.00407,
    .longDivision = 0.00407,
    .division = 0.00892,
    .exponential = 0.00704,
    .logarithm = 0.025,
    .trigonometric = 0.0114,
    .float32 = 1,
    .overlap = 0,
    .collectiveOverlap = 0,
    .passes = 1,
    .scanElement = 0.0213,
    .scanByte = 0,
    .filterElement = 0.0102,
    .filterByte = 0,
    .segmentedElement = 0.00347,
    .segment = 0,
    .numberedElement = 0,
    .foldedElement = 0.0129,
    .foldedSegment = 0.0475,
    .headedElement = 0,
    .headedSegment = 0.0475,
    .permuteElement = 0.0138,
    .randomStore = 0,
    .collectiveBudget = 256,
};

}  // namespace

const TargetCosts& cudaCosts() { return kCuda; }
const TargetCosts& cpuCosts() { return kCpu; }
const TargetCosts& interpCosts() { return kInterp; }

}  // namespace kelpie::fusion

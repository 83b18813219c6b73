// What one target costs: the constants of the cost model (cost_model.h), measured by scripts/calibrate.sh.
//
// Times are microseconds. A kernel takes `launch`, plus the time of its loads and stores, plus that of its
// arithmetic as far as the two do not overlap, plus what its scans, filters, segments and permutes take.
#pragma once

#include <string_view>

namespace kelpie::fusion {

struct TargetCosts {
  std::string_view name;
  double launch;  ///< one kernel

  // Memory.
  double byte;        ///< one byte loaded or stored in order
  double cachedLoad;  ///< a load that finds its element in a cache: a small array, or a neighbour's element
  double randomLoad;  ///< a load at an arbitrary position of a large array
  double cacheBytes;  ///< what a cache holds: of a larger array, only this part is found there

  // Arithmetic on one element.
  double operation;  ///< add, multiply, compare, choose, convert
  double integerDivision;
  double division;  ///< of floats; square root
  double exponential, logarithm, trigonometric;
  double float32;  ///< the last four for 32 bits, relative to 64
  double
      overlap;  ///< share of the shorter of memory and arithmetic that hides behind the other, without scans

  // Beyond loads, stores and arithmetic, on one element (or byte of it, or segment).
  double scanElement, scanByte;
  double filterElement, filterByte;     ///< of what it passes on
  double segmentedElement, segment;     ///< for knowing one's segment
  double foldedElement, foldedSegment;  ///< a segmented reduction that need not know it
  double permuteElement, randomStore;   ///< any permute; one to arbitrary positions of a large array

  double collectiveBudget;  ///< bytes an element that scans, filters and partitions of one kernel may keep
};

const TargetCosts& cudaCosts();
const TargetCosts& cpuCosts();
/// The λcu evaluator: the target `interp`, and kernels of `cpu` that do not pay for compiling.
const TargetCosts& interpCosts();

}  // namespace kelpie::fusion

// Modelled run time: what launching a kernel, loading and storing an array, and recomputing a value cost.
//
// Sizes come from symbolic extents. What is not known at compile time is estimated by class: the size of an
// input or a host scalar is `unknownElements`, half of the elements survive a filter, a segment has
// `unknownLength` elements. A caller that knows real sizes (a profile) passes them in `known`.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "ir/lcu.h"

namespace kelpie::fusion {

/// What one target costs. Times in microseconds.
struct TargetCosts {
  std::string name;
  double launch;            ///< one kernel
  double byte;              ///< one byte loaded or stored in order
  double gatheredByte;      ///< one byte loaded at a computed position
  double cachedLoad;        ///< a load that neighbouring elements share
  double operation;         ///< one scalar operation on one element
  double transcendental;    ///< exp, sin, ...
  double collectiveBudget;  ///< bytes per element that scans, filters and partitions of one kernel may keep
};
TargetCosts cudaCosts();
TargetCosts cpuCosts();

struct SizeClasses {
  double unknownElements = 1 << 20;
  double unknownLength = 8;
  double survivors = 0.5;  ///< of the elements of a filter
};

class CostModel {
 public:
  CostModel(const lcu::Program& program, TargetCosts costs, SizeClasses classes = {},
            std::unordered_map<lcu::ExprRef, double> known = {});

  const TargetCosts& costs() const { return costs_; }
  /// Estimated value of a host expression that is a number of elements.
  double elements(lcu::ExprRef extent) const;
  double bytesOf(lcu::VarId array) const;
  /// Time to evaluate an expression once, loads counted as cached ones.
  double evaluation(lcu::ExprRef e) const;
  /// Bytes that the SOAC keeps for each element while it waits for its predecessors.
  double collectiveBytes(const lcu::Soac& soac) const;

 private:
  double estimate(lcu::ExprRef e) const;
  const lcu::Program& program_;
  TargetCosts costs_;
  SizeClasses classes_;
  mutable std::unordered_map<lcu::ExprRef, double> known_;
  std::unordered_map<lcu::VarId, lcu::ExprRef> offsetsOfFilter_;  ///< to the extent that is filtered
};

}  // namespace kelpie::fusion

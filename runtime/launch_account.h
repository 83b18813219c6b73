// The work of a launch, from its thunks and extents: the account of targets that do not count.
//
// In:  a kernel, once; then the extents of each launch, and how many elements its filters kept.
// Out: what the evaluator would count (runtime/interp/kernel_evaluator.h), with one difference: a load at a
//      computed position counts for every element, also for those whose conditions skip it.
#pragma once

#include <functional>

#include "runtime/target.h"

namespace kelpie::runtime {

class LaunchAccount {
 public:
  LaunchAccount(const KernelEntry& entry, const lcu::Program& program);
  /// `kept` tells the value of the output that counts what a filter or partition keeps; `shortArrays`, which
  /// arrays are stored in 32 bits (LaunchRequest).
  LaunchWork of(const codegen::LaunchExtents& extents, const std::function<int64_t(lcu::VarId counter)>& kept,
                std::span<const lcu::VarId> shortArrays = {}) const;

 private:
  /// How many times something happens in a launch: once, for each element, segment, survivor.
  enum class Times : uint8_t { Once, Elements, Segments, Survivors };
  struct Read {
    Times times;
    lcu::VarId array;
    lcu::VarId counter;  ///< Survivors: of whom
  };
  const KernelEntry& entry_;
  const lcu::Program& program_;
  std::vector<Read> reads_;
};

}  // namespace kelpie::runtime

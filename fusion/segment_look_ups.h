// What elements that know their segment take longer on a GPU: loads of what belongs to it, and of where it
// begins, and in folds those for which a condition has to be known, which few warps wait for.
//
// In:  the steps of a pass's thunks (codegen/expression_schedule.h), and how often its blocks are entered.
// Out: microseconds, which hide behind arithmetic (CostModel::predicted).
#pragma once

#include <unordered_set>
#include <vector>

#include "codegen/expression_schedule.h"
#include "fusion/cost_constants.h"
#include "ir/lcu.h"

namespace kelpie::fusion {

/// Of one pass, which loads each value of a segment once.
class SegmentLookUps {
 public:
  struct Place {
    size_t block;
    const codegen::ScheduleStep& step;
  };
  /// `behindBranches` (compiled_blocks.h) and `entered` by block.
  double ofStep(const codegen::Schedule& schedule, const Place& place,
                const std::vector<bool>& behindBranches, const std::vector<double>& entered,
                lcu::SoacKind kind, const TargetCosts& costs);
  /// Of `times` elements whose thunks may need their position in the segment.
  double ofPositions(const std::vector<lcu::ExprRef>& thunks, lcu::SoacKind kind, double times,
                     const TargetCosts& costs);

 private:
  std::unordered_set<lcu::ExprRef> loaded_;
  bool located_ = false;
};

}  // namespace kelpie::fusion

// What evaluating the thunks of a kernel for some of its elements tells: how often they enter their branches
// and loops, and how near each other the positions are at which they load and store. It comes from a run
// (runtime/thunk_sampler.h), and lets a cost model count with it (fusion/kernel_time.h).
//
// Order of all numbers: binding by binding, first what belongs to its eagerThunks, then to its lateThunks
// (kernel_analysis.h); within these by block of their schedule (expression_schedule.h), and by step.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace kelpie::codegen {

struct ThunkSample {
  /// Of a load that is not at parameter 0 or 1, or (after the others of its binding) of what a Permute
  /// writes.
  struct Positions {
    double number = 0;    ///< looked at
    double sectors = 0;   ///< different aligned pieces of 32 bytes, of each group of neighbouring elements
    double lines = 0;     ///< the same, of 128 bytes
    double distinct = 0;  ///< different pieces of 32 bytes over all groups
  };
  /// By block: how often it was entered. An outermost one: how many elements were evaluated; 0: none, because
  /// the binding needs what others of the kernel compute.
  std::vector<double> entered;
  /// The same where 32 neighbours go in step: what the one of them does that enters most counts for all.
  std::vector<double> inStep;
  std::vector<Positions> positions;

  bool empty() const { return entered.empty(); }
  void add(const ThunkSample& other) {
    entered.resize(other.entered.size());
    inStep.resize(other.inStep.size());
    positions.resize(other.positions.size());
    for (size_t k = 0; k < entered.size(); ++k) entered[k] += other.entered[k];
    for (size_t k = 0; k < inStep.size(); ++k) inStep[k] += other.inStep[k];
    for (size_t k = 0; k < positions.size(); ++k) {
      positions[k].number += other.positions[k].number;
      positions[k].sectors += other.positions[k].sectors;
      positions[k].lines += other.positions[k].lines;
      positions[k].distinct += other.positions[k].distinct;
    }
  }
};

/// Whether all elements load side by side: at parameter 0 or 1, which no sample has to tell.
inline bool loadsInOrder(lcu::ExprRef load) {
  const lcu::ExprRef position = load->operands[0];
  return position->kind == lcu::ExprKind::Param && position->index < 2;
}

/// Elements of a group of neighbours (ThunkSample::Positions).
constexpr int kNeighbours = 256;

}  // namespace kelpie::codegen

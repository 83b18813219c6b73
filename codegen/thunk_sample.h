// What evaluating the thunks of a kernel for some of its elements tells: how often they enter their branches
// and loops, and how near each other the positions are at which they load and store. It comes from a run
// (runtime/thunk_sampler.h), and lets a cost model count with it (fusion/kernel_time.h).
//
// All numbers are sums over launches, each estimated for all elements of its launch from those looked at, so
// that long launches weigh more than short ones.
//
// Order of all numbers: binding by binding, first what belongs to its eagerThunks, then to its lateThunks
// (kernel_analysis.h); within these by block of their schedule (expression_schedule.h), and by step.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace kelpie::codegen {

struct ThunkSample {
  /// Of a load that is not at parameter 0 or 1, or (after the others of its binding) of what a Permute
  /// writes. What the group loads of the same array at parameter 0, or by an earlier load, is not counted
  /// again in `sectors`, `granules` and `blocks`.
  struct Positions {
    double number = 0;    ///< how many; negative: it is not known where
    double sectors = 0;   ///< different aligned pieces of 32 bytes, of each group of neighbouring elements
    double granules = 0;  ///< the same, of 64 bytes
    double blocks = 0;    ///< the same, of 1024 bytes
    double fresh = 0;     ///< those of `sectors` whose granule no element visits shortly before (kRemembered)
    double visited = 0;   ///< bytes of the different pieces that the launch visits, once for each of `number`
    /// Pieces of 32 bytes that warps ask for and a core's cache does not hold, of so many loads: of a GPU
    /// (runtime/interp/core_cache.h).
    double missed = 0, simulated = 0;
    /// Of what a Permute writes: elements looked at side by side, how many pairs of them there are, and how
    /// many of them write where another of them does.
    double seen = 0, pairs = 0, met = 0;

    void add(const Positions& other, double weight) {
      number += weight * other.number;
      sectors += weight * other.sectors;
      granules += weight * other.granules;
      blocks += weight * other.blocks;
      fresh += weight * other.fresh;
      visited += weight * other.visited;
      missed += weight * other.missed;
      simulated += weight * other.simulated;
      seen += weight * other.seen;
      pairs += weight * other.pairs;
      met += weight * other.met;
    }
  };
  /// Of a division whose size its operands tell (dividesByWords in integer_division.h): how many warps did
  /// it, and in how many of them some thread had operands that take two words, and some had such as take one.
  struct Division {
    double number = 0, ofLong = 0, ofShort = 0;
    void add(const Division& other, double weight) {
      number += weight * other.number;
      ofLong += weight * other.ofLong;
      ofShort += weight * other.ofShort;
    }
  };
  /// Of a call of a recursion over frames that leaves something pending: how many warps made it, and how many
  /// depths of stacks these were at, summed: threads of a warp need not be at the same.
  struct Call {
    double number = 0, depths = 0;
    void add(const Call& other, double weight) {
      number += weight * other.number;
      depths += weight * other.depths;
    }
  };
  /// By block: how often it was entered. An outermost one: by how many elements; 0: it is not known, because
  /// the binding needs what others of the kernel compute.
  std::vector<double> entered;
  /// The same where 32 neighbours go in step: what the one of them does that enters most counts for all.
  std::vector<double> inStep;
  std::vector<Positions> positions;
  std::vector<Division> divisions;
  std::vector<Call> calls;  ///< of all Calls; those that leave nothing pending are never made
  /// By block: `inStep` if all did what those do that enter it most, and if of 128 neighbours, four times 32,
  /// all did what those of these do that enter it most. Empty in profiles of before.
  std::vector<double> slowest, ofFour;

  bool empty() const { return entered.empty(); }
  void add(const ThunkSample& other, double weight = 1) {
    entered.resize(other.entered.size());
    inStep.resize(other.inStep.size());
    positions.resize(other.positions.size());
    divisions.resize(other.divisions.size());
    calls.resize(other.calls.size());
    slowest.resize(other.slowest.size());
    ofFour.resize(other.ofFour.size());
    for (size_t k = 0; k < entered.size(); ++k) entered[k] += weight * other.entered[k];
    for (size_t k = 0; k < inStep.size(); ++k) inStep[k] += weight * other.inStep[k];
    for (size_t k = 0; k < slowest.size(); ++k) slowest[k] += weight * other.slowest[k];
    for (size_t k = 0; k < ofFour.size(); ++k) ofFour[k] += weight * other.ofFour[k];
    for (size_t k = 0; k < positions.size(); ++k) positions[k].add(other.positions[k], weight);
    for (size_t k = 0; k < divisions.size(); ++k) divisions[k].add(other.divisions[k], weight);
    for (size_t k = 0; k < calls.size(); ++k) calls[k].add(other.calls[k], weight);
  }
};

/// Whether all elements load side by side: at parameter 0 or 1, which no sample has to tell.
inline bool loadsInOrder(lcu::ExprRef load) {
  const lcu::ExprRef position = load->operands[0];
  return position->kind == lcu::ExprKind::Param && position->index < 2;
}

/// Whether it loads what belongs to its element's segment, which all elements of that load.
inline bool loadsOfSegment(lcu::ExprRef load) { return loadsInOrder(load) && load->operands[0]->index == 1; }

/// The same of a segment a constant number further: of where the next one begins.
inline bool loadsOfSegmentNearby(lcu::ExprRef load) {
  const lcu::ExprRef at = load->operands[0];
  if (at->kind != lcu::ExprKind::Op || (at->op != ScalarOp::Add && at->op != ScalarOp::Sub)) return false;
  const lcu::ExprRef segment = at->operands[0];
  return segment->kind == lcu::ExprKind::Param && segment->index == 1 &&
         at->operands[1]->kind == lcu::ExprKind::Constant;
}

/// Elements of a group of neighbours.
constexpr int kNeighbours = 256;
/// Bytes that pass before a cache has forgotten what it held.
constexpr double kRemembered = 3 << 24;

}  // namespace kelpie::codegen

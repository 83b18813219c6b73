// A loop whose turns differ from element to element.
//
// The lanes of a warp go through the loops of their elements in step, and who has come to the end waits for
// the slowest. Where an element has one such loop, and little besides, lanes that have come to its end can
// take other elements meanwhile (codegen/cuda/lane_queue.cuh): the loop of a function that calls itself at
// its end, as the steps of an iteration until it converges, or a walk until it arrives. Where elements are
// scanned, filtered or folded by segments the lanes of a warp do so within its part of a tile.
//
// In:  a kernel and those of its bindings that are computed for each element.
// Out: the loop, and under which conditions elements have it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/lcu.h"

namespace kelpie::codegen {

struct RefilledLoop {
  lcu::ExprRef loop;
  std::vector<lcu::ExprRef> values;  ///< those of its values that are wanted: one or more
  /// The Ifs around it from the outermost in, and whether it is in their then values.
  std::vector<std::pair<lcu::ExprRef, bool>> around;
  /// What its turns need and do not change is computed before it. Compilers would do that, too, but anew
  /// whenever lanes come back to the loop.
  std::vector<lcu::ExprRef> always;  ///< of this, what each element computes, whether it has the loop or not
  std::vector<lcu::ExprRef> unchanged;  ///< what each first turn computes, and operations that cannot fail
  int ofTurn = 0, besides = 0;          ///< about how many simple operations a turn takes, and all else
  /// For how many operations a lane must have waited, for one element, so that it pays to take others
  /// meanwhile: those of the queue, and what is done for fewer elements at a time. With 60 for the queue
  /// kernels took 1.25, 1.29 and 1.47 of the time that take 0.98, 1.22 and 1.01 with 240.
  int worth() const { return 240 + 2 * besides; }
  /// For how many times as long so that the first elements of a warp need not all be done in step.
  static constexpr int kVeryLong = 4;
};

/// Whose elements lanes take: those of all tiles of their block, where all that is computed for elements are
/// maps, permutes and reductions that are not segmented; or those of one tile, which may not ask for
/// segments.
enum class QueueOf : uint8_t { Block, Tile };

/// The only loop outside of others, if how many turns it takes depends on the element. Of loops that load
/// where they have come to, six of nine took 1.05 to 1.24 of the time so on an H200, one 0.61; they stay as
/// they are.
std::optional<RefilledLoop> refilledLoop(const lcu::Kernel& kernel, const std::vector<uint32_t>& bindings,
                                         QueueOf queue);

}  // namespace kelpie::codegen

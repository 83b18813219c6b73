// What neighbours enter that go in step, as the 32 threads of a warp do, from what each enters on its own.
//
// In:  the schedule of some thunks and, for each neighbour, the blocks that it entered and the divisions
//      that took long, in that order.
// Out: how often all together enter each block, and what they divide and call: a branch if one of them takes
//      it, a turn of a loop as long as one of them goes on. A loop within a loop begins anew in every turn of
//      the outer one; so together they take more turns than any of them alone:
//
//        turns of the inner loop, by turn of the outer:   first 1 9, second 9 1    each 10, together 18
//
// A recursion that a GPU does as a loop over frames (codegen/recursion_text.cpp) takes as many turns as that
// of its neighbours that takes most: a turn goes on to a call, or to the end of the function, wherever in the
// tree of calls a neighbour is. Other recursions go in step call by call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "codegen/pending_calls.h"
#include "codegen/thunk_sample.h"

namespace kelpie::runtime {

class LockStep {
 public:
  /// Blocks entered, but for block 0. The number of a division that takes long comes after those of blocks.
  using Path = std::vector<uint32_t>;
  /// Calls of the schedule.
  size_t calls() const { return firstCall_.back(); }
  /// What neighbours do together.
  struct Together {
    std::vector<double> entered;                            ///< by block
    std::vector<codegen::ThunkSample::Division> divisions;  ///< by block of the schedule and step
    std::vector<codegen::ThunkSample::Call> calls;          ///< likewise, of recursions over frames
  };

  explicit LockStep(codegen::Schedule schedule);
  const codegen::Schedule& schedule() const { return schedule_; }

  /// What the owners of `paths` do together; none: they do not fit the schedule, as those that were cut
  /// short.
  std::optional<Together> of(std::span<const Path* const> paths) const;

 private:
  struct Neighbour {
    const uint32_t *next, *end;  ///< of its path
    bool goesTo(size_t block) const { return next != end && *next == block; }
  };
  class Turns;
  void walk(uint32_t block, const std::vector<Neighbour*>& neighbours, Together& together) const;
  bool enter(uint32_t block, const std::vector<Neighbour*>& neighbours, Together& together) const;
  void divide(size_t division, const std::vector<Neighbour*>& neighbours, Together& together) const;
  void turns(const codegen::ScheduleStep& recursion, const std::vector<Neighbour*>& neighbours,
             Together& together) const;

  codegen::Schedule schedule_;
  std::vector<size_t> firstCall_;                                 ///< by block, and the number of all
  std::vector<size_t> firstDivision_;                             ///< by block, and the number of all
  std::unordered_map<uint32_t, uint32_t> bodies_;                 ///< of recursions, by their number
  std::unordered_map<uint32_t, codegen::PendingCalls> inFrames_;  ///< likewise
};

}  // namespace kelpie::runtime

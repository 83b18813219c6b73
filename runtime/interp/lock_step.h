// What neighbours enter that go in step, as the 32 threads of a warp do, from what each enters on its own.
//
// In:  the schedule of some thunks and, for each neighbour, the blocks that it entered, in that order.
// Out: how often all together enter each block: a branch if one of them takes it, a turn of a loop as long
//      as one of them goes on. A loop within a loop begins anew in every turn of the outer one; so together
//      they take more turns than any of them alone:
//
//        turns of the inner loop, by turn of the outer:   first 1 9, second 9 1    each 10, together 18
//
// Blocks without steps are not entered (ExpressionCode::run).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "codegen/expression_schedule.h"

namespace kelpie::runtime {

class LockStep {
 public:
  using Path = std::vector<uint32_t>;  ///< blocks entered, but for block 0

  explicit LockStep(codegen::Schedule schedule);

  /// Adds to `entered`, by block, what the owners of `paths` enter together. False: they do not fit the
  /// schedule, as those that were cut short, and `entered` is as it was.
  bool add(std::span<const Path* const> paths, std::vector<double>& entered) const;

 private:
  struct Neighbour {
    const uint32_t *next, *end;  ///< of its path
  };
  void walk(uint32_t block, std::vector<Neighbour*>& together, std::vector<double>& times) const;
  bool enter(uint32_t block, const std::vector<Neighbour*>& together, std::vector<double>& times) const;

  codegen::Schedule schedule_;
  std::unordered_map<uint32_t, uint32_t> bodies_;  ///< of recursions, by their number
};

}  // namespace kelpie::runtime

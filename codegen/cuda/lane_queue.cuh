// Elements that the lanes of a warp take when they have come to the end of others.
//
// A warp has 32 elements of each tile of its block, in order. Where all lanes do theirs in step, each waits
// for the one whose loop turns most: of Josephus' circles of 20 to 420 people, 12 lanes are at work on
// average. So lanes leave their loops, now and then, and those that have come to the end take other elements.
// The code in front of the loop and behind it takes as long for a few lanes as for all; so they do that when
// idle lanes have waited for as long as it takes. Whether all this pays, warps find out: they do the first 32
// in step, and if lanes have not waited for long, the others, too, without a queue. Where they have waited
// for very long before the first 32 are done, they need not be: hash puzzles take 0.78 of the time so.
//
//   busy  a lane has an element and is in its loop
//   held  a lane has an element, which may have come to its end
//
// Who takes which element depends on the elements alone: nothing but the warp's own ballots decides. So sums
// of floats are the same in each run.
#pragma once

#include "tile.cuh"

namespace kelpie {

/// How often lanes that have nothing to do wait for others, all together: `kPatience`, before they take
/// elements; `kWorth`, in step, so that a queue pays; `kFirst`, before the first elements are left, too.
template <class S, int kPatience, int kWorth, int kFirst>
struct LaneQueue {
  static constexpr int kLanes = 32;
  static_assert(S::kRows * S::kWidth == 1 && !S::kBackward, "a lane has one element of a tile");

  int taken = 0, total = 0;  ///< elements of the warp that go through the queue
  int waited = 0;            ///< of lanes since elements were taken

  __device__ __forceinline__ explicit LaneQueue(int64_t extent) {
    constexpr int kFew = 3;  // tiles
    const int64_t tiles = (extent + S::kItems - 1) / S::kItems;
    const int64_t mine = blockIdx.x < tiles ? (tiles - 1 - blockIdx.x) / gridDim.x + 1 : 0;
    if (mine < kFew) return;
    total = int(kLanes * mine);
    const int64_t beyond = element(total - 1) + 1 - extent;  // the last tile may not be whole
    if (beyond > 0) total -= beyond < kLanes ? int(beyond) : kLanes;
  }
  /// Element `number` of the warp.
  __device__ __forceinline__ int64_t element(int number) const {
    return (blockIdx.x + int64_t(number / kLanes) * gridDim.x) * S::kItems + kLanes * warpIndex() +
           number % kLanes;
  }
  /// Gives lanes that want one the next numbers, while there are any. To be called by all lanes.
  __device__ __forceinline__ bool take(bool wants, int& number) {
    const uint32_t wanting = __ballot_sync(kFullWarp, wants);
    const int next = taken + __popc(wanting & ((1u << laneIndex()) - 1));
    taken += __popc(wanting);
    waited = 0;
    if (!wants || next >= total) return false;
    number = next;
    return true;
  }
  /// Whether lanes that are at work should go on before others take elements. To be called by all lanes.
  __device__ __forceinline__ bool goesOn(bool busy) {
    const int working = __popc(__ballot_sync(kFullWarp, busy));
    constexpr int kMost = 1 << 30;
    if (waited < kMost) waited += kLanes - working;
    return working > 0 && (waited < (taken == kLanes ? kFirst : kPatience) || taken >= total);
  }
  /// To be called when goesOn has said no.
  __device__ __forceinline__ void weigh() {
    if (taken == kLanes && waited < kWorth) total = kLanes;
  }
  /// All tiles are left.
  __device__ __forceinline__ void giveUp() { total = 0; }
  /// The first tile of the block that is left.
  __device__ __forceinline__ int64_t rest() const {
    return blockIdx.x + int64_t((total + kLanes - 1) / kLanes) * gridDim.x;
  }
};

}  // namespace kelpie

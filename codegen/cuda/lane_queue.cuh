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
// Where elements are scanned, filtered or folded by segments, a warp goes through the loops of its part of a
// tile before all else, and leaves what they give in shared memory. A tile is too short to find out whether
// that pays: the first ones of a launch do, and one in 16 of the others, for those that follow.
//
//   busy  a lane has an element and is in its loop
//   held  a lane has an element, which may have come to its end
//
// Who takes which element of a block's tiles depends on the elements alone: nothing but the warp's own
// ballots decides. So sums of floats, which lanes fold, are the same in each run. In a tile the loops alone
// are done by whoever takes them.
#pragma once

#include "look_back.cuh"
#include "tile.cuh"

namespace kelpie {

/// How often lanes that have nothing to do wait for others, all together: `kPatience`, before they take
/// elements; `kWorth`, in step, so that a queue pays; `kFirst`, before the first elements are left, too.
template <int kPatience, int kWorth, int kFirst>
struct WarpQueue {
  static constexpr int kLanes = 32;

  int taken = 0, total = 0;  ///< elements of the warp that go through the queue
  int waited = 0;            ///< of lanes since elements were taken
  bool weighs = true;        ///< whether it pays is not known yet

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
    return working > 0 && (waited < (weighs && taken == kLanes ? kFirst : kPatience) || taken >= total);
  }
  /// To be called when goesOn has said no.
  __device__ __forceinline__ void weigh() {
    if (weighs && taken == kLanes && waited < kWorth) total = kLanes;
  }
  /// All elements are left.
  __device__ __forceinline__ void giveUp() { total = 0; }
};

/// The elements that the tiles of a block have for a warp.
template <class S, int kPatience, int kWorth, int kFirst>
struct LaneQueue : WarpQueue<kPatience, kWorth, kFirst> {
  using Base = WarpQueue<kPatience, kWorth, kFirst>;
  using Base::kLanes;
  using Base::total;
  static_assert(S::kRows * S::kWidth == 1 && !S::kBackward, "a lane has one element of a tile");

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
  /// The first tile of the block that is left.
  __device__ __forceinline__ int64_t rest() const {
    return blockIdx.x + int64_t((total + kLanes - 1) / kLanes) * gridDim.x;
  }
};

enum class Vote : uint8_t { Unknown, No, Yes };
constexpr int kVoters = 16;         ///< of so many tiles one votes
constexpr int kTilesOfVote = 1024;  ///< that follow the same vote
constexpr int kWordsOfVote = 2;     ///< ... which has so many, a sector of L1 (CudaPass::states)

/// Whether queues pay, as earlier tiles of the launch have found. What a tile sees depends on which were
/// faster, so the way of its elements may differ from run to run, but not what they give. Each vote has a
/// sector of memory that hardly anybody reads before its time, so that L1 can keep it: where every warp asked
/// L2 at its beginning, filters by short loops took 1.37 times as long.
class TileVotes {
 public:
  /// `words`: of a tile, in front of those for votes.
  __device__ __forceinline__ TileVotes(const Launch& launch, int words, int64_t tile)
      : place_(launch.states + words * launch.tiles + kWordsOfVote * (tile / kTilesOfVote)),
        tag_(launch.epoch << 3),
        votes_(tile % kVoters == 0),
        last_(loadCached(place_)) {}
  __device__ __forceinline__ Vote next() const {
    if (votes_ || last_.tag != tag_) return Vote::Unknown;
    return last_.payload[0] != 0 ? Vote::Yes : Vote::No;
  }
  __device__ __forceinline__ void add(bool pays) {
    if (votes_ && laneIndex() == 0) storeWord(place_ + kWordsOfVote, StateWord{{pays, 0, 0}, tag_});
  }

 private:
  static __device__ __forceinline__ StateWord loadCached(const StateWord* place) {
#if defined(KELPIE_EMULATION)
    return *place;
#else
    StateWord word;
    asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.payload[0]), "=r"(word.payload[1]), "=r"(word.payload[2]), "=r"(word.tag)
                 : "l"(place)
                 : "memory");
    return word;
#endif
  }

  StateWord* place_;
  uint32_t tag_;
  bool votes_;
  StateWord last_;
};

/// The same for the tiles that a warp works off one after the other.
class RangeVotes {
 public:
  __device__ __forceinline__ Vote next() { return tiles_++ % kVoters == 0 ? Vote::Unknown : last_; }
  __device__ __forceinline__ void add(bool pays) { last_ = pays ? Vote::Yes : Vote::No; }

 private:
  Vote last_ = Vote::Unknown;
  int tiles_ = 0;
};

/// The items that a tile has for a warp: first the first item of each lane, then the second ones. Some may
/// lie outside of the tile.
template <class S, int kPatience, int kWorth, int kFirst>
struct TileQueue : WarpQueue<kPatience, kWorth, kFirst> {
  using Base = WarpQueue<kPatience, kWorth, kFirst>;
  using Base::kLanes;
  using Base::total;
  using Base::weighs;

  __device__ __forceinline__ TileQueue(const Tile& tile, Vote vote) {
    constexpr int kFew = 3 * S::kThreads;  // items of the tile
    if (tile.count >= kFew && vote != Vote::No) total = kLanes * S::kRows * S::kWidth;
    weighs = total > 0 && vote == Vote::Unknown;
  }
  /// The offset in the tile of item `number` of the warp.
  __device__ __forceinline__ int offset(int number) const {
    const int ofLane = number / kLanes, away = (number % kLanes - laneIndex()) * S::kWidth;
    return S::offset(ofLane / S::kWidth, ofLane % S::kWidth) + (S::kBackward ? -away : away);
  }
  /// Whether it pays, where it has found out.
  __device__ __forceinline__ bool pays() const { return total > kLanes; }
  /// Whether this item of the lane has been through the queue.
  __device__ __forceinline__ bool knows(int row, int v) const {
    return (row * S::kWidth + v) * kLanes + laneIndex() < total;
  }
};

}  // namespace kelpie

// Modelled run time: what launching a kernel, loading and storing an array, and computing a value cost.
//
// The schedule decides about launches, loads and stores: their times are what a partition costs
// (region_problem.h). Arithmetic and collectives take as long in every schedule; together with the former
// they give the time that a kernel should take (`predicted`).
//
// Sizes come from symbolic extents. What is not known at compile time is estimated by class: the size of an
// input or a host scalar is `unknownElements`, half of the elements survive a filter, a segment has
// `unknownLength` elements, also where two unknown sizes are multiplied. A caller that knows real sizes (a
// profile) passes them in `known`.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fusion/cost_constants.h"
#include "fusion/element_facts.h"
#include "ir/lcu.h"

namespace kelpie::fusion {

/// How the elements of a launch go through an array.
enum class AccessPattern : uint8_t {
  Same,       ///< one element for all
  InOrder,    ///< element %i, or that of the segment
  Shifted,    ///< near %i, or in order from some start: neighbours share cache lines
  Arbitrary,  ///< depends on data, or jumps
};
AccessPattern patternOf(lcu::ExprRef position);

/// What one SOAC takes beside its loads and stores, in microseconds, and what more it takes by company.
struct SoacTime {
  lcu::SoacKind kind = lcu::SoacKind::Once;
  double arithmetic = 0;              ///< but for `integers`
  double integers = 0;                ///< arithmetic of integers, where it is known apart
  double conversions = 0;             ///< likewise, between integers and floats
  double collective = 0;              ///< work of scans and filters
  double exposed = 0;                 ///< behind which nothing hides: permutes, guarded loads
  double further = 0;                 ///< what a scan or filter takes longer in a kernel that has one already
  double elements = 0, segments = 0;  ///< of a segmented space
  bool numbered = false;              ///< its thunks need to know the segment
  double columns = 0;                 ///< that a segmented reduction makes
  bool lookedUp = false;              ///< its segments have lengths of their own
  double lookUps = 0;                 ///< time of elements for what depends on their segment or a condition
  int gathers = 0;                    ///< loads at computed positions
  bool rows = false;   ///< a reduction whose loads depend on the segment or on the position alone
  bool keyed = false;  ///< ... or one of `elements` positions, whose keys tell the segment
};
/// The same where ranges scan what they fold (codegen/cuda/range_scan.cuh).
SoacTime overRanges(SoacTime time);

/// How near each other the positions are at which neighbouring elements load or store.
struct Places {
  double sectors = 1;   ///< pieces of 32 bytes for each load
  double granules = 1;  ///< the same of 64 bytes: what comes from memory
  double scatter = 1;   ///< 0: the granules lie side by side, 1: none is near another
  double fresh = 1;     ///< share of the pieces that were not visited shortly before
  double visited = 0;   ///< bytes
  std::optional<double>
      held;  ///< share of the pieces that the cache of all cores holds, if each is visited at random
  std::optional<double>
      writers;  ///< of a permute: share of the elements that are the last so far where they write
  std::optional<double> missed;  ///< sectors that a core's cache does not hold, where that is known
};

/// Time of loads and of stores.
struct MemoryTime {
  double loads = 0, stores = 0;
  double shared = 0;     ///< of the cache of all cores, for what does not come from memory
  double own = 0;        ///< of the caches of the cores
  double dependent = 0;  ///< of loads in loops: the next iteration waits for them
  double waits = 0;      ///< for loads that come one after the other (load_waits.h): works like arithmetic
};

/// Of loads at computed positions: of memory and of the two caches, which work at the same time.
struct GatherTime {
  double memory = 0, shared = 0, own = 0;
};

/// The same of a permute's writes, and what nothing hides of them.
struct PermuteTime {
  double memory = 0, shared = 0, exposed = 0;
  double all() const { return memory + shared + exposed; }
};

/// Of the warps that divide integers, the shares in which some thread needs the long way, and the short one
/// (codegen/thunk_sample.h).
struct DivisionSizes {
  double ofLong = 0, ofShort = 1;
};

struct SizeClasses {
  double unknownElements = 1 << 20;
  double unknownLength = 8;
  double survivors = 0.5;  ///< of the elements of a filter
  double iterations = 16;  ///< of a loop in a thunk
};

class CostModel {
 public:
  CostModel(const lcu::Program& program, const TargetCosts& costs, SizeClasses classes = {},
            std::unordered_map<lcu::ExprRef, double> known = {});

  const TargetCosts& costs() const { return costs_; }
  /// The same sizes, other costs.
  CostModel with(const TargetCosts& costs) const {
    CostModel other = *this;
    other.costs_ = costs;
    return other;
  }
  /// Estimated value of a host expression that is a number of elements.
  double elements(lcu::ExprRef extent) const;
  double bytesOf(lcu::VarId array) const;
  /// Of an element in memory: offsets may be short (TargetCosts::shortOffsets).
  double storedBytes(lcu::VarId array) const;
  /// Time of `count` loads from an array that, if nothing else tells its size, has `least` elements. Of
  /// several Shifted ones, all but the first are in a cache.
  double loads(AccessPattern pattern, lcu::VarId array, double count, double least) const;
  /// The same for Arbitrary ones, by where they come from.
  GatherTime gathers(lcu::VarId array, double count, double least) const;
  /// Share of the elements for which a thunk takes the branch of a choice. Less than one only if the
  /// condition tells places that a permute has filled from others: if it throws m elements at n places,
  /// between 1 - exp(-m/n) (at random) and m/n (all differ) are filled, and the middle is taken.
  double taken(lcu::ExprRef condition, bool branch) const;
  /// Time of the operations of thunks for one element; what does not depend on the element is free.
  double arithmetic(const std::vector<lcu::ExprRef>& thunks) const;
  /// A load of some element of an array.
  double farLoad(lcu::VarId array) const { return together(gathers(array, 1, 0)); }
  SoacTime timeOf(const lcu::Soac& soac) const;
  /// The same for known numbers of elements and of segments.
  SoacTime timeOf(const lcu::Soac& soac, double elements, double segments) const;
  /// Arrays of which only what a filter passes on is loaded, in order: one for each load.
  static std::vector<lcu::VarId> guardedLoads(const lcu::Soac& soac);
  /// Whether an operation is one of integers or truth values.
  static bool ofIntegers(lcu::ExprRef e);
  /// ... or between integers and floats.
  static bool converts(lcu::ExprRef e);
  /// One operation on one element; how large integers are that it divides, if that is known.
  double operation(lcu::ExprRef e, const ElementFacts& facts,
                   const std::optional<DivisionSizes>& sizes = std::nullopt) const;
  /// Of an element of 64 bits, by what is known.
  double choice() const;
  /// A load at a computed position.
  GatherTime gather(const Places& places) const;
  /// From the call of a load to its answer, by so many of 32 lanes in step, as a share of what all threads of
  /// a GPU do (TargetCosts::ownWait). Without places: of its neighbour's in memory, or, if it is `near`, in
  /// the cache of all cores.
  double wait(const Places& places, double lanes) const;
  double wait(bool near) const;
  /// Of loads by many threads: memory and the caches work at the same time.
  double together(const GatherTime& time) const;
  /// Of the writes of a permute of `count` elements to results of so many bytes.
  PermuteTime permuting(const lcu::Soac& soac, double count, double bytes,
                        const std::optional<Places>& places = std::nullopt) const;
  const ArrayBits& arrayBits() const { return arrayBits_; }
  double iterations() const { return classes_.iterations; }
  /// Whether a profile, or a value of a global, told what elements() says of the extent.
  bool isTold(lcu::ExprRef extent) const { return told_.contains(extent); }
  /// Time of a launch of a cluster, which takes as long as its scanner at least (SoacTime::collective has
  /// what the blocks of tiles do).
  double predicted(const MemoryTime& memory, const std::vector<SoacTime>& members, double scanner = 0) const;
  /// Bytes that the SOAC keeps for each element while it waits for its predecessors; on a GPU what is scanned
  /// counts twice, as lower tiles have to tell it.
  double collectiveBytes(const lcu::Soac& soac) const;

 private:
  double estimate(lcu::ExprRef e) const;
  /// Whether nothing but a class tells how much `e` is.
  bool isGuessed(lcu::ExprRef e) const;
  void noteBits(const lcu::Soac& soac);
  double missing(const Places& places) const;
  double besideNeighbours(const Places& places) const;
  double segmentTime(const std::vector<SoacTime>& members) const;
  const lcu::Program& program_;
  TargetCosts costs_;
  SizeClasses classes_;
  std::unordered_set<lcu::ExprRef> told_;  ///< what `known` was about
  mutable std::unordered_map<lcu::ExprRef, bool> guessed_;
  mutable std::unordered_map<lcu::ExprRef, double> known_;
  std::unordered_map<lcu::VarId, lcu::ExprRef> offsetsOfFilter_;  ///< to the extent that is filtered
  std::unordered_map<lcu::VarId, double> lengths_;                ///< by offsets, where their thunk tells
  struct Permuted {
    lcu::ExprRef elements, target;
    Scalar fill;
  };
  ArrayBits arrayBits_;
  std::vector<lcu::VarId> shortArrays_;                ///< ascending
  std::unordered_map<lcu::VarId, Permuted> permuted_;  ///< arrays of one column
};

}  // namespace kelpie::fusion

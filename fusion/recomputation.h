// What it takes to compute the elements of a map where they are read, instead of storing them.
//
// Whoever computes x[e] from the pull of x does its arithmetic and its loads once more. A load that is stored
// is one load of x; its pull may have several:
//
//   near    at places that neighbours read as well: a further one costs little
//   far     at places all over the array: a gather for each array, but for the first, which takes the place
//           of that of x; what lies beside what was loaded (offsets[e + 1] - offsets[e]) is near
//   told    at places that loads tell (y[order[i]]): gathers wherever x is read, once if x is stored
//   own     of their segment, by elements of segments of any lengths: each load is one of every element; and
//           where a kernel over the segments stays anyway (companions.h), storing x costs no launch
//   shared  that the reader does anyway, for itself or for others: they cost nothing. With
//             r = {if x > limit then 1 else 0 : x in v},
//           whoever reads v[e] has r[e], too.
//
// In: λcu, by pointers that must stay valid, and the reads of each kernel. Out: times in microseconds.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "fusion/cost_model.h"
#include "ir/lcu.h"

namespace kelpie::fusion {

class Recomputation {
 public:
  Recomputation(lcu::Program& program, const CostModel& model) : program_(program), model_(model) {}

  /// All that the thunks of a SOAC load, to be found as shared.
  void addLoads(const lcu::Soac& reader);
  /// One of these loads, or a cell that thunks read (Host): of an array that may be computed instead.
  /// `turns`: how many times as often as the array is made the reader runs. `ofFew`: by elements of segments
  /// that have few.
  void addRead(const lcu::Soac& reader, lcu::ExprRef read, double turns, bool ofFew);
  bool isRead(lcu::VarId array) const { return reads_.contains(array); }

  /// Time of all reads of an array, computed by `pull` (over %i), beyond that of loading it.
  double computing(lcu::VarId array, lcu::ExprRef pull) const;
  /// Time to store it: the share of a launch for one result of `map`, unless that is `accompanied` by a
  /// kernel over the same elements that it may share, and all reads are of segments of any lengths; bytes to
  /// and from memory; and what the pull gathers.
  double storing(lcu::VarId array, lcu::ExprRef pull, const lcu::Soac& map, bool accompanied) const;

 private:
  using SpaceKey = std::tuple<lcu::SpaceKind, lcu::ExprRef, lcu::ExprRef, lcu::VarId, lcu::ExprRef>;
  struct Read {
    SpaceKey space;
    lcu::ExprRef place = nullptr;  ///< without checks; null: of a cell
    bool far = false;
    bool irregular = false;  ///< at the segment, by elements of segments of any lengths
    double times = 0;
    double places = 0;  ///< the same, but those of a segment that read the same count once
    double turns = 1;
  };
  static SpaceKey keyOf(const lcu::Space& space);
  /// The same place where nothing fails.
  lcu::ExprRef unchecked(lcu::ExprRef place) const;
  /// Whether the reader does a load of the pull anyway.
  bool isShared(const Read& read, lcu::ExprRef load) const;
  double timeOf(lcu::VarId array, const Read& read, lcu::ExprRef pull, double arithmetic) const;

  lcu::Program& program_;
  const CostModel& model_;
  std::map<lcu::VarId, std::vector<Read>> reads_;
  std::set<std::tuple<SpaceKey, lcu::VarId, lcu::ExprRef>> loaded_;
};

/// Element %s of an array.
bool isOwnSegment(lcu::ExprRef load);

}  // namespace kelpie::fusion

// Which elements of a launch a sample looks at (sample_thunks.cpp).
//
// Groups of 256 neighbours tell where a launch loads, short runs in two windows whether a place is visited
// again soon, and small groups of 32, which go in step, what elements do. Each kind is spread over the launch
// so that any first few of it are spread, too: how many there will be is known when the time is over.
//
// A window is what a launch works on while a cache remembers: neighbours of one element, or a few neighbours
// in each of so many streams (codegen/streams.h).
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/streams.h"
#include "codegen/thunk_sample.h"

namespace kelpie::runtime {

class ChosenElements {
 public:
  static constexpr int64_t kInStep = 32;  ///< elements of a small group
  static constexpr int64_t kGroups = 48;  ///< where not all are looked at
  static constexpr int64_t kBatches = 2 * kGroups;
  static constexpr int64_t kFirst = 1;  ///< groups before windows are chosen

  enum class Kind : uint8_t { Groups, SmallGroups, OfWindow };
  struct Batch {
    Kind kind;
    std::vector<std::pair<int64_t, int64_t>> runs;  ///< begin, end
    int window = 0;                                 ///< OfWindow
    int64_t elements() const {
      int64_t sum = 0;
      for (const auto& [begin, end] : runs) sum += end - begin;
      return sum;
    }
  };

  explicit ChosenElements(int64_t elements);
  /// Few elements: all of them are in some batch.
  bool all() const { return groups_ <= kBatches; }
  int64_t batches() const { return all() ? groups_ : kBatches; }
  /// A group, or short runs of a window. Where not all are looked at, the first kFirst are groups.
  Batch operator[](int64_t k) const;
  /// `number` small groups from the k-th on.
  Batch smallGroups(int64_t k, int64_t number) const;

  /// `elements` of a window; before any of them is asked for.
  void chooseWindows(codegen::Streams streams, int64_t elements);
  int64_t ofWindow() const { return streams_ * ofStream_; }

 private:
  static constexpr int64_t kNeighbours = codegen::kNeighbours;
  static constexpr int64_t kRun = 8, kRuns = kNeighbours / kRun;  ///< of a window

  Batch group(int64_t number) const;
  Batch inWindow(int64_t number) const;
  std::pair<int64_t, int64_t> neighbours(int64_t group, int64_t size) const;

  int64_t n_, groups_;
  int64_t rounds_ = 1;                        ///< in one of which a window is
  int64_t streams_ = 1, ofStream_ = 0;        ///< of a window, and elements of it in each
  std::array<std::vector<int64_t>, 2> runs_;  ///< by window: numbers of those that are looked at
};

}  // namespace kelpie::runtime

// Which elements of a launch a sample looks at (sample_thunks.cpp).
//
// Groups of 256 neighbours tell where a launch loads, and small groups of 32, which go in step, what elements
// do. Both are spread over the launch so that any first few are spread, too: how many there will be is known
// when the time is over. Elements of a window tell whether a place is visited again soon (visited_array.h).
//
// Where it is known what a multiprocessor works on at a time, groups come so many together (core_cache.h):
// tiles of its blocks, or the tiles of the streams of its warps, one after the other for a few steps.
//
// A window is what a launch works on while a cache remembers: neighbours in the midst of it, or in each of so
// many streams (codegen/streams.h), in the order in which the launch comes to them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/streams.h"
#include "codegen/thunk_sample.h"

namespace kelpie::runtime {

class ChosenElements {
 public:
  static constexpr int64_t kInStep = 32;  ///< elements of a small group
  static constexpr int64_t kGroups = 48;  ///< where not all are looked at

  enum class Kind : uint8_t { Groups, SmallGroups };
  struct Batch {
    Kind kind;
    std::vector<std::pair<int64_t, int64_t>> runs;  ///< begin, end
    double ofCore = 0;  ///< share of what a multiprocessor works on at a time; 0: they are not together
    int64_t elements() const {
      int64_t sum = 0;
      for (const auto& [begin, end] : runs) sum += end - begin;
      return sum;
    }
  };

  explicit ChosenElements(int64_t elements);
  /// Few elements: all of them are in some batch.
  bool all() const { return groups_ <= 2 * kGroups; }
  int64_t groups() const { return all() ? groups_ : kGroups; }
  /// A group.
  Batch operator[](int64_t k) const;
  /// The k-th groups that a multiprocessor works on at a time, as many as have room among so many elements.
  Batch together(codegen::Streams streams, int64_t k, int64_t room) const;
  /// `number` small groups from the k-th on.
  Batch smallGroups(int64_t k, int64_t number) const;

  static constexpr size_t kWindows = 3;
  /// Of a window (sampled_window.h): bundles of neighbouring streams, `spacing` apart, the first of which is
  /// stream `first`; no bundles: all streams. From so many elements behind the window's beginning on;
  /// elements of a run.
  struct Part {
    int64_t bundles = 0, ofBundle = 0, spacing = 0, first = 0;
    int64_t skipped = 0;
    int64_t run = codegen::kNeighbours;
    int64_t streams() const { return bundles * ofBundle; }
  };
  /// The k-th run of a part of a window: a few neighbours of one of its streams, each of which has its turn.
  /// None: the streams end there.
  std::optional<std::pair<int64_t, int64_t>> inWindow(codegen::Streams streams, size_t window,
                                                      const Part& part, int64_t k) const;

 private:
  static constexpr int64_t kNeighbours = codegen::kNeighbours;

  std::pair<int64_t, int64_t> neighbours(int64_t group, int64_t size) const;

  int64_t n_, groups_;
};

}  // namespace kelpie::runtime

// What a sample has seen of the thunks of one binding, and what that says of all its elements
// (codegen/thunk_sample.h). sample_thunks.cpp evaluates them.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/interp/chosen_elements.h"
#include "runtime/interp/core_cache.h"
#include "runtime/interp/kernel_evaluator.h"
#include "runtime/interp/lock_step.h"
#include "runtime/interp/visited_array.h"

namespace kelpie::runtime {

/// What the elements of a batch did, by their place in it.
struct ElementsDone {
  std::vector<uint64_t> entered;  ///< blocks of the eager thunks, then of the late ones, for each place
  /// Loads (SampleTotals::addLoad) and positions; none: there are too many.
  std::vector<std::optional<std::vector<std::pair<uint32_t, int64_t>>>> positions;
  std::array<std::vector<LockStep::Path>, 2> paths;  ///< through the eager thunks and through the late ones
};

class SampleTotals {
 public:
  static constexpr size_t kMostSteps = 1 << 18;  ///< of a path; it is of no use from then on

  /// Of `n` elements.
  SampleTotals(const lcu::Soac& soac, const KernelCode::Binding& code, int64_t n);

  // Loads at computed positions, in the order of the sample; `known`: whether it tells where.
  void addLoad(lcu::VarId array, double bytes, int64_t width, bool inOrder, bool known);
  /// What a Permute writes.
  void addWrites(double bytes, int64_t width);
  size_t loads() const { return loads_.size(); }
  /// Whether there are any of which it tells where they load or write.
  bool tellsWhere() const { return tellsWhere_; }
  /// Bytes that an element loads in order.
  void setBytesInOrder(double bytes) { bytesInOrder_ = bytes; }

  /// The batches that follow are all elements, each once: small groups before them do not count.
  void beginAll();
  bool isOfAll() const { return everything_; }
  void add(const ChosenElements::Batch& batch, const ElementsDone& done);

  int64_t elements() const { return elements_; }  ///< looked at
  int64_t inGroups() const { return grouped_; }   ///< ... in groups

  /// More elements of the window (chosen_elements.h); then where each loads, then the end of those.
  void beginInWindow(int64_t begin, int64_t end);
  void addInWindow(const std::vector<std::pair<uint32_t, int64_t>>& positions);
  void endInWindow();
  /// What follows is of the second part of the window (sampled_window.h).
  void endPart();
  /// What follows is of another window. One that is not ended tells nothing. Of so many parts, if it was not
  /// whole.
  void endWindow(double parts);
  int64_t inWindow() const { return inWindow_; }  ///< elements of the window or part at hand
  /// Bytes of different pieces that they load; those that an element of the second half adds; and those of an
  /// element in groups, as far as others of its group do not load them.
  double gatheredInWindow() const;
  double gatheredLately() const;
  double gatheredInGroups() const;

  /// Appends what it found to the sample; all zero if it was nothing.
  void appendTo(codegen::ThunkSample& sample) const;

 private:
  struct Load {
    size_t array;
    bool known = true;
    codegen::ThunkSample::Positions found = {};  ///< in groups; small ones do not tell how near others are
    double number = 0;                           ///< by weight
    /// In each batch of groups that were together: loads, and pieces that the cache did not hold.
    std::vector<std::pair<double, double>> simulated = {};
  };
  /// Number of what is known of the array.
  size_t arrayOf(lcu::VarId array, double bytes, int64_t width, bool inOrder);
  void addRun(int64_t begin, int64_t end, size_t place, const ChosenElements::Batch& batch,
              const ElementsDone& done);
  void simulate(const ChosenElements::Batch& batch, const ElementsDone& done);
  void addEntered(size_t begin, size_t end, double weight, const ElementsDone& done);
  void addFour(size_t warps);
  void addInStep(size_t first, size_t end, size_t late, double weight, const ElementsDone& done);
  size_t firstBlock(size_t late) const { return late ? eagerBlocks_ : 0; }
  size_t endBlock(size_t late) const { return late ? enteredByAll_.size() : eagerBlocks_; }

  const std::array<LockStep, 2> inStep_;  ///< of the eager thunks and of the late ones
  const int64_t n_;
  const size_t eagerBlocks_, eagerDivisions_, eagerCalls_;
  std::vector<Load> loads_;
  bool tellsWhere_ = false;
  std::vector<VisitedArray> arrays_;
  std::unordered_map<lcu::VarId, size_t> numbers_;  ///< in arrays_

  CoreCache core_{0};
  std::optional<size_t> writes_;           ///< in loads_
  std::unordered_set<int64_t> written_;    ///< places, by elements of the window at hand
  int64_t writers_ = 0;                    ///< those elements
  double seen_ = 0, pairs_ = 0, met_ = 0;  ///< of windows that are over
  double bytesInOrder_ = 0;                ///< of an element

  bool everything_ = false;                         ///< all elements, each once
  std::vector<double> enteredByAll_, inStepByAll_;  ///< by block, by weight, as far as they are spread
  std::vector<double> slowest_;                     ///< by block, of the warp that enters it most
  /// Of four warps side by side, how often the one that enters a block most does, and how often they do on
  /// average; sums over those, and of the ones at hand.
  struct Four {
    double most = 0, all = 0;
  };
  std::vector<Four> fours_, four_;
  std::vector<codegen::ThunkSample::Division> divisions_;  ///< likewise, by number
  std::vector<codegen::ThunkSample::Call> calls_;          ///< likewise
  double weight_ = 0;                                      ///< of these elements
  int64_t elements_ = 0, grouped_ = 0;                     ///< looked at in batches, of them in groups
  int64_t inWindow_ = 0;                                   ///< looked at beside those
};

}  // namespace kelpie::runtime

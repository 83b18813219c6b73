// What a sample visits of one array (sample_totals.h).
#pragma once

#include <algorithm>
#include <unordered_set>

#include "runtime/interp/repeated_draws.h"

namespace kelpie::runtime {

class VisitedArray {
 public:
  /// `bytes` of the array, `width` of an element; `inOrder`: element i loads it at i, too.
  VisitedArray(double bytes, int64_t width, bool inOrder)
      : bytes_(bytes),
        width_(width),
        loadedInOrder_(inOrder),
        everywhere_(bytes / 64, 1),
        inWindow_(bytes / 64, 2) {}

  /// Before the positions of a run, which are added load by load.
  void beginRun(int64_t begin, int64_t end) {
    sectors_.clear();
    granules_.clear();
    blocks_.clear();
    for (int64_t i = begin; i < end && loadedInOrder_; ++i) insert(i);
    inOrder_ = static_cast<double>(granules_.size());
  }
  void insert(int64_t position) {
    if (sectors_.insert(position * width_ / 32).second && granules_.insert(position * width_ / 64).second)
      blocks_.insert(position * width_ / 1024);
  }
  size_t sectors() const { return sectors_.size(); }
  size_t granules() const { return granules_.size(); }
  size_t blocks() const { return blocks_.size(); }
  void endGroup() {
    everywhere_.add(granules_);
    gathered_ += static_cast<double>(granules_.size()) - inOrder_;
  }
  void endRunOf(int window) { inWindow_.add(granules_, static_cast<size_t>(window)); }

  double bytes() const { return bytes_; }
  /// Of the groups, in pieces of 64.
  double gatheredBytes() const { return 64 * gathered_; }

  // `all`: the groups are all there are.

  /// Share of the granules gathered that were not visited shortly before; `looked` elements in groups,
  /// `probed` of the `inWindows` that are in the windows.
  double fresh(bool all, double looked, double probed, double inWindows) const {
    if (gathered_ == 0) return 1;
    if (all) return std::min(1.0, everywhere_.distinct() / everywhere_.number());
    if (probed == 0) return 1;
    const double distinct = inWindow_.among(inWindows / probed);
    const double inOrder = (everywhere_.number() - gathered_) / looked * inWindows;
    return std::clamp((distinct - inOrder) / (gathered_ / looked * inWindows), 0.0, 1.0);
  }
  /// Bytes.
  double visited(bool all) const {
    return std::min(bytes_, 64 * (all ? everywhere_.distinct() : everywhere_.all()));
  }

 private:
  double bytes_;
  int64_t width_;
  bool loadedInOrder_;
  std::unordered_set<int64_t> sectors_, granules_, blocks_;  ///< of the run at hand
  double inOrder_ = 0;  ///< granules of the run at hand that are loaded in order
  RepeatedDraws everywhere_, inWindow_;
  double gathered_ = 0;
};

}  // namespace kelpie::runtime

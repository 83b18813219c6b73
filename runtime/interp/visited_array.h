// What a sample visits of one array (sample_totals.h).
//
// Groups of neighbours tell how near each other the places are that a warp visits at about the same time. A
// window, all elements of which are evaluated in the order in which the launch comes to them, tells what is
// visited again: the last elements of the window find what a cache holds that remembers as much as the
// window visits, and find it as often as those behind the window will (Denning, "The working set model for
// program behavior", 1968: the misses of such a cache are the growth of the working set).
//
// Of a window that is too long two parts are looked at (sampled_window.h). If it has k of them, and the first
// one has visited a share f of what the second visits for the first time, then none of the others has visited
// a share (1 - f)^(k - 1) of it: f is 0 where each part has places of its own. (Two samples tell the size of
// a population by how much they have in common: capture and recapture.)
#pragma once

#include <algorithm>
#include <bitset>
#include <cmath>
#include <memory>
#include <unordered_set>
#include <vector>

namespace kelpie::runtime {

/// Numbers that are not negative.
class PieceSet {
 public:
  /// Whether it was not there.
  bool insert(int64_t piece) {
    const auto page = static_cast<size_t>(piece) / kPage, place = static_cast<size_t>(piece) % kPage;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<std::bitset<kPage>>();
    const bool isNew = !pages_[page]->test(place);
    pages_[page]->set(place);
    size_ += isNew;
    return isNew;
  }
  bool contains(int64_t piece) const {
    const auto page = static_cast<size_t>(piece) / kPage;
    return page < pages_.size() && pages_[page] && pages_[page]->test(static_cast<size_t>(piece) % kPage);
  }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kPage = 4096;
  std::vector<std::unique_ptr<std::bitset<kPage>>> pages_;
  size_t size_ = 0;
};

class VisitedArray {
 public:
  /// `bytes` of the array, `width` of an element; `inOrder`: element i loads it at i, too.
  VisitedArray(double bytes, int64_t width, bool inOrder)
      : bytes_(bytes), width_(width), loadedInOrder_(inOrder) {}

  /// Before the positions of a group, which are added load by load.
  void beginGroup(int64_t begin, int64_t end) {
    sectors_.clear();
    granules_.clear();
    blocks_.clear();
    for (int64_t i = begin; i < end && loadedInOrder_; ++i) insert(i);
    inOrder_ = static_cast<double>(granules_.size());
  }
  void insert(int64_t position) {
    if (sectors_.insert(position * width_ / 32).second && granules_.insert(granuleOf(position)).second)
      blocks_.insert(position * width_ / 1024);
  }
  size_t sectors() const { return sectors_.size(); }
  size_t granules() const { return granules_.size(); }
  size_t blocks() const { return blocks_.size(); }
  /// `all`: the groups are all there are.
  void endGroup(bool all) {
    gathered_ += static_cast<double>(granules_.size()) - inOrder_;
    if (!all) return;
    number_ += static_cast<double>(granules_.size());
    for (const int64_t granule : granules_)
      if (granule >= 0) visited_.insert(granule);
  }

  /// The next elements of the window; then what they gather, then the end of that. Launches that are about to
  /// fail may have positions before the array.
  void beginInWindow(int64_t begin, int64_t end) {
    const int64_t step = std::max<int64_t>(1, kGranule / width_);
    for (int64_t i = begin; i < end && loadedInOrder_; i += step) visited_.insert(granuleOf(i));
    if (loadedInOrder_ && begin < end) visited_.insert(granuleOf(end - 1));
    reached_ += static_cast<double>(end - begin);
  }
  void insertInWindow(int64_t position) {
    if (position < 0 || !visited_.insert(granuleOf(position))) return;
    ++found_;
    met_ += firstVisited_.contains(granuleOf(position)) ? 1 : 0;
  }
  void endInWindow() {
    growth_.push_back({reached_, gathered(), static_cast<double>(visited_.size()), found_, met_});
  }
  /// What follows is of the second part of the window.
  void endPart() {
    firstGrowth_ = std::move(growth_);
    firstVisited_ = std::move(visited_);
    beginPart();
  }
  /// What follows is of another window, which knows nothing of this. Of so many parts, if it was not whole.
  void endWindow(double parts) {
    if (growth_.empty()) growth_ = std::move(firstGrowth_);
    if (!growth_.empty()) windows_.push_back(parts > 1 ? whole(parts) : std::move(growth_));
    firstGrowth_.clear();
    firstVisited_ = {};
    beginPart();
  }

  double bytes() const { return bytes_; }
  int64_t width() const { return width_; }
  bool loadedInOrder() const { return loadedInOrder_; }
  /// Bytes that the window visits beyond what is loaded in order.
  double gatheredInWindow() const { return kGranule * gathered(); }
  /// ... by an element of its second half.
  double gatheredLately() const {
    if (growth_.empty()) return 0;
    const Growth half = halfOf(growth_);
    return kGranule * (growth_.back().gathered - half.gathered) / (growth_.back().elements - half.elements);
  }
  /// The same by `looked` elements in groups, each group by itself.
  double gatheredInGroups() const { return kGranule * gathered_; }

  // Of all `n` elements, where groups and window are some of them, or (`all`) the groups are all.

  /// Share of the granules gathered that were not visited shortly before; `looked` elements in groups.
  double fresh(bool all, double looked, double n) const {
    if (gathered_ == 0) return 1;
    if (all) return std::min(1.0, static_cast<double>(visited_.size()) / number_);
    if (windows_.empty()) return 1;
    return std::clamp(grown(&Growth::gathered, n) / (gathered_ / looked * n), 0.0, 1.0);
  }
  /// Bytes.
  double visited(bool all, double looked, double n) const {
    double granules = gathered_ / looked * n;
    if (all) granules = static_cast<double>(visited_.size());
    if (!all && !windows_.empty()) granules = grown(&Growth::visited, n);
    return std::min(bytes_, kGranule * granules);
  }

 private:
  static constexpr int64_t kGranule = 64;
  int64_t granuleOf(int64_t position) const { return position * width_ / kGranule; }
  /// Granules of the window beyond those of its elements, each of which is loaded once in any case: if not
  /// when its element comes, then by one that gathers it before (the next row of a stencil).
  double gathered() const {
    const double inOrder = loadedInOrder_ ? reached_ * static_cast<double>(width_) / kGranule : 0;
    return std::max(0.0, static_cast<double>(visited_.size()) - inOrder);
  }

  /// Up to some element of the window, or of a part of it.
  struct Growth {
    double elements;
    double gathered, visited;  ///< different granules: beyond those in order, and of all
    double found, met;         ///< that were gathered first; of these, what the part before has visited
  };
  /// What is known of the first half.
  static Growth halfOf(const std::vector<Growth>& growth) {
    Growth before{0, 0, 0, 0, 0};
    for (const Growth& point : growth)
      if (point.elements <= kSettled * growth.back().elements) before = point;
    return before;
  }
  /// Growth of the window, by that of a part.
  std::vector<Growth> whole(double parts) const {
    const Growth half = halfOf(growth_), last = growth_.back();
    const double apart = last.found > 0 ? 1 - last.met / last.found : 1;
    std::vector<Growth> window;
    Growth sum{0, 0, 0, 0, 0};
    const auto add = [&](const Growth& before, const Growth& point, double share) {
      const double gathered = point.gathered - before.gathered;
      const double inOrder = point.visited - before.visited - gathered;
      sum.elements += parts * (point.elements - before.elements);
      sum.gathered += share * parts * gathered;
      sum.visited += parts * (inOrder + share * gathered);
      window.push_back(sum);
    };
    add(sum, half, std::pow(apart, (parts - 1) / 2));
    add(half, last, std::pow(apart, parts - 1));
    return window;
  }
  void beginPart() {
    growth_.clear();
    visited_ = {};
    reached_ = found_ = met_ = 0;
  }
  /// How many they are after n elements: as many as in a window, and as at its end for each behind it. Of all
  /// windows, which differ, on average.
  double grown(double Growth::*number, double n) const {
    double sum = 0;
    for (const std::vector<Growth>& window : windows_) {
      const Growth& last = window.back();
      const Growth before = halfOf(window);
      const double rate = (last.*number - before.*number) / (last.elements - before.elements);
      sum += last.*number + std::max(0.0, n - last.elements) * rate;
    }
    return sum / static_cast<double>(windows_.size());
  }
  static constexpr double kSettled = 0.5;  ///< of a window: the rest is what all behind it are like

  double bytes_;
  int64_t width_;
  bool loadedInOrder_;
  std::unordered_set<int64_t> sectors_, granules_, blocks_;  ///< of the group at hand
  double inOrder_ = 0;               ///< granules of the group at hand that are loaded in order
  double gathered_ = 0;              ///< granules of the groups that are not
  double number_ = 0;                ///< granules of the groups, each as often as a group visits it
  PieceSet visited_;                 ///< granules of the window or part, or of all groups
  double reached_ = 0;               ///< elements of the window or part at hand
  double found_ = 0, met_ = 0;       ///< likewise, as in Growth
  std::vector<Growth> growth_;       ///< after some runs of it, each time
  std::vector<Growth> firstGrowth_;  ///< of the first part
  PieceSet firstVisited_;
  std::vector<std::vector<Growth>> windows_;  ///< that are over
};

}  // namespace kelpie::runtime

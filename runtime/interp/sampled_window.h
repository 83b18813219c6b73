// Which elements of windows a sample looks at, one run after the other (chosen_elements.h).
//
// A *window* is what a launch works on while a cache remembers. Where there is time, all of its elements are
// looked at, and then those of others. Where there is not, two *parts* of the first: a window consists of
// so many parts, each of which would look like these. What a part visits for the first time another one may
// have visited; how much of what the second part finds the first one has visited tells how likely that is,
// for any two (visited_array.h).
//
// If the launch works on streams, a part has the elements of the window that some of them have, or, rather
// than that of few, of the window's beginning. They come in bundles of neighbours: what these visit again
// they visit soon, and what all streams visit, or those of a row, both parts do. Else a part is so many
// neighbours, the first ones and those half a window behind them.
//
// Example: 3168 streams whose window has 5.5 * 10^6 elements, time for 4 * 10^5: 114 streams, four bundles of
// 28, 792 apart, and the same between them; the window has 28 parts.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/interp/chosen_elements.h"

namespace kelpie::runtime {

class SampledWindow {
 public:
  /// Of a launch of `elements` that loads and stores so many bytes in order for each.
  SampledWindow(int64_t elements, codegen::Streams streams, double bytesOfElement)
      : n_(elements), streams_(streams), bytes_(bytesOfElement) {}

  bool hasBegun() const { return begun_; }
  bool isDone() const { return window_ == ChosenElements::kWindows; }
  /// There is time for so many elements; one gathers so many bytes, as far as its neighbours do not.
  void begin(double affordable, double gathered) {
    begun_ = true;
    const double least = codegen::kRemembered / (bytes_ + gathered);
    double needed = std::min(kLonger * least, static_cast<double>(n_) / 2);
    if (bytes_ > 0) needed = std::min(needed, codegen::kRemembered / bytes_);
    if (affordable > needed) return;
    split_ = true;
    most_ = static_cast<int64_t>(affordable / 2);
    if (streams_.number < 2) return;
    part_.run = kShortRun;
    // Enough streams to meet the neighbours that visit the same, and enough turns of each to meet it again.
    const auto number = static_cast<double>(streams_.number);
    const auto most = static_cast<double>(most_);
    const double whole = most / std::max(needed / number, double{codegen::kNeighbours});
    const double shortened = std::min(kNeighbourhood, most / (kLeastTurns * kShortRun));
    const auto streams = static_cast<int64_t>(std::clamp(std::max(whole, shortened), 1.0, number / 2));
    part_.bundles = std::clamp<int64_t>(streams / kLeastOfBundle, 1, kMostBundles);
    part_.ofBundle = streams / part_.bundles;
    part_.spacing = streams_.number / part_.bundles;
    atOnce_ = number / static_cast<double>(part_.streams());
  }

  /// The next run; none: the window ends there.
  std::optional<std::pair<int64_t, int64_t>> next(const ChosenElements& chosen) {
    const auto run = chosen.inWindow(streams_, window_, part_, runs_);
    if (run) ++runs_;
    return run;
  }
  /// Whether the elements that were looked at are the window, or the part at hand; they gather so many
  /// bytes.
  bool isOver(int64_t looked, double gathered) const {
    return (gathered + bytes_ * static_cast<double>(looked)) * atOnce_ > codegen::kRemembered ||
           (most_ > 0 && looked >= most_) || (second_ && runs_ >= runsOfPart_);
  }
  bool isSplit() const { return split_; }
  enum class End : uint8_t { Nothing, FirstPart, Window };
  /// Goes on to the next part or window, when that is so or runs end; an element of the second half gathers
  /// so many bytes. What ended.
  End end(int64_t looked, double gathered) {
    if (split_ && !second_) {
      beginSecond(looked, gathered);
      return split_ ? End::FirstPart : End::Nothing;
    }
    constexpr int64_t kRoom = 6;
    const bool more = !split_ && kRoom * looked < n_;
    window_ = more ? window_ + 1 : ChosenElements::kWindows;
    runs_ = 0;
    return End::Window;
  }
  /// So many parts has the window that has ended, or that time did not suffice for.
  double parts() const { return second_ ? parts_ : 1; }
  /// Whether the first window has begun and not ended: that much of it is better than nothing.
  bool isInFirst() const { return window_ == 0 && begun_; }

 private:
  /// Or goes on, if there is no second part.
  void beginSecond(int64_t looked, double gathered) {
    parts_ = atOnce_;
    if (streams_.number > 1) {
      part_.first += part_.spacing / 2;
    } else {
      const double window =
          std::min(codegen::kRemembered / std::max(1.0, bytes_ + gathered), static_cast<double>(n_) / 2);
      parts_ = window / static_cast<double>(std::max<int64_t>(looked, 1));
      split_ = parts_ >= 2;
      part_.skipped = static_cast<int64_t>(window / 2);
    }
    most_ = 0;
    second_ = split_;
    if (!split_) return;
    runsOfPart_ = runs_;
    runs_ = 0;
  }

  /// A window is at most so many times as long as if nothing were visited twice.
  static constexpr double kLonger = 4;
  static constexpr int64_t kShortRun = 64, kLeastTurns = 4;
  static constexpr double kNeighbourhood = 64;  ///< streams
  static constexpr int64_t kLeastOfBundle = 16, kMostBundles = 4;

  const int64_t n_;
  const codegen::Streams streams_;
  const double bytes_;  ///< loaded and stored in order by an element
  bool begun_ = false;
  size_t window_ = 0;
  ChosenElements::Part part_;
  bool split_ = false, second_ = false;  ///< the window has parts; this is the second
  double atOnce_ = 1;                    ///< parts that the launch works on at the same time
  double parts_ = 1;                     ///< of the window, when the first is over
  int64_t most_ = 0;                     ///< elements of a part, 0: not limited
  int64_t runs_ = 0, runsOfPart_ = 0;
};

}  // namespace kelpie::runtime

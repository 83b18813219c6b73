// How often pieces of something were drawn, and what that tells of many more draws.
//
// Pieces differ in how often they are drawn: the root of a tree always, its leaves hardly ever. So there are
// taken to be a few classes: all pieces equally often; half of them, a quarter, and so on; and pieces that
// are hardly ever drawn again. How many pieces belong to each is what makes the counts most likely
// (expectation maximisation for a mixture of Poisson distributions, in which pieces that were not drawn are
// not seen); where counts do not tell, all are of one class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kelpie::runtime {

class RepeatedDraws {
 public:
  /// Of `pieces`, in each of some windows, which do not know of each other.
  RepeatedDraws(double pieces, size_t windows);
  void add(const std::unordered_set<int64_t>& pieces, size_t window = 0);

  double number() const { return number_; }
  /// Different pieces drawn, over all windows.
  double distinct() const;
  /// The same if there were so many times as many draws.
  double among(double factor) const;
  /// Different pieces that there are to draw, of one window.
  double all() const;

 private:
  double timesOf(size_t k) const;
  double onAverage() const;
  std::vector<double> classes() const;

  double pieces_;
  std::vector<std::unordered_map<int64_t, uint32_t>> times_;  ///< by window
  double number_ = 0;
};

}  // namespace kelpie::runtime

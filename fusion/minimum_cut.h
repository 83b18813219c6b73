// Minimum cuts in small networks whose capacities grow.
//
// In: nodes, arcs with capacities; node 0 is the source, node 1 the sink. Out: the value of a minimum cut and
// its smallest source side. Capacities may be raised afterwards: what flows already stays, so that the next
// cut costs only the difference; a state can be kept and returned to. Whole numbers, so that nothing is lost
// by rounding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kelpie::fusion {

class MinimumCut {
 public:
  static constexpr int kSource = 0, kSink = 1;
  static constexpr int64_t kInfinite = int64_t{1} << 58;  ///< an arc that no cut may have

  struct State {
    std::vector<int64_t> residual;
    int64_t flow = 0;
  };

  MinimumCut() : first_(2, -1) {}
  int addNode();
  int addArc(int from, int to, int64_t capacity);  ///< number of the arc
  void raise(int arc, int64_t by) { state_.residual[arc] += by; }
  /// Makes the arc one that no cut may have, as often as wanted.
  void open(int arc) { state_.residual[arc] = std::max(state_.residual[arc], kInfinite); }
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }
  /// Pushes flow until the cut is minimal or reaches `enough`; the value so far, which no cut is below.
  int64_t augment(int64_t enough = kInfinite);
  /// After an `augment` that was not stopped: whether the node is on the source side.
  bool onSourceSide(int node) const { return level_[node] >= 0; }

 private:
  bool findLevels();
  int64_t push(int node, int64_t most);

  struct Arc {
    int to, next;
  };
  std::vector<int> first_;  ///< arc of each node, the first of a list
  std::vector<Arc> arcs_;   ///< arc ^ 1 is the reverse
  State state_;
  std::vector<int> level_, at_;
  int64_t arcsLookedAt_ = 0;  ///< by an `augment`
};

}  // namespace kelpie::fusion

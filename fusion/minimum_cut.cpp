#include "fusion/minimum_cut.h"

#include <algorithm>
#include <tuple>

#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr int64_t kNanosecondsOfAnArc = 4, kNanosecondsOfANode = 2;
constexpr size_t kCached = 25'000;  ///< arcs: of more, few are in caches when they are read again
constexpr int64_t kNanosecondsOfAFarArc = 12;

}  // namespace

int MinimumCut::addNode() {
  first_.push_back(-1);
  return static_cast<int>(first_.size()) - 1;
}

int MinimumCut::addArc(int from, int to, int64_t capacity) {
  const int arc = static_cast<int>(arcs_.size());
  for (const auto& [tail, head, room] : {std::tuple(from, to, capacity), std::tuple(to, from, int64_t{0})}) {
    arcs_.push_back({head, first_[tail]});
    state_.residual.push_back(room);
    first_[tail] = static_cast<int>(arcs_.size()) - 1;
  }
  return arc;
}

/// Distances from the source in arcs that have room; whether the sink is reached.
bool MinimumCut::findLevels() {
  level_.assign(first_.size(), -1);
  level_[kSource] = 0;
  at_.assign(1, kSource);
  for (size_t k = 0; k < at_.size(); ++k) {
    if (level_[kSink] >= 0 && level_[at_[k]] >= level_[kSink]) break;
    for (int arc = first_[at_[k]]; arc >= 0; arc = arcs_[arc].next) {
      ++arcsLookedAt_;
      if (state_.residual[arc] <= 0 || level_[arcs_[arc].to] >= 0) continue;
      level_[arcs_[arc].to] = level_[at_[k]] + 1;
      at_.push_back(arcs_[arc].to);
    }
  }
  return level_[kSink] >= 0;
}

int64_t MinimumCut::push(int node, int64_t most) {
  if (node == kSink) return most;
  int64_t pushed = 0;
  for (int& arc = at_[node]; arc >= 0; arc = arcs_[arc].next) {
    ++arcsLookedAt_;
    if (state_.residual[arc] <= 0 || level_[arcs_[arc].to] != level_[node] + 1) continue;
    const int64_t part = push(arcs_[arc].to, std::min(most - pushed, state_.residual[arc]));
    state_.residual[arc] -= part;
    state_.residual[arc ^ 1] += part;
    pushed += part;
    if (pushed == most) break;
  }
  return pushed;
}

int64_t MinimumCut::augment(int64_t enough) {
  arcsLookedAt_ = 0;
  int64_t nodes = static_cast<int64_t>(first_.size());
  while (state_.flow < enough && findLevels()) {
    at_ = first_;
    state_.flow += push(kSource, kInfinite);
    nodes += 2 * static_cast<int64_t>(first_.size());
  }
  const int64_t arc = arcs_.size() > kCached ? kNanosecondsOfAFarArc : kNanosecondsOfAnArc;
  WorkTime::spend(arc * arcsLookedAt_ + kNanosecondsOfANode * nodes);
  return state_.flow;
}

}  // namespace kelpie::fusion

// The exact search behind solve_ilp.h for one component: branch and price over clusters.
//
// In: a problem whose pairs span one component, a legal incumbent, a lower bound, a time limit. It can go on
// later from where it was, with what others have found since. Out: the best clustering found, never worse
// than the incumbent, and a bound no legal clustering is below.
//
// The relaxation of the program over all legal clusters (cluster_relaxation.h) gives the bound. Pairs that
// every better partition has in one cluster are merged, those that none has are kept apart. The clusters that
// may be in a better partition are, when they are few, enumerated, and the program over them is solved whole.
// Otherwise the search branches on two nodes: merged into one, or kept apart; either way the problem gets
// smaller or more constrained, and everything starts anew on it. The branch with the least bound comes first.
#pragma once

#include <memory>

#include "fusion/partition.h"

namespace kelpie::fusion {

struct ClusterSearchResult {
  Assignment cluster;
  double bound = 0;
  int columns = 0, rows = 0, cuts = 0;  ///< the largest program's columns and rows; cuts of all
};

class ClusterSearch {
 public:
  /// The problem must live as long.
  ClusterSearch(const PartitionProblem& problem, const Assignment& incumbent);
  ~ClusterSearch();

  /// `fewest`: no partition better than the incumbent has fewer clusters.
  const ClusterSearchResult& run(const Assignment& incumbent, double lower, int fewest, double seconds);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kelpie::fusion

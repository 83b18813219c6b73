// The exact solver of one component: what bounds and improves a clustering, in turns.
//
// What proves the best clusterings of one problem in a second makes no progress on another: few large
// clusters are found as stages (solve_stages.h), many small ones as whole clusters (cluster_search.h), and
// which of the two it is shows only when it is tried. So each has a short turn first, with annealing
// (anneal.h) between them, and a long one afterwards; whatever one of them finds or proves is there for the
// next. Of few nodes all partitions are looked through before (counted_search.h).
//
// In: a problem and a legal clustering of it. Out: the best one found and a bound, better with each call.
#pragma once

#include <memory>

#include "fusion/cluster_search.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

class PartSolver {
 public:
  /// No legal clustering of the problem costs less than `lower`. With `shortcut` off only whole clusters are
  /// tried, as if nothing were known.
  PartSolver(PartitionProblem problem, const Assignment& start, double lower, bool shortcut);

  /// For so long, or until it is done. Later runs go on from where the one before was.
  void run(double seconds);

  /// The best is proven, or nothing more can be found out.
  bool done() const { return proven() && (shortcut_ || search_); }
  const Assignment& cluster() const { return cluster_; }
  double cost() const { return cost_; }
  double bound() const { return bound_; }
  int columns() const { return columns_; }  ///< of all integer programs so far; rows and cuts alike
  int rows() const { return rows_; }
  int cuts() const { return cuts_; }

 private:
  bool proven() const { return cost_ - bound_ <= negligible(cost_, problem_.nodes); }
  void offer(const Assignment& cluster, double bound);
  void allPartitions();
  void stages(double seconds);
  void annealed(double seconds);
  void wholeClusters(double seconds);
  int clusters() const;

  const PartitionProblem problem_;
  const PairTable pairs_;
  const bool shortcut_;
  Assignment cluster_;
  double cost_, bound_;
  int fewest_ = 0;  ///< whatever is better has so many clusters
  std::unique_ptr<ClusterSearch> search_;
  bool clustersPromise_ = false;  ///< their first turn raised the bound
  double stagesTook_ = 0;         ///< their longest turn, which did not prove anything
  int columns_ = 0, rows_ = 0, cuts_ = 0;
};

}  // namespace kelpie::fusion

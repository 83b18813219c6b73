// The integer program of one clustering problem over whole clusters, as a GLPK problem.
//
// One column for each cluster known, 1 when the partition has it. One row for each node: it is in exactly one
// of them. One row for their number: at least as many as the budget asks for, or as are known to be needed.
// What a cluster costs is exact and belongs to its column, so only the order between clusters is left to
// further rows: order cuts. Clusters come from column generation (cluster_relaxation.h).
//
// A dual is one value a row: the price of a node, of a cluster, then of the cuts (at most 0).
#pragma once

#include <glpk.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "fusion/cluster_pricing.h"
#include "fusion/deadline.h"
#include "fusion/order_cuts.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

class ClusterProgram {
 public:
  /// Knows the clusters of one node. `fewest`: no partition that is wanted has fewer clusters.
  ClusterProgram(const PartitionProblem& problem, const ClusterPricing& pricing, int fewest = 0);

  /// False if it is there already. Members ascend.
  bool add(const std::vector<int>& members);
  void addCut(const OrderCut& cut);
  void needAtLeast(int clusters);
  const std::vector<std::vector<int>>& clusters() const { return clusters_; }
  int rows() const { return glp_get_num_rows(lp_.get()); }
  int cuts() const { return static_cast<int>(cuts_.size()); }

  /// Solves the relaxation over the columns known; nothing when the time did not suffice.
  std::optional<double> relax(const Deadline& deadline);

  // ---- after relax ----

  std::vector<double> duals() const;
  std::vector<ClusterShare> shares() const;  ///< the clusters of the solution
  /// The partition, if every column is 0 or 1.
  std::optional<Assignment> partition() const;
  /// Cuts that hold the relaxation.
  std::vector<OrderCut> tightCuts() const;
  /// Forgets cuts that neither hold the relaxation nor have a price in `duals`, and their duals.
  void dropLooseCuts(std::vector<double>& duals);

  /// Forgets clusters that the solution does not have and that cost more than `limit` at its duals.
  void dropClusters(double limit);

  // ---- of any duals ----

  ClusterPrices prices(const std::vector<double>& duals) const;
  /// What they are worth without any cluster; see cluster_relaxation.h.
  double worth(const std::vector<double>& duals) const;
  double reducedCost(int column, const ClusterPrices& prices) const;

  struct Whole {
    std::optional<Assignment> cluster;  ///< legal, but for what the cuts do not see
    double bound = -1e300;              ///< no partition into these columns that obeys the cuts costs less
  };
  /// Solves the integer program over these columns, adding order cuts that solutions break, until a partition
  /// below `below` is not possible, or for `mostPrograms` relaxations solved on the way.
  Whole solveWhole(const std::vector<int>& columns, const OrderCuts& orderCuts, double below,
                   int mostPrograms, const Deadline& deadline) const;

 private:
  const PartitionProblem& problem_;
  const ClusterPricing& pricing_;
  int fewest_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  std::vector<std::vector<int>> clusters_;  ///< by column
  std::vector<double> costs_;               ///< by column
  std::set<std::vector<int>> known_;
  std::vector<OrderCut> cuts_;
  bool rowsChanged_ = false;  ///< since the last solution
};

}  // namespace kelpie::fusion

// A legal partition under change: clusters are merged, and what merging two of them saves, and whether it is
// legal, is known without looking at the others.
//
// Clusters are numbered by their first nodes; one that is merged into another is empty from then on.
// `problem` and `pairs` are kept by reference.
#pragma once

#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

class Clustering {
 public:
  Clustering(const PartitionProblem& problem, const PairTable& pairs, const Assignment& start);

  const Assignment& cluster() const { return cluster_; }
  const std::vector<int>& members(int c) const { return members_[c]; }
  int clusterCount() const { return static_cast<int>(members_.size()); }  ///< empty ones among them

  /// What merging two clusters saves: a launch, loads that both make, loads and stores of what passes
  /// between.
  double mergeSaving(int a, int b) const;
  /// Whether no pair of nodes keeps the clusters apart for good.
  bool mayShare(int a, int b) const { return share_.get(a, b); }
  bool mayMerge(int a, int b) const;
  /// Cluster b into a.
  void merge(int a, int b);

 private:
  /// How many readers of an array each cluster has.
  class Readers {
   public:
    explicit Readers(const std::vector<int>& readers);  ///< each in its own cluster
    int all() const { return all_; }
    int in(int c) const;
    void move(int from, int to);

   private:
    struct Count {
      int cluster, readers;
    };
    int all_;
    std::vector<Count> counts_;  ///< by cluster
  };
  bool pathThroughOthers(int a, int b) const;

  const PartitionProblem& problem_;
  Assignment cluster_;
  BitMatrix share_;  ///< by cluster
  std::vector<std::vector<int>> members_;
  std::vector<double> launch_;              ///< by cluster
  std::vector<std::vector<int>> accesses_;  ///< by cluster, those that it makes or whose array it produces
  std::vector<std::vector<int>> stores_;    ///< by cluster, those of arrays that it produces or reads
  std::vector<Readers> accessReaders_, storeReaders_;
  std::vector<std::vector<int>> out_;                            ///< by node
  std::vector<std::vector<const Requirement*>> requirementsOf_;  ///< by node
};

}  // namespace kelpie::fusion

// The clustering problem that fusion solves, apart from any program: which nodes of a region share a kernel.
//
// In: nodes, edges without a cycle, pairs that may never share, requirements ("if a and b
// share a cluster, c is in it too"), a budget, and what storing, loading and launching cost.
// Out: a `Partition`. Legal means: no forbidden pair and no blocking edge inside a cluster, every requirement
// and the budget hold, and the clusters can be ordered (the graph between clusters has no cycle).
//
// The cost is exactly accounted and a sum over clusters: a launch; every array once for each cluster that
// loads it; a store for each array that is needed outside the cluster that produces it. Since every part of
// it shrinks or stays when two clusters merge, merging never raises the cost: only legality keeps clusters
// apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kelpie::fusion {

/// A square table of truth values with fast row operations.
class BitMatrix {
 public:
  explicit BitMatrix(int size = 0) : words_((size + 63) / 64), bits_(static_cast<size_t>(size) * words_) {}
  bool get(int row, int column) const { return (word(row, column) >> (column & 63)) & 1; }
  void set(int row, int column) { bits_[at(row, column)] |= uint64_t{1} << (column & 63); }
  void clear(int row, int column) { bits_[at(row, column)] &= ~(uint64_t{1} << (column & 63)); }
  void uniteRow(int row, int other);  ///< row |= other
  /// Whether some column is set here in `row` and in `m` in row `other`.
  bool intersects(int row, const BitMatrix& m, int other) const;
  /// First column set here in `row`, in `m` in row `other`, and in `either` in one of the two rows; -1 if
  /// none.
  int firstCommon(int row, const BitMatrix& m, int other, const BitMatrix& either) const;
  /// Whether every column set in row `inner` is set in row `outer`, columns `inner` and `outer` aside.
  bool rowContains(int outer, int inner) const;

 private:
  size_t at(int row, int column) const { return static_cast<size_t>(row) * words_ + (column >> 6); }
  uint64_t word(int row, int column) const { return bits_[at(row, column)]; }
  size_t words_;
  std::vector<uint64_t> bits_;
};

struct PartitionEdge {
  int from = 0, to = 0;
  bool fusible = false;  ///< otherwise blocking: the ends are in different clusters
};
/// If `a` and `b` share a cluster, `third` is in it as well.
struct Requirement {
  int a = 0, b = 0, third = 0;
};
/// One way of loading an array, paid once by each cluster that has a reader and not the producer.
struct Access {
  int producer = -1;  ///< -1: the array comes from outside the region
  std::vector<int> readers;
  double cost = 0;
};
/// Storing an array: paid once if it outlives the region or some reader is not with the producer.
struct Store {
  int producer = 0;
  std::vector<int> readers;
  bool outlives = false;
  double cost = 0;
};

struct PartitionProblem {
  int nodes = 0;
  std::vector<double> launch;  ///< of the cluster a node is in; equal for all nodes that can share one
  std::vector<double> weight;  ///< share of the budget each node takes
  double budget = 1e300;       ///< of one cluster; a cluster of one node is always allowed
  std::vector<PartitionEdge> edges;
  std::vector<std::pair<int, int>> forbidden;
  std::vector<Requirement> requirements;
  std::vector<Access> accesses;
  std::vector<Store> stores;
};

constexpr int kFewNodes = 24;  ///< a problem of so many may be looked through, partition by partition

/// Partitions of about this cost that differ by no more are as good as each other: rounding, where few nodes
/// have few partitions, and elsewhere one part in 10^5. (Solvers stop at one in 10^4 unless told otherwise.)
/// A search would go on for half a minute about which of a hundred cells of 8 bytes are written.
inline double negligible(double cost, int nodes) { return (nodes <= kFewNodes ? 1e-9 : 1e-5) * (1 + cost); }

/// cluster[v] is the number of v's cluster; clusters are numbered by their first nodes.
using Assignment = std::vector<int>;

struct Partition {
  Assignment cluster;
  double cost = 0;
  double bound = 0;                     ///< no legal partition costs less
  double seconds = 0;                   ///< to find it, by the clock
  double counted = 0;                   ///< the same as searches count it (work_time.h)
  int contracted = 0;                   ///< nodes merged by proof, before any search
  int components = 0;                   ///< parts solved apart from each other
  int columns = 0, rows = 0, cuts = 0;  ///< of the integer programs; 0 when none was needed
  double gap() const { return cost > 0 ? (cost - bound) / cost : 0; }
  bool proven() const { return cost - bound <= negligible(cost, static_cast<int>(cluster.size())); }
};

/// Why two nodes can never share a cluster.
struct PairVerdict {
  enum class Kind : uint8_t {
    Possible,
    Forbidden,     ///< listed in `forbidden`
    Budget,        ///< the two alone are over the budget
    BlockingEdge,  ///< a direct blocking edge
    BlockingPath,  ///< a path with the blocking edge from -> to on it
    PathOutside,   ///< a path through node `from`, which cannot share with one of them
    Requirement,   ///< they may share only with node `from`, which cannot share with one of them
  };
  Kind kind = Kind::Possible;
  int from = -1, to = -1;
};

/// Everything that follows from a problem about pairs; computed once and used by every solver.
class PairTable {
 public:
  explicit PairTable(const PartitionProblem& problem);
  bool canShare(int a, int b) const { return share_.get(a, b); }
  bool reaches(int from, int to) const { return reach_.get(from, to); }  ///< by a path of one edge or more
  const BitMatrix& shareMatrix() const { return share_; }
  int rank(int node) const { return rank_[node]; }  ///< place in an order that respects the edges
  PairVerdict verdict(int a, int b) const;

 private:
  void forbid(int a, int b, PairVerdict verdict);
  void forbidAlongBlockingPaths(const std::vector<std::vector<const PartitionEdge*>>& out,
                                const std::vector<int>& order);
  void forbidForLackOfOthers(const PartitionProblem& problem);
  int nodes_;
  std::vector<int> rank_;
  BitMatrix share_, reach_;
  std::vector<std::pair<uint64_t, PairVerdict>> verdicts_;  // sorted by key when construction is over
};

/// Renumbers clusters by their first nodes.
Assignment normalised(const Assignment& cluster);
Assignment separate(int nodes);  ///< every node its own cluster

double costOf(const PartitionProblem& problem, const Assignment& cluster);
/// Nothing when legal, otherwise which rule is broken.
std::optional<std::string> illegal(const PartitionProblem& problem, const Assignment& cluster);
/// The clusters in an order that respects the edges: among those ready, the one with the smallest node first,
/// but clusters of `late` nodes only when no other is ready. Nothing if they cannot be ordered.
std::optional<std::vector<int>> clusterOrder(const PartitionProblem& problem, const Assignment& cluster,
                                             const std::vector<bool>& late = {});

}  // namespace kelpie::fusion

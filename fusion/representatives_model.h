// The integer program of one clustering problem over representatives, as a GLPK problem.
//
// z[r,v] = 1 when v is in the cluster whose first node is r, for v = r and every later v that may share with
// r. Each node is in one cluster; members of a cluster may share in pairs (cliques of the pairs that may
// not), stay within the budget and obey every row below. Loads and stores are columns that the rows push up
// to 1 when the clusters make them necessary, so that the objective is the cost of the partition.
//
// Without `complete()` the rows about requirements and the order of the clusters are missing, and some of
// the pairs that may not share: the search finds those it needs. With it the program is whole, for any
// solver.
#pragma once

#include <glpk.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

class RepresentativesModel {
 public:
  using Row = std::vector<std::pair<int, double>>;  ///< column, coefficient

  RepresentativesModel(const PartitionProblem& problem, const PairTable& pairs);
  glp_prob* lp() const { return lp_.get(); }
  /// Column of z[r,v]; 0 if there is none.
  int z(int representative, int v) const {
    return representative <= v ? z_[static_cast<size_t>(representative) * problem_.nodes + v] : 0;
  }
  const std::vector<int>& columnsOfZ() const { return z_; }  ///< 0 where there is none
  /// The first rows; those after them only repeat what order cuts would say.
  int rowsNeeded() const { return rowsNeeded_; }

  /// Adds `sum of row <= bound` (GLP_UP), `>=` (GLP_LO) or `=` (GLP_FX). Entries of one column add up.
  static void addRow(glp_prob* lp, int type, double bound, Row entries);
  /// z[r,·] of a set of nodes of which only one can be with r: their sum <= z[r,r].
  void addCliqueRow(glp_prob* lp, int representative, const std::vector<int>& clique) const;
  /// Grows a set of nodes that exclude each other, from those in `candidates`, in their order.
  std::vector<int> clique(std::vector<int> seed, const std::vector<int>& candidates) const;

  /// The partition that the values of the columns stand for.
  Assignment assignment(const std::function<double(int)>& value) const;
  /// The values of all columns (from 1) for a partition.
  std::vector<double> valuesOf(const Assignment& cluster) const;

  /// Adds all that the search leaves to cuts, and names for rows and columns.
  void complete();

 private:
  int addColumn(int kind, double lower, double upper, double cost);
  void addColumns();
  void addRows();
  void addConvexity();
  void addFollows(int r, int v, int other);
  void addFlow();
  void addOrder();
  void addRequirements();
  void addPairs();
  bool neverWithProducer(const Access& access) const;

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  std::vector<int> z_;
  double constant_ = 0;  ///< cost that every partition has
  int rowsNeeded_ = 0;
};

}  // namespace kelpie::fusion

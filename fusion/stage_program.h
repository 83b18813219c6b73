// The integer program of clusterings into a number of stages, as a GLPK problem; see solve_stages.h for its
// variables.
//
// Rows: a stage is behind all before it; order along edges and blocking paths; the budget in each stage; a
// load is paid in each stage that has a reader and not the producer; a store, if a reader is in a later stage
// than the producer. Requirements, and sets of nodes that exclude each other in each stage, are many, of
// which few would ever be broken: they are added where they are (stage_cuts.cpp). So are cuts, which every
// partition obeys: arrays that are stored or loaded in fractions only look as if nothing were parted
// (link_cuts.h). Twins (twins.h) come in the order of their numbers.
#pragma once

#include <glpk.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fusion/link_cuts.h"
#include "fusion/partition.h"

namespace kelpie::fusion {

/// First and last stage of each node, of `stages`.
struct StageWindows {
  std::vector<int> first, last;

  StageWindows(const PartitionProblem& problem, const PairTable& pairs, int stages);
  bool possible() const;
  /// How many stages are needed.
  int fewest() const;
};

/// Sets of nodes of which no two can share a cluster. Every pair that cannot, and that no path decides about,
/// is in one of them.
std::vector<std::vector<int>> exclusions(const PartitionProblem& problem, const PairTable& pairs);

class StageProgram {
 public:
  /// `exclusions`: see there; they must live as long, as must the others.
  StageProgram(const PartitionProblem& problem, const PairTable& pairs,
               const std::vector<std::vector<int>>& exclusions, int stages);
  StageProgram(const PartitionProblem& problem, const PairTable& pairs,
               std::vector<std::vector<int>>&& exclusions, int stages) = delete;

  /// False if some node has no stage: there is no program then.
  bool possible() const { return windows_.possible(); }
  glp_prob* lp() const { return lp_.get(); }
  int rows() const { return glp_get_num_rows(lp_.get()); }
  /// The variables that are 0 or 1 in a partition; all else follows.
  const std::vector<int>& variables() const { return variables_; }

  /// Of a value of the objective: what the partition costs.
  double cost(double objective) const { return launches_ + objective / scale_; }
  double objective(double cost) const { return (cost - launches_) * scale_; }

  /// Requirements and exclusions, to `lp`, which is this program or a copy of it, as far as its relaxation
  /// breaks them. Whether there are any.
  bool addBrokenRules(glp_prob* lp) const;
  /// The same of cuts.
  bool addBrokenCuts(glp_prob* lp) const;
  /// The values of all columns (from 1 on) that say this; nothing if it has more clusters than there are
  /// stages.
  std::optional<std::vector<double>> solution(const Assignment& cluster) const;
  /// By the values of the variables in `lp`.
  Assignment partition(glp_prob* lp, double (*value)(glp_prob*, int)) const;

 private:
  /// A sum of variables and a constant.
  struct Sum {
    std::map<int, double> terms;  ///< by column
    double constant = 0;
  };
  void addAfter(Sum& sum, int node, int k, double times) const;
  void addIn(Sum& sum, int node, int k, double times) const;
  bool mayBeIn(int node, int k) const { return windows_.first[node] <= k && k <= windows_.last[node]; }
  bool someApart(const Store& store) const;
  int column(double least, double cost, bool whole);
  static void atMost(glp_prob* lp, const Sum& sum, double most);
  void atMost(const Sum& sum, double most) { atMost(lp_.get(), sum, most); }

  void addNodes();
  void addOrder(int u, int v, bool earlier);
  void addOrder();
  void addTwins();
  void addBudgets();
  void addLoads();
  void addStores();
  void addLinks();
  static double valueOf(glp_prob* lp, const Sum& sum);
  double afterIn(glp_prob* lp, int node, int k) const;
  Sum requirement(const Requirement& r, int k) const;

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  const int stages_;
  const StageWindows windows_;
  const std::vector<std::vector<int>>& exclusions_;
  const std::vector<std::vector<int>> twins_;
  BitMatrix share_;  ///< pairs that can share a stage here
  const double launches_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  std::vector<int> after_;  ///< by node and stage: the column; 0 where it is known
  std::vector<int> variables_;
  struct Load {
    size_t access;
    int stage, column;
  };
  std::vector<Load> loads_;
  std::vector<int> stores_;  ///< columns
  /// Links that are cut alike: by what is stored, or by what is loaded.
  struct Links {
    std::vector<Sum> cut;  ///< by link
    std::unique_ptr<LinkCuts> cuts;
  };
  std::vector<Links> links_;
  double scale_ = 1;
};

}  // namespace kelpie::fusion

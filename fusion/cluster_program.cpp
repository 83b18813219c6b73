#include "fusion/cluster_program.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "fusion/counted_simplex.h"
#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr double kTiny = 1e-7;
constexpr int64_t kNanosecondsOfATerm = 150;
constexpr double kNoPartition = 1e300;  ///< the bound where there is none

bool contains(const std::vector<int>& members, int v) {
  return std::binary_search(members.begin(), members.end(), v);
}

bool isShared(const OrderCut::Star& star, const std::vector<int>& members) {
  return contains(members, star.node) &&
         std::any_of(star.others.begin(), star.others.end(), [&](int v) { return contains(members, v); });
}

double coefficientOf(const OrderCut& cut, const std::vector<int>& members) {
  double total = 0;
  for (auto [a, b] : cut.pairs) total += contains(members, a) && contains(members, b);
  for (const OrderCut::Star& star : cut.stars) total += isShared(star, members);
  if (cut.unless.first >= 0)
    total -= contains(members, cut.unless.first) && contains(members, cut.unless.second);
  return total;
}

void addColumn(glp_prob* lp, const std::vector<int>& members, double cost, const std::vector<OrderCut>& cuts,
               int nodes) {
  WorkTime::spend(kNanosecondsOfATerm * static_cast<int64_t>(members.size() + 4 * cuts.size()));
  std::vector<int> rows{0, nodes + 1};
  std::vector<double> values{0, 1};
  for (int v : members) {
    rows.push_back(v + 1);
    values.push_back(1);
  }
  for (size_t k = 0; k < cuts.size(); ++k) {
    const double value = coefficientOf(cuts[k], members);
    if (value == 0) continue;
    rows.push_back(nodes + 2 + static_cast<int>(k));
    values.push_back(value);
  }
  const int column = glp_add_cols(lp, 1);
  glp_set_col_bnds(lp, column, GLP_LO, 0, 0);
  glp_set_obj_coef(lp, column, cost);
  glp_set_mat_col(lp, column, static_cast<int>(rows.size()) - 1, rows.data(), values.data());
}

/// `members(k)` are those of column k.
template <typename Members>
void addCutRow(glp_prob* lp, const OrderCut& cut, const Members& members) {
  WorkTime::spend(kNanosecondsOfATerm * glp_get_num_cols(lp) *
                  static_cast<int64_t>(cut.pairs.size() + 2 * cut.stars.size()) / 8);
  std::vector<int> columns(1);
  std::vector<double> values(1);
  for (int k = 0; k < glp_get_num_cols(lp); ++k) {
    const double value = coefficientOf(cut, members(k));
    if (value == 0) continue;
    columns.push_back(k + 1);
    values.push_back(value);
  }
  const int row = glp_add_rows(lp, 1);
  glp_set_row_bnds(lp, row, GLP_UP, 0, cut.upper);
  glp_set_mat_row(lp, row, static_cast<int>(columns.size()) - 1, columns.data(), values.data());
}

template <typename Members>
std::vector<ClusterShare> sharesOf(glp_prob* lp, const Members& members) {
  std::vector<ClusterShare> result;
  for (int k = 0; k < glp_get_num_cols(lp); ++k) {
    const double value = glp_get_col_prim(lp, k + 1);
    if (value >= kTiny) result.push_back({members(k), value});
  }
  return result;
}

/// The rows of the nodes, and that about the number of clusters.
glp_prob* newProgram(const PartitionProblem& problem, int fewest) {
  glp_prob* lp = glp_create_prob();
  glp_set_obj_dir(lp, GLP_MIN);
  glp_add_rows(lp, problem.nodes + 1);
  for (int v = 0; v < problem.nodes; ++v) glp_set_row_bnds(lp, v + 1, GLP_FX, 1, 1);
  glp_set_row_bnds(lp, problem.nodes + 1, GLP_LO, fewest, 0);
  return lp;
}

int fewestOfBudget(const PartitionProblem& problem) {
  double weight = 0;
  for (double w : problem.weight) weight += std::min(w, problem.budget);
  return static_cast<int>(std::ceil(weight / problem.budget - kTiny));
}

}  // namespace

ClusterProgram::ClusterProgram(const PartitionProblem& problem, const ClusterPricing& pricing, int fewest)
    : problem_(problem),
      pricing_(pricing),
      fewest_(std::max(fewest, fewestOfBudget(problem))),
      lp_(newProgram(problem, fewest_), glp_delete_prob) {
  for (int v = 0; v < problem.nodes; ++v) add({v});
}

bool ClusterProgram::add(const std::vector<int>& members) {
  if (!known_.insert(members).second) return false;
  clusters_.push_back(members);
  costs_.push_back(pricing_.costOf(members));
  addColumn(lp_.get(), members, costs_.back(), cuts_, problem_.nodes);
  return true;
}

void ClusterProgram::addCut(const OrderCut& cut) {
  cuts_.push_back(cut);
  addCutRow(lp_.get(), cut, [&](int k) -> const std::vector<int>& { return clusters_[k]; });
  rowsChanged_ = true;
}

void ClusterProgram::needAtLeast(int clusters) {
  fewest_ = std::max(fewest_, clusters);
  glp_set_row_bnds(lp_.get(), problem_.nodes + 1, GLP_LO, fewest_, 0);
  rowsChanged_ = true;
}

std::optional<double> ClusterProgram::relax(const Deadline& deadline) {
  const glp_smcp simplex = silentSimplex(rowsChanged_ ? GLP_DUALP : GLP_PRIMAL);
  rowsChanged_ = false;
  if (solveSimplex(lp_.get(), simplex, deadline) != 0 || glp_get_status(lp_.get()) != GLP_OPT)
    return std::nullopt;
  return glp_get_obj_val(lp_.get());
}

std::vector<double> ClusterProgram::duals() const {
  std::vector<double> duals;
  for (int row = 1; row <= glp_get_num_rows(lp_.get()); ++row) {
    const double dual = glp_get_row_dual(lp_.get(), row);
    duals.push_back(row <= problem_.nodes       ? dual
                    : row == problem_.nodes + 1 ? std::max(0.0, dual)
                                                : std::min(0.0, dual));
  }
  return duals;
}

ClusterPrices ClusterProgram::prices(const std::vector<double>& duals) const {
  ClusterPrices prices;
  prices.node.assign(duals.begin(), duals.begin() + problem_.nodes);
  prices.cluster = duals[problem_.nodes];
  std::map<std::pair<int, int>, double> costs;
  std::map<OrderCut::Star, double> starCosts;
  for (size_t k = 0; k < cuts_.size(); ++k) {
    const double dual = duals[problem_.nodes + 1 + k];
    if (dual > -kTiny) continue;
    for (auto [a, b] : cuts_[k].pairs) costs[std::minmax(a, b)] -= dual;
    for (const OrderCut::Star& star : cuts_[k].stars) starCosts[star] -= dual;
    const auto [a, b] = cuts_[k].unless;
    if (a >= 0) costs[std::minmax(a, b)] += dual;
  }
  for (const auto& [pair, cost] : costs) {
    if (cost != 0) prices.pairs.push_back({pair.first, pair.second, cost});
  }
  for (const auto& [star, cost] : starCosts) prices.stars.push_back({star, cost});
  return prices;
}

double ClusterProgram::worth(const std::vector<double>& duals) const {
  double total = duals[problem_.nodes] * glp_get_row_lb(lp_.get(), problem_.nodes + 1);
  for (int v = 0; v < problem_.nodes; ++v) total += duals[v];
  for (size_t k = 0; k < cuts_.size(); ++k) {
    const double dual = duals[problem_.nodes + 1 + k];
    if (dual <= -kTiny) total += dual * cuts_[k].upper;
  }
  return total;
}

double ClusterProgram::reducedCost(int column, const ClusterPrices& prices) const {
  const std::vector<int>& members = clusters_[column];
  double cost = costs_[column] - prices.cluster;
  for (int v : members) cost -= prices.node[v];
  for (const ClusterPrices::Pair& p : prices.pairs) {
    if (contains(members, p.a) && contains(members, p.b)) cost += p.cost;
  }
  for (const ClusterPrices::Star& s : prices.stars) cost += isShared(s.star, members) ? s.cost : 0;
  return cost;
}

void ClusterProgram::dropLooseCuts(std::vector<double>& duals) {
  const size_t first = static_cast<size_t>(problem_.nodes) + 1;
  duals.resize(first + cuts_.size(), 0);
  std::vector<int> rows(1);
  std::vector<OrderCut> cuts;
  std::vector<double> kept(duals.begin(), duals.begin() + static_cast<std::ptrdiff_t>(first));
  for (size_t k = 0; k < cuts_.size(); ++k) {
    const int row = static_cast<int>(first + k) + 1;
    if (glp_get_row_stat(lp_.get(), row) == GLP_BS && duals[first + k] > -kTiny) {
      rows.push_back(row);
      continue;
    }
    cuts.push_back(std::move(cuts_[k]));
    kept.push_back(duals[first + k]);
  }
  if (rows.size() > 1) glp_del_rows(lp_.get(), static_cast<int>(rows.size()) - 1, rows.data());
  cuts_ = std::move(cuts);
  duals = std::move(kept);
}

void ClusterProgram::dropClusters(double limit) {
  std::vector<int> columns(1);
  size_t kept = 0;
  for (size_t k = 0; k < clusters_.size(); ++k) {
    const int column = static_cast<int>(k) + 1;
    const bool single = clusters_[k].size() == 1;  // they keep the program feasible
    if (!single && glp_get_col_stat(lp_.get(), column) != GLP_BS &&
        glp_get_col_dual(lp_.get(), column) > limit) {
      columns.push_back(column);
      known_.erase(clusters_[k]);
      continue;
    }
    if (kept != k) {
      clusters_[kept] = std::move(clusters_[k]);
      costs_[kept] = costs_[k];
    }
    ++kept;
  }
  clusters_.resize(kept);
  costs_.resize(kept);
  if (columns.size() > 1) glp_del_cols(lp_.get(), static_cast<int>(columns.size()) - 1, columns.data());
}

std::vector<OrderCut> ClusterProgram::tightCuts() const {
  std::vector<OrderCut> cuts;
  for (size_t k = 0; k < cuts_.size(); ++k) {
    if (glp_get_row_dual(lp_.get(), problem_.nodes + 2 + static_cast<int>(k)) < -kTiny)
      cuts.push_back(cuts_[k]);
  }
  return cuts;
}

std::vector<ClusterShare> ClusterProgram::shares() const {
  return sharesOf(lp_.get(), [&](int k) -> const std::vector<int>& { return clusters_[k]; });
}

std::optional<Assignment> ClusterProgram::partition() const {
  Assignment cluster(problem_.nodes, -1);
  for (int k = 0; k < static_cast<int>(clusters_.size()); ++k) {
    const double value = glp_get_col_prim(lp_.get(), k + 1);
    if (value < kTiny) continue;
    if (value < 1 - kTiny) return std::nullopt;
    for (int v : clusters_[k]) cluster[v] = k;
  }
  return normalised(cluster);
}

namespace {

/// What GLPK's search calls back with.
struct WholeSearch {
  const OrderCuts& orderCuts;
  const std::vector<std::vector<int>>& clusters;
  const std::vector<int>& columns;
  double below;
  int programsLeft;
  double bound;
  CountedTree counted;

  void at(glp_tree* tree) {
    if (const int best = glp_ios_best_node(tree); best > 0) {
      const double open = glp_ios_node_bound(tree, best);
      if (std::isfinite(open) && open < kNoPartition) bound = std::max(bound, open);
      if (bound >= below) return glp_ios_terminate(tree);
    }
    if (!counted.goesOn(tree)) return;
    if (glp_ios_reason(tree) != GLP_IROWGEN) return;
    if (--programsLeft < 0) return glp_ios_terminate(tree);
    glp_prob* lp = glp_ios_get_prob(tree);
    const auto members = [&](int k) -> const std::vector<int>& { return clusters[columns[k]]; };
    constexpr double kLeastViolation = 0.1;
    constexpr size_t kMostCuts = 30;
    std::vector<OrderCut> cuts = orderCuts.violated(sharesOf(lp, members), kLeastViolation);
    std::stable_sort(cuts.begin(), cuts.end(),
                     [](const OrderCut& a, const OrderCut& b) { return a.violation > b.violation; });
    if (cuts.size() > kMostCuts) cuts.resize(kMostCuts);
    for (const OrderCut& cut : cuts) addCutRow(lp, cut, members);
  }
};

}  // namespace

ClusterProgram::Whole ClusterProgram::solveWhole(const std::vector<int>& columns, const OrderCuts& orderCuts,
                                                 double below, int mostPrograms,
                                                 const Deadline& deadline) const {
  const std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp(newProgram(problem_, fewest_), glp_delete_prob);
  for (const OrderCut& cut : cuts_) addCutRow(lp.get(), cut, [&](int) { return std::vector<int>(); });
  for (int k : columns) {
    addColumn(lp.get(), clusters_[k], costs_[k], cuts_, problem_.nodes);
    glp_set_col_kind(lp.get(), glp_get_num_cols(lp.get()), GLP_BV);
  }
  Whole result;
  if (solveSimplex(lp.get(), silentSimplex(), deadline) != 0) return result;
  if (glp_get_status(lp.get()) != GLP_OPT) {
    if (glp_get_status(lp.get()) == GLP_NOFEAS) result.bound = kNoPartition;
    return result;
  }
  WholeSearch whole{
      orderCuts, clusters_, columns, below, mostPrograms, glp_get_obj_val(lp.get()), CountedTree(deadline)};
  glp_iocp search;
  glp_init_iocp(&search);
  search.msg_lev = GLP_MSG_OFF;
  search.tm_lim = deadline.millisecondsLeft();
  search.br_tech = GLP_BR_MFV;
  search.bt_tech = GLP_BT_BLB;
  search.cb_info = &whole;
  search.cb_func = [](glp_tree* tree, void* info) { static_cast<WholeSearch*>(info)->at(tree); };
  const int status = glp_intopt(lp.get(), &search);
  const int found = glp_mip_status(lp.get());
  if (found == GLP_OPT || found == GLP_FEAS) {
    Assignment cluster(problem_.nodes, 0);
    for (size_t k = 0; k < columns.size(); ++k) {
      if (glp_mip_col_val(lp.get(), static_cast<int>(k) + 1) < 0.5) continue;
      for (int v : clusters_[columns[k]]) cluster[v] = static_cast<int>(k);
    }
    result.cluster = normalised(cluster);
  }
  result.bound = whole.bound;
  if (status == 0 && found == GLP_OPT) result.bound = glp_mip_obj_val(lp.get());
  if (status == 0 && found == GLP_NOFEAS) result.bound = kNoPartition;
  return result;
}

}  // namespace kelpie::fusion

#include "fusion/representatives_ilp.h"

#include <glpk.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "fusion/order_cuts.h"
#include "fusion/representatives_model.h"

namespace kelpie::fusion {
namespace {

constexpr double kTolerance = 1e-6;
/// Cuts of order that are worth a row: before the search, and in it.
constexpr double kViolationBefore = 1e-3, kViolationInTree = 0.05;

using Row = RepresentativesModel::Row;

class Search {
 public:
  Search(const PartitionProblem& problem, const PairTable& pairs, const Assignment& incumbent, double lower)
      : problem_(problem),
        pairs_(pairs),
        incumbent_(incumbent),
        bound_(lower),
        orderCuts_(problem, pairs),
        model_(problem, pairs),
        lp_(model_.lp()) {}

  IlpSearch run(double seconds) {
    IlpSearch result{incumbent_, bound_, glp_get_num_cols(lp_), glp_get_num_rows(lp_), 0};
    if (seconds <= 0) return result;
    glp_term_out(GLP_OFF);
    const auto start = std::chrono::steady_clock::now();
    const auto millisecondsLeft = [&] {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      return static_cast<int>(1000 * std::max(0.001, seconds - spent.count()));
    };
    if (!relax(millisecondsLeft)) return result;
    fixHopeless();
    dropLooseRows();
    glp_iocp search;
    glp_init_iocp(&search);
    search.msg_lev = GLP_MSG_OFF;
    search.tm_lim = millisecondsLeft();
    search.br_tech = GLP_BR_DTH;
    search.bt_tech = GLP_BT_BLB;
    leastViolation_ = kViolationInTree;
    search.cb_info = this;
    search.cb_func = [](glp_tree* tree, void* self) { static_cast<Search*>(self)->step(tree); };
    const int status = glp_intopt(lp_, &search);
    const int found = glp_mip_status(lp_);
    bool legal = false;
    if (found == GLP_OPT || found == GLP_FEAS) {
      const Assignment cluster = model_.assignment([&](int column) { return glp_mip_col_val(lp_, column); });
      legal = !illegal(problem_, cluster);
      if (legal && costOf(problem_, cluster) < costOf(problem_, result.cluster)) result.cluster = cluster;
    }
    if (status == 0 && found == GLP_OPT && legal) bound_ = std::max(bound_, costOf(problem_, result.cluster));
    result.bound = std::min(bound_, costOf(problem_, result.cluster));
    result.cuts = cuts_;
    return result;
  }

 private:
  /// Solves the relaxation, with cuts, before the search. False when time was up before the first solution.
  template <typename Left>
  bool relax(const Left& millisecondsLeft) {
    constexpr int kRounds = 100;
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    glp_adv_basis(lp_, 0);
    for (int round = 0; round < kRounds; ++round) {
      simplex.tm_lim = millisecondsLeft();
      if (glp_simplex(lp_, &simplex) != 0 || glp_get_status(lp_) != GLP_OPT) return false;
      bound_ = std::max(bound_, glp_get_obj_val(lp_));
      simplex.meth = GLP_DUALP;
      const int before = cuts_;
      addCuts(lp_);
      if (cuts_ == before) return true;
    }
    return glp_simplex(lp_, &simplex) == 0 && glp_get_status(lp_) == GLP_OPT;
  }

  /// Columns that cannot change without making the relaxation dearer than the incumbent stay where they are.
  void fixHopeless() {
    const double room = costOf(problem_, incumbent_) - glp_get_obj_val(lp_);
    const double slack = kTolerance * (1 + std::abs(glp_get_obj_val(lp_)));
    for (int column : model_.columnsOfZ()) {
      if (column == 0) continue;
      const double reduced = glp_get_col_dual(lp_, column);
      const int at = glp_get_col_stat(lp_, column);
      if (at == GLP_NL && reduced > room + slack) glp_set_col_bnds(lp_, column, GLP_FX, 0, 0);
      if (at == GLP_NU && -reduced > room + slack) glp_set_col_bnds(lp_, column, GLP_FX, 1, 1);
    }
  }

  /// Rows that the cuts would find again, and that do not hold the relaxation, only slow the search down.
  void dropLooseRows() {
    std::vector<int> rows{0};
    for (int row = model_.rowsNeeded() + 1; row <= glp_get_num_rows(lp_); ++row) {
      if (glp_get_row_stat(lp_, row) == GLP_BS) rows.push_back(row);
    }
    if (rows.size() > 1) glp_del_rows(lp_, static_cast<int>(rows.size()) - 1, rows.data());
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    glp_simplex(lp_, &simplex);  // the search starts from a solved relaxation
  }

  int z(int representative, int v) const { return model_.z(representative, v); }

  // ---- during the search ----

  void step(glp_tree* tree) {
    const int best = glp_ios_best_node(tree);
    if (best > 0) {
      const double bound = glp_ios_node_bound(tree, best);
      if (std::isfinite(bound) && bound < 1e200) bound_ = std::max(bound_, bound);
    }
    switch (glp_ios_reason(tree)) {
      case GLP_IROWGEN:
        addCuts(glp_ios_get_prob(tree));
        break;
      case GLP_IHEUR:
        if (!offered_) offer(tree);
        break;
      default:
        break;
    }
  }

  void offer(glp_tree* tree) {
    offered_ = true;
    const std::vector<double> x = model_.valuesOf(incumbent_);
    glp_ios_heur_sol(tree, x.data());
  }

  void addCuts(glp_prob* lp) {
    const int n = problem_.nodes;
    const auto value = [&](int column) { return column ? glp_get_col_prim(lp, column) : 0.0; };
    int added = 0;
    for (int r = 0; r < n; ++r) {
      const double top = value(z(r, r));
      if (top < kTolerance) continue;
      std::vector<int> present;
      for (int v = r + 1; v < n; ++v) {
        if (value(z(r, v)) > kTolerance) present.push_back(v);
      }
      std::stable_sort(present.begin(), present.end(),
                       [&](int a, int b) { return value(z(r, a)) > value(z(r, b)); });
      for (size_t i = 0; i < present.size(); ++i) {
        for (size_t j = i + 1; j < present.size(); ++j) {
          const int u = present[i], v = present[j];
          if (pairs_.canShare(u, v) || value(z(r, u)) + value(z(r, v)) <= top + kTolerance) continue;
          model_.addCliqueRow(lp, r, model_.clique({u, v}, present));
          ++added;
          break;
        }
      }
    }
    for (const Requirement& q : problem_.requirements) {
      if (!pairs_.canShare(q.a, q.b)) continue;
      for (int r = 0; r <= std::min(q.a, q.b); ++r) {
        if (!z(r, q.a) || !z(r, q.b)) continue;
        added += addTogether(lp, r, q.a, q.b, q.third);
      }
    }
    for (const OrderCut& cut :
         orderCuts_.violated([&](int r, int v) { return value(z(r, v)); }, leastViolation_)) {
      Row row;
      for (const OrderCut::Term& term : cut.terms) {
        if (z(term.representative, term.node))
          row.emplace_back(z(term.representative, term.node), term.coefficient);
      }
      RepresentativesModel::addRow(lp, GLP_UP, cut.upper, row);
      ++added;
    }
    cuts_ += added;
  }

  /// z[r,a] + z[r,b] - z[r,r] <= z[r,third], when the current solution breaks it.
  int addTogether(glp_prob* lp, int r, int a, int b, int third) {
    const auto value = [&](int column) { return column ? glp_get_col_prim(lp, column) : 0.0; };
    if (value(z(r, a)) + value(z(r, b)) - value(z(r, r)) - value(z(r, third)) <= kTolerance) return 0;
    Row row{{z(r, a), 1.0}, {z(r, b), 1.0}, {z(r, r), -1.0}};
    if (z(r, third)) row.emplace_back(z(r, third), -1.0);
    RepresentativesModel::addRow(lp, GLP_UP, 0, row);
    return 1;
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  const Assignment& incumbent_;
  double bound_;
  OrderCuts orderCuts_;
  RepresentativesModel model_;
  glp_prob* lp_;
  double leastViolation_ = kViolationBefore;
  bool offered_ = false;
  int cuts_ = 0;
};

}  // namespace

IlpSearch searchRepresentatives(const PartitionProblem& problem, const PairTable& pairs,
                                const Assignment& incumbent, double lower, double seconds) {
  return Search(problem, pairs, incumbent, lower).run(seconds);
}

}  // namespace kelpie::fusion

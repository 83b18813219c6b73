#include "fusion/link_bound.h"

#include <glpk.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "fusion/counted_simplex.h"
#include "fusion/link_cuts.h"
#include "fusion/lower_bound.h"

namespace kelpie::fusion {
namespace {

constexpr double kGreatestCost = 1e4;  ///< costs are scaled to that: GLPK's tolerances are absolute
constexpr double kBroken = 1e-2;       ///< a cut has to be worth its row
constexpr int kIdleRounds = 3;         ///< of cuts that hardly raise the bound: there are no more
constexpr double kWorthARound = 1e-3;  ///< of the bound

class LinkProgram {
 public:
  LinkProgram(const PartitionProblem& problem, const PairTable& pairs)
      : problem_(problem),
        least_(leastCosts(problem, pairs)),
        lp_(glp_create_prob(), glp_delete_prob),
        stores_(addStores(pairs)),
        loads_(addLoads(pairs)) {
    tieLoadsToStores();
  }

  double bound(const Deadline& deadline) {
    glp_term_out(GLP_OFF);
    const glp_smcp simplex = silentSimplex(GLP_DUALP);
    double best = least();
    for (int idle = 0; idle < kIdleRounds && !deadline.passed();) {
      if (solveSimplex(lp_.get(), simplex, deadline) != 0 || glp_get_status(lp_.get()) != GLP_OPT) break;
      const double found = glp_get_obj_val(lp_.get()) / scale_;
      idle = found < best * (1 + kWorthARound) ? idle + 1 : 0;
      best = std::max(best, found);
      if (const bool stores = addBroken(stores_), loads = addBroken(loads_); !stores && !loads) break;
    }
    return best;
  }

 private:
  /// Links and the columns that say how much they are cut, less what they are at least.
  struct Links {
    std::vector<int> columns;
    std::vector<double> offset;  ///< cut = value - offset
    LinkCuts cuts;
  };

  double least() const {
    double total = 0;
    for (size_t k = 0; k < problem_.accesses.size(); ++k)
      total += problem_.accesses[k].cost * least_.loads[k];
    for (size_t k = 0; k < problem_.stores.size(); ++k)
      total += least_.stored[k] ? problem_.stores[k].cost : 0;
    return total;
  }

  int column(double fewest, double cost) {
    const int column = glp_add_cols(lp_.get(), 1);
    glp_set_col_bnds(lp_.get(), column, GLP_LO, fewest, 0);
    glp_set_obj_coef(lp_.get(), column, cost * scale_);
    return column;
  }

  double scaleOf() const {
    double greatest = 1e-300;
    for (const Access& a : problem_.accesses) greatest = std::max(greatest, a.cost);
    for (const Store& s : problem_.stores) greatest = std::max(greatest, s.cost);
    return kGreatestCost / greatest;
  }

  Links addStores(const PairTable& pairs) {
    std::vector<int> columns;
    std::vector<std::vector<int>> nodes;
    for (size_t k = 0; k < problem_.stores.size(); ++k) {
      const Store& s = problem_.stores[k];
      columns.push_back(column(least_.stored[k] ? 1 : 0, s.cost));
      nodes.push_back(s.readers);
      nodes.back().push_back(s.producer);
    }
    std::vector<double> none(columns.size(), 0);
    return {std::move(columns), std::move(none),
            LinkCuts(problem_, pairs, pairs.shareMatrix(), std::move(nodes))};
  }

  Links addLoads(const PairTable& pairs) {
    std::vector<int> columns;
    std::vector<double> offset;
    std::vector<std::vector<int>> nodes;
    for (size_t k = 0; k < problem_.accesses.size(); ++k) {
      const Access& a = problem_.accesses[k];
      const bool outside = a.producer < 0;  // one load is for all who share
      columns.push_back(column(std::max(least_.loads[k], outside && !a.readers.empty() ? 1 : 0), a.cost));
      offset.push_back(outside ? 1 : 0);
      nodes.push_back(a.readers);
      if (!outside) nodes.back().push_back(a.producer);
    }
    return {std::move(columns), std::move(offset),
            LinkCuts(problem_, pairs, pairs.shareMatrix(), std::move(nodes))};
  }

  /// What is stored because a reader is elsewhere, that reader loads; but some readers, as those of sizes,
  /// load nothing.
  void tieLoadsToStores() {
    for (size_t s = 0; s < problem_.stores.size(); ++s) {
      const Store& store = problem_.stores[s];
      std::vector<int> columns{0, stores_.columns[s]};
      std::set<int> loading;
      for (size_t k = 0; k < problem_.accesses.size(); ++k) {
        const Access& a = problem_.accesses[k];
        if (a.producer != store.producer) continue;
        columns.push_back(loads_.columns[k]);
        loading.insert(a.readers.begin(), a.readers.end());
      }
      const bool allLoad =
          std::all_of(store.readers.begin(), store.readers.end(), [&](int r) { return loading.contains(r); });
      if (store.outlives || !allLoad) continue;
      std::vector<double> values(columns.size(), -1);
      values[1] = 1;
      addRow(columns, values, GLP_UP, 0);
    }
  }

  void addRow(const std::vector<int>& columns, const std::vector<double>& values, int kind, double bound) {
    const int row = glp_add_rows(lp_.get(), 1);
    glp_set_row_bnds(lp_.get(), row, kind, bound, bound);
    glp_set_mat_row(lp_.get(), row, static_cast<int>(columns.size()) - 1, columns.data(), values.data());
  }

  bool addBroken(const Links& links) {
    std::vector<double> cut;
    for (size_t k = 0; k < links.columns.size(); ++k)
      cut.push_back(glp_get_col_prim(lp_.get(), links.columns[k]) - links.offset[k]);
    const std::vector<LinkCut> broken = links.cuts.broken(cut, kBroken);
    for (const LinkCut& one : broken) {
      std::vector<int> columns(1);
      std::vector<double> values(1);
      double fewest = 1;
      for (const auto& [link, times] : one) {
        columns.push_back(links.columns[link]);
        values.push_back(times);
        fewest += times * links.offset[link];
      }
      addRow(columns, values, GLP_LO, fewest);
    }
    return !broken.empty();
  }

  const PartitionProblem& problem_;
  const LeastCosts least_;
  const double scale_ = scaleOf();
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  const Links stores_, loads_;
};

}  // namespace

double linkBound(const PartitionProblem& problem, const PairTable& pairs, const Deadline& deadline) {
  return LinkProgram(problem, pairs).bound(deadline);
}

}  // namespace kelpie::fusion

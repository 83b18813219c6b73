#include "fusion/emit_lp.h"

#include <fmt/format.h>
#include <glpk.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace kelpie::fusion {
namespace {

class WholeProgram {
 public:
  WholeProgram(const PartitionProblem& problem, const PairTable& pairs)
      : problem_(problem), pairs_(pairs), lp_(glp_create_prob(), glp_delete_prob), n_(problem.nodes) {
    glp_set_obj_dir(lp_.get(), GLP_MIN);
    addMembership();
    addRules();
    addLoads();
    addStores();
    addOrder();
  }

  bool write(const std::string& title, const std::string& path) const {
    glp_term_out(GLP_OFF);
    constexpr size_t kLongestName = 255;  // in GLPK
    glp_set_prob_name(lp_.get(), title.substr(0, kLongestName).c_str());
    return glp_write_lp(lp_.get(), nullptr, path.c_str()) == 0;
  }

 private:
  using Row = std::vector<std::pair<int, double>>;  ///< column, coefficient; entries of one column add up

  /// Column of z[r,v]; 0 if there is none.
  int z(int r, int v) const { return r <= v ? z_[static_cast<size_t>(r) * n_ + v] : 0; }

  int addColumn(const std::string& name, int kind, double upper, double cost) {
    const int column = glp_add_cols(lp_.get(), 1);
    glp_set_col_name(lp_.get(), column, name.c_str());
    glp_set_col_kind(lp_.get(), column, kind);
    glp_set_col_bnds(lp_.get(), column, GLP_DB, 0, upper);
    glp_set_obj_coef(lp_.get(), column, cost);
    return column;
  }

  /// `sum of row <= bound` (GLP_UP), `>=` (GLP_LO) or `=` (GLP_FX). Column 0 stands for 0.
  void addRow(int type, double bound, Row entries) {
    std::sort(entries.begin(), entries.end());
    std::vector<int> columns(1);
    std::vector<double> values(1);
    for (auto [column, value] : entries) {
      if (column == 0) continue;
      if (columns.back() == column) {
        values.back() += value;
      } else {
        columns.push_back(column);
        values.push_back(value);
      }
    }
    const int row = glp_add_rows(lp_.get(), 1);
    glp_set_row_bnds(lp_.get(), row, type, bound, bound);
    glp_set_mat_row(lp_.get(), row, static_cast<int>(columns.size()) - 1, columns.data(), values.data());
  }

  /// Every node is in one cluster; a cluster has its representative.
  void addMembership() {
    z_.assign(static_cast<size_t>(n_) * n_, 0);
    for (int r = 0; r < n_; ++r) {
      for (int v = r; v < n_; ++v) {
        if (v != r && !pairs_.canShare(r, v)) continue;
        z_[static_cast<size_t>(r) * n_ + v] =
            addColumn(fmt::format("z_{}_{}", r, v), GLP_IV, 1, r == v ? problem_.launch[r] : 0);
      }
    }
    for (int v = 0; v < n_; ++v) {
      Row row;
      for (int r = 0; r <= v; ++r) row.emplace_back(z(r, v), 1.0);
      addRow(GLP_FX, 1, row);
      for (int r = 0; r < v; ++r) {
        if (z(r, v)) addRow(GLP_UP, 0, {{z(r, v), 1.0}, {z(r, r), -1.0}});
      }
    }
  }

  /// Pairs that may not share, the budget, requirements.
  void addRules() {
    for (int r = 0; r < n_; ++r) {
      Row budget{{z(r, r), std::min(0.0, problem_.weight[r] - problem_.budget)}};
      double total = problem_.weight[r];
      for (int u = r + 1; u < n_; ++u) {
        if (!z(r, u)) continue;
        budget.emplace_back(z(r, u), problem_.weight[u]);
        total += problem_.weight[u];
        for (int v = u + 1; v < n_; ++v) {
          if (z(r, v) && !pairs_.canShare(u, v))
            addRow(GLP_UP, 0, {{z(r, u), 1.0}, {z(r, v), 1.0}, {z(r, r), -1.0}});
        }
      }
      if (total > problem_.budget) addRow(GLP_UP, 0, budget);
      for (const Requirement& q : problem_.requirements) {
        if (pairs_.canShare(q.a, q.b) && z(r, q.a) && z(r, q.b))
          addRow(GLP_UP, 0, {{z(r, q.a), 1.0}, {z(r, q.b), 1.0}, {z(r, r), -1.0}, {z(r, q.third), -1.0}});
      }
    }
  }

  /// A cluster with a reader and without the producer loads.
  void addLoads() {
    for (size_t k = 0; k < problem_.accesses.size(); ++k) {
      const Access& a = problem_.accesses[k];
      for (int r = 0; r < n_; ++r) {
        int load = 0;
        for (int v : a.readers) {
          if (!z(r, v)) continue;
          if (load == 0) load = addColumn(fmt::format("load_{}_{}", k, r), GLP_CV, 1, a.cost);
          addRow(GLP_UP, 0, {{z(r, v), 1.0}, {a.producer < 0 ? 0 : z(r, a.producer), -1.0}, {load, -1.0}});
        }
      }
    }
  }

  /// An array is stored if some reader is not with the producer.
  void addStores() {
    for (size_t k = 0; k < problem_.stores.size(); ++k) {
      const Store& s = problem_.stores[k];
      const int store = addColumn(fmt::format("store_{}", k), GLP_CV, 1, s.cost);
      if (s.outlives) addRow(GLP_LO, 1, {{store, 1.0}});
      for (int v : s.readers) {
        for (int r = 0; r <= s.producer; ++r) {
          if (z(r, s.producer)) addRow(GLP_UP, 0, {{z(r, s.producer), 1.0}, {z(r, v), -1.0}, {store, -1.0}});
        }
      }
    }
  }

  /// Nodes of a cluster have one position, and along an edge it grows by one unless the ends share a cluster.
  void addOrder() {
    std::vector<int> position;
    for (int v = 0; v < n_; ++v) position.push_back(addColumn(fmt::format("position_{}", v), GLP_CV, n_, 0));
    for (int r = 0; r < n_; ++r) {
      for (int v = r + 1; v < n_; ++v) {
        if (!z(r, v)) continue;
        const double n = n_;
        addRow(GLP_UP, n, {{position[v], 1.0}, {position[r], -1.0}, {z(r, v), n}});
        addRow(GLP_LO, -n, {{position[v], 1.0}, {position[r], -1.0}, {z(r, v), -n}});
      }
    }
    for (const PartitionEdge& e : problem_.edges) {
      Row row{{position[e.to], 1.0}, {position[e.from], -1.0}};
      for (int r = 0; r <= std::min(e.from, e.to) && pairs_.canShare(e.from, e.to); ++r) {
        if (!z(r, e.from) || !z(r, e.to)) continue;
        const int both = addColumn(fmt::format("both_{}_{}_{}", e.from, e.to, r), GLP_CV, 1, 0);
        addRow(GLP_UP, 0, {{both, 1.0}, {z(r, e.from), -1.0}});
        addRow(GLP_UP, 0, {{both, 1.0}, {z(r, e.to), -1.0}});
        row.emplace_back(both, 1.0);
      }
      addRow(GLP_LO, 1, row);
    }
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  const int n_;
  std::vector<int> z_;
};

}  // namespace

bool emitLp(const PartitionProblem& problem, const PairTable& pairs, const std::string& title,
            const std::string& path) {
  return WholeProgram(problem, pairs).write(title, path);
}

}  // namespace kelpie::fusion

#include "fusion/representatives_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fusion/lower_bound.h"

namespace kelpie::fusion {

RepresentativesModel::RepresentativesModel(const PartitionProblem& problem, const PairTable& pairs)
    : problem_(problem), pairs_(pairs), lp_(glp_create_prob(), glp_delete_prob) {
  glp_set_obj_dir(lp_.get(), GLP_MIN);
  addColumns();
  addRows();
  addFlow();
  rowsNeeded_ = glp_get_num_rows(lp_.get());
  addConvexity();
}

int RepresentativesModel::addColumn(int kind, double lower, double upper, double cost) {
  const int column = glp_add_cols(lp_.get(), 1);
  glp_set_col_kind(lp_.get(), column, kind);
  glp_set_col_bnds(lp_.get(), column, lower == upper ? GLP_FX : GLP_DB, lower, upper);
  glp_set_obj_coef(lp_.get(), column, cost);
  return column;
}

void RepresentativesModel::addRow(glp_prob* lp, int type, double bound, Row entries) {
  std::sort(entries.begin(), entries.end());
  std::vector<int> columns(1);
  std::vector<double> values(1);
  for (auto [column, value] : entries) {
    if (columns.size() > 1 && columns.back() == column) {
      values.back() += value;
    } else {
      columns.push_back(column);
      values.push_back(value);
    }
  }
  const int row = glp_add_rows(lp, 1);
  glp_set_row_bnds(lp, row, type, bound, bound);
  glp_set_mat_row(lp, row, static_cast<int>(columns.size()) - 1, columns.data(), values.data());
}

void RepresentativesModel::addColumns() {
  const int n = problem_.nodes;
  z_.assign(static_cast<size_t>(n) * n, 0);
  for (int r = 0; r < n; ++r) {
    for (int v = r; v < n; ++v) {
      if (v != r && !pairs_.canShare(r, v)) continue;
      z_[static_cast<size_t>(r) * n + v] = addColumn(GLP_IV, 0, 1, r == v ? problem_.launch[r] : 0);
    }
  }
}

std::vector<int> RepresentativesModel::clique(std::vector<int> seed,
                                              const std::vector<int>& candidates) const {
  for (int v : candidates) {
    const bool excluded =
        std::all_of(seed.begin(), seed.end(), [&](int u) { return u != v && !pairs_.canShare(u, v); });
    if (excluded) seed.push_back(v);
  }
  return seed;
}

void RepresentativesModel::addCliqueRow(glp_prob* lp, int representative,
                                        const std::vector<int>& clique) const {
  Row row{{z(representative, representative), -1.0}};
  for (int v : clique) row.emplace_back(z(representative, v), 1.0);
  addRow(lp, GLP_UP, 0, row);
}

void RepresentativesModel::addRows() {
  const int n = problem_.nodes;
  Row clusters;
  for (int v = 0; v < n; ++v) {
    Row row;
    for (int r = 0; r <= v; ++r) {
      if (z(r, v)) row.emplace_back(z(r, v), 1.0);
    }
    addRow(lp_.get(), GLP_FX, 1, row);
    clusters.emplace_back(z(v, v), 1.0);
  }
  std::vector<int> all(n);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> apart = manyApart(pairs_, all);
  addRow(lp_.get(), GLP_LO, static_cast<double>(apart.size()), clusters);
  for (int r = 0; r < n; ++r) {
    std::vector<int> others;
    for (int v : apart) {  // first, so that one row has as many of these as there are
      if (v > r && z(r, v)) others.push_back(v);
    }
    for (int v = r + 1; v < n; ++v) {
      if (z(r, v) && std::find(others.begin(), others.end(), v) == others.end()) others.push_back(v);
    }
    std::vector<bool> covered(n, false);
    for (int v : others) {
      if (covered[v]) continue;
      const std::vector<int> row = clique({v}, others);
      for (int u : row) covered[u] = true;
      addCliqueRow(lp_.get(), r, row);
    }
    double total = 0;
    Row budget{{z(r, r), std::min(0.0, problem_.weight[r] - problem_.budget)}};
    for (int v : others) {
      budget.emplace_back(z(r, v), problem_.weight[v]);
      total += problem_.weight[v];
    }
    if (total + problem_.weight[r] > problem_.budget) addRow(lp_.get(), GLP_UP, 0, budget);
  }
}

/// Clusters are convex: whoever lies on a path from or to the representative is in its cluster, if the
/// other end is.
void RepresentativesModel::addConvexity() {
  for (const PartitionEdge& e : problem_.edges) {
    for (int r = 0; r < problem_.nodes; ++r) {
      if (z(r, e.to) && r != e.from && pairs_.reaches(r, e.from)) addFollows(r, e.to, e.from);
      if (z(r, e.from) && r != e.to && pairs_.reaches(e.to, r)) addFollows(r, e.from, e.to);
    }
  }
}
/// z[r,v] <= z[r,other]
void RepresentativesModel::addFollows(int r, int v, int other) {
  Row row{{z(r, v), 1.0}};
  if (z(r, other)) row.emplace_back(z(r, other), -1.0);
  addRow(lp_.get(), GLP_UP, 0, row);
}

/// Loads and stores: columns that are at least 1 when the clusters chosen make them necessary.
void RepresentativesModel::addFlow() {
  const int n = problem_.nodes;
  for (const Access& a : problem_.accesses) {
    if (a.cost <= 0) continue;
    if (neverWithProducer(a) && a.readers.size() == 1) {
      constant_ += a.cost;
      continue;
    }
    Row loads;
    for (int r = 0; r < n; ++r) {
      std::vector<int> here;
      for (int v : a.readers) {
        if (z(r, v)) here.push_back(v);
      }
      if (here.empty()) continue;
      const int load = addColumn(GLP_CV, 0, 1, a.cost);
      loads.emplace_back(load, 1.0);
      const int home = a.producer < 0 ? 0 : z(r, a.producer);
      std::vector<bool> covered(n, false);
      for (int v : here) {
        if (covered[v]) continue;
        // Readers that exclude each other add up, as long as they can all be without the producer.
        const std::vector<int> together = home ? std::vector<int>{v} : clique({v}, here);
        Row row{{load, -1.0}};
        for (int u : together) {
          row.emplace_back(z(r, u), 1.0);
          covered[u] = true;
        }
        if (home) row.emplace_back(home, -1.0);
        addRow(lp_.get(), GLP_UP, 0, row);
      }
    }
    const int fewest = fewestLoads(a, pairs_);
    if (fewest > 0) addRow(lp_.get(), GLP_LO, fewest, loads);
  }
  for (const Store& s : problem_.stores) {
    const bool always = alwaysStored(s, pairs_);
    const int store = addColumn(GLP_CV, always ? 1 : 0, 1, s.cost);
    if (always) continue;
    for (int v : s.readers) {
      Row missing;
      std::vector<std::pair<int, int>> both;
      for (int r = 0; r <= s.producer; ++r) {
        if (!z(r, s.producer)) continue;
        if (z(r, v)) {
          both.emplace_back(z(r, s.producer), z(r, v));
        } else {
          missing.emplace_back(z(r, s.producer), 1.0);
        }
      }
      missing.emplace_back(store, -1.0);
      for (auto [producer, reader] : both) {
        Row row = missing;
        row.emplace_back(producer, 1.0);
        row.emplace_back(reader, -1.0);
        addRow(lp_.get(), GLP_UP, 0, row);
      }
      if (both.empty()) addRow(lp_.get(), GLP_UP, 0, missing);
    }
  }
  addColumn(GLP_CV, 1, 1, constant_);
}

bool RepresentativesModel::neverWithProducer(const Access& access) const {
  return access.producer < 0 || std::none_of(access.readers.begin(), access.readers.end(),
                                             [&](int v) { return pairs_.canShare(access.producer, v); });
}

Assignment RepresentativesModel::assignment(const std::function<double(int)>& value) const {
  Assignment cluster(problem_.nodes);
  for (int v = 0; v < problem_.nodes; ++v) {
    double best = -1;
    for (int r = 0; r <= v; ++r) {
      if (z(r, v) == 0 || value(z(r, v)) <= best) continue;
      best = value(z(r, v));
      cluster[v] = r;
    }
  }
  return normalised(cluster);
}

std::vector<double> RepresentativesModel::valuesOf(const Assignment& cluster) const {
  const int n = problem_.nodes;
  std::vector<double> x(glp_get_num_cols(lp_.get()) + 1, 0.0);
  std::vector<int> first(n, n);
  for (int v = n - 1; v >= 0; --v) first[cluster[v]] = v;
  for (int v = 0; v < n; ++v) x[z(first[cluster[v]], v)] = 1;
  int column = *std::max_element(z_.begin(), z_.end());  // loads and stores follow in the order of addFlow
  const auto in = [&](int r, int v) { return z(r, v) != 0 && x[z(r, v)] > 0.5; };
  for (const Access& a : problem_.accesses) {
    if (a.cost <= 0 || (neverWithProducer(a) && a.readers.size() == 1)) continue;
    for (int r = 0; r < n; ++r) {
      bool possible = false, loads = false;
      for (int v : a.readers) {
        possible |= z(r, v) != 0;
        loads |= in(r, v);
      }
      if (!possible) continue;
      x[++column] = loads && !(a.producer >= 0 && in(r, a.producer)) ? 1 : 0;
    }
  }
  for (const Store& s : problem_.stores) {
    const bool outside = std::any_of(s.readers.begin(), s.readers.end(),
                                     [&](int r) { return cluster[r] != cluster[s.producer]; });
    x[++column] = s.outlives || outside ? 1 : 0;
  }
  x[++column] = 1;  // the constant
  return x;
}

// ---- what the search finds by itself ----

void RepresentativesModel::complete() {
  addPairs();
  addRequirements();
  addOrder();
  for (int r = 0; r < problem_.nodes; ++r) {
    for (int v = r; v < problem_.nodes; ++v) {
      if (z(r, v)) glp_set_col_name(lp_.get(), z(r, v), fmt::format("z_{}_{}", r, v).c_str());
    }
  }
}

void RepresentativesModel::addPairs() {
  for (int r = 0; r < problem_.nodes; ++r) {
    for (int u = r + 1; u < problem_.nodes; ++u) {
      for (int v = u + 1; v < problem_.nodes; ++v) {
        if (z(r, u) && z(r, v) && !pairs_.canShare(u, v)) addCliqueRow(lp_.get(), r, {u, v});
      }
    }
  }
}

void RepresentativesModel::addRequirements() {
  for (const Requirement& q : problem_.requirements) {
    if (!pairs_.canShare(q.a, q.b)) continue;
    for (int r = 0; r <= std::min(q.a, q.b); ++r) {
      if (!z(r, q.a) || !z(r, q.b)) continue;
      Row row{{z(r, q.a), 1.0}, {z(r, q.b), 1.0}, {z(r, r), -1.0}};
      if (z(r, q.third)) row.emplace_back(z(r, q.third), -1.0);
      addRow(lp_.get(), GLP_UP, 0, row);
    }
  }
}

// Every node has a position: that of its representative, and along an edge the next at least, unless the ends
// share a cluster. Whether they do is the sum of columns that are at most z[r,from] and z[r,to].
void RepresentativesModel::addOrder() {
  const int n = problem_.nodes;
  std::vector<int> position;
  for (int v = 0; v < n; ++v) {
    position.push_back(addColumn(GLP_CV, 0, n, 0));
    glp_set_col_name(lp_.get(), position.back(), fmt::format("position_{}", v).c_str());
  }
  for (int r = 0; r < n; ++r) {
    for (int v = r + 1; v < n; ++v) {
      if (!z(r, v)) continue;
      addRow(lp_.get(), GLP_UP, n, {{position[v], 1.0}, {position[r], -1.0}, {z(r, v), 1.0 * n}});
      addRow(lp_.get(), GLP_LO, -n, {{position[v], 1.0}, {position[r], -1.0}, {z(r, v), -1.0 * n}});
    }
  }
  for (const PartitionEdge& e : problem_.edges) {
    Row row{{position[e.to], 1.0}, {position[e.from], -1.0}};
    for (int r = 0; r <= std::min(e.from, e.to); ++r) {
      if (!z(r, e.from) || !z(r, e.to) || !pairs_.canShare(e.from, e.to)) continue;
      const int both = addColumn(GLP_CV, 0, 1, 0);
      addRow(lp_.get(), GLP_UP, 0, {{both, 1.0}, {z(r, e.from), -1.0}});
      addRow(lp_.get(), GLP_UP, 0, {{both, 1.0}, {z(r, e.to), -1.0}});
      row.emplace_back(both, 1.0);
    }
    addRow(lp_.get(), GLP_LO, 1, row);
  }
}

}  // namespace kelpie::fusion

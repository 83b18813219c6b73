#include "fusion/representatives_ilp.h"

#include <glpk.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

namespace kelpie::fusion {

std::vector<int> manyApart(const PairTable& pairs, std::vector<int> nodes) {
  if (nodes.empty()) return {};
  // "On a path and apart" is transitive: what lies on a path between two that share can share with both.
  std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return pairs.rank(a) < pairs.rank(b); });
  std::vector<int> length(nodes.size(), 1), before(nodes.size(), -1);
  for (size_t k = 0; k < nodes.size(); ++k) {
    for (size_t j = 0; j < k; ++j) {
      if (length[j] < length[k] || !pairs.reaches(nodes[j], nodes[k]) || pairs.canShare(nodes[j], nodes[k]))
        continue;
      length[k] = length[j] + 1;
      before[k] = static_cast<int>(j);
    }
  }
  std::vector<int> best;
  const auto last = std::max_element(length.begin(), length.end()) - length.begin();
  for (int k = static_cast<int>(last); k >= 0; k = before[k]) best.push_back(nodes[k]);
  // Chains of different index spaces add up: the chain extended, and sets grown from the nodes with most
  // conflicts.
  std::vector<std::pair<int, int>> byPartners;
  for (int v : nodes) {
    int partners = 0;
    for (int u : nodes) partners += pairs.canShare(u, v);
    byPartners.emplace_back(partners, v);
  }
  std::sort(byPartners.begin(), byPartners.end());
  const auto grow = [&](std::vector<int> set) {
    for (auto [partners, v] : byPartners) {
      const bool apart =
          std::all_of(set.begin(), set.end(), [&, v = v](int u) { return u != v && !pairs.canShare(u, v); });
      if (apart) set.push_back(v);
    }
    if (set.size() > best.size()) best = set;
  };
  grow(best);
  constexpr size_t kStarts = 16;
  for (size_t k = 0; k < std::min(kStarts, byPartners.size()); ++k) grow({byPartners[k].second});
  return best;
}

int fewestLoads(const Access& access, const PairTable& pairs) {
  std::vector<int> apart;
  for (int r : access.readers) {
    if (access.producer < 0 || !pairs.canShare(access.producer, r)) apart.push_back(r);
  }
  return static_cast<int>(manyApart(pairs, apart).size());
}

bool alwaysStored(const Store& store, const PairTable& pairs) {
  return store.outlives || std::any_of(store.readers.begin(), store.readers.end(),
                                       [&](int r) { return !pairs.canShare(store.producer, r); });
}

namespace {

constexpr double kTolerance = 1e-6;

using Row = std::vector<std::pair<int, double>>;  // column, coefficient

class Search {
 public:
  Search(const PartitionProblem& problem, const PairTable& pairs, const Assignment& incumbent, double lower)
      : problem_(problem),
        pairs_(pairs),
        incumbent_(incumbent),
        bound_(lower),
        lp_(glp_create_prob(), glp_delete_prob) {
    glp_set_obj_dir(lp_.get(), GLP_MIN);
    addColumns();
    addRows();
    addConvexity();
    addFlow();
  }

  IlpSearch run(double seconds) {
    IlpSearch result{incumbent_, bound_, glp_get_num_cols(lp_.get()), glp_get_num_rows(lp_.get()), 0};
    if (seconds <= 0) return result;
    glp_term_out(GLP_OFF);
    const auto start = std::chrono::steady_clock::now();
    const auto millisecondsLeft = [&] {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      return static_cast<int>(1000 * std::max(0.001, seconds - spent.count()));
    };
    if (!relax(millisecondsLeft)) return result;
    fixHopeless();
    glp_iocp search;
    glp_init_iocp(&search);
    search.msg_lev = GLP_MSG_OFF;
    search.tm_lim = millisecondsLeft();
    search.br_tech = GLP_BR_MFV;
    search.bt_tech = GLP_BT_BLB;
    search.cb_info = this;
    search.cb_func = [](glp_tree* tree, void* self) { static_cast<Search*>(self)->step(tree); };
    const int status = glp_intopt(lp_.get(), &search);
    const int found = glp_mip_status(lp_.get());
    if (found == GLP_OPT || found == GLP_FEAS) {
      const Assignment cluster = assignment([&](int column) { return glp_mip_col_val(lp_.get(), column); });
      if (!illegal(problem_, cluster) && costOf(problem_, cluster) < costOf(problem_, result.cluster)) {
        result.cluster = cluster;
      }
    }
    if (status == 0 && found == GLP_OPT) bound_ = std::max(bound_, costOf(problem_, result.cluster));
    result.bound = std::min(bound_, costOf(problem_, result.cluster));
    result.cuts = cuts_;
    return result;
  }

 private:
  /// Solves the relaxation, with cuts, before the search. False when time was up before the first solution.
  template <typename Left>
  bool relax(const Left& millisecondsLeft) {
    constexpr int kRounds = 40;
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    glp_adv_basis(lp_.get(), 0);
    for (int round = 0; round < kRounds; ++round) {
      simplex.tm_lim = millisecondsLeft();
      if (glp_simplex(lp_.get(), &simplex) != 0 || glp_get_status(lp_.get()) != GLP_OPT) return false;
      bound_ = std::max(bound_, glp_get_obj_val(lp_.get()));
      simplex.meth = GLP_DUALP;
      const int before = cuts_;
      addCuts(lp_.get());
      if (cuts_ == before) return true;
    }
    return glp_simplex(lp_.get(), &simplex) == 0 && glp_get_status(lp_.get()) == GLP_OPT;
  }

  /// Columns that cannot change without making the relaxation dearer than the incumbent stay where they are.
  void fixHopeless() {
    const double room = costOf(problem_, incumbent_) - glp_get_obj_val(lp_.get());
    const double slack = kTolerance * (1 + std::abs(glp_get_obj_val(lp_.get())));
    for (int column : z_) {
      if (column == 0) continue;
      const double reduced = glp_get_col_dual(lp_.get(), column);
      const int at = glp_get_col_stat(lp_.get(), column);
      if (at == GLP_NL && reduced > room + slack) glp_set_col_bnds(lp_.get(), column, GLP_FX, 0, 0);
      if (at == GLP_NU && -reduced > room + slack) glp_set_col_bnds(lp_.get(), column, GLP_FX, 1, 1);
    }
  }

  int z(int representative, int v) const {
    return representative <= v ? z_[static_cast<size_t>(representative) * problem_.nodes + v] : 0;
  }

  int addColumn(int kind, double lower, double upper, double cost) {
    const int column = glp_add_cols(lp_.get(), 1);
    glp_set_col_kind(lp_.get(), column, kind);
    glp_set_col_bnds(lp_.get(), column, lower == upper ? GLP_FX : GLP_DB, lower, upper);
    glp_set_obj_coef(lp_.get(), column, cost);
    return column;
  }

  void addRow(glp_prob* lp, int type, double bound, Row entries) {
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

  void addColumns() {
    const int n = problem_.nodes;
    z_.assign(static_cast<size_t>(n) * n, 0);
    for (int r = 0; r < n; ++r) {
      for (int v = r; v < n; ++v) {
        if (v != r && !pairs_.canShare(r, v)) continue;
        z_[static_cast<size_t>(r) * n + v] = addColumn(GLP_IV, 0, 1, r == v ? problem_.launch[r] : 0);
      }
    }
  }

  /// Grows a set of nodes that exclude each other, from those in `candidates`, in their order.
  std::vector<int> clique(std::vector<int> seed, const std::vector<int>& candidates) const {
    for (int v : candidates) {
      const bool excluded =
          std::all_of(seed.begin(), seed.end(), [&](int u) { return u != v && !pairs_.canShare(u, v); });
      if (excluded) seed.push_back(v);
    }
    return seed;
  }

  void addCliqueRow(glp_prob* lp, int representative, const std::vector<int>& clique) {
    Row row{{z(representative, representative), -1.0}};
    for (int v : clique) row.emplace_back(z(representative, v), 1.0);
    addRow(lp, GLP_UP, 0, row);
  }

  void addRows() {
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
  void addConvexity() {
    for (const PartitionEdge& e : problem_.edges) {
      for (int r = 0; r < problem_.nodes; ++r) {
        if (z(r, e.to) && r != e.from && pairs_.reaches(r, e.from)) addFollows(r, e.to, e.from);
        if (z(r, e.from) && r != e.to && pairs_.reaches(e.to, r)) addFollows(r, e.from, e.to);
      }
    }
  }
  /// z[r,v] <= z[r,other]
  void addFollows(int r, int v, int other) {
    Row row{{z(r, v), 1.0}};
    if (z(r, other)) row.emplace_back(z(r, other), -1.0);
    addRow(lp_.get(), GLP_UP, 0, row);
  }

  /// Loads and stores: columns that are at least 1 when the clusters chosen make them necessary.
  void addFlow() {
    const int n = problem_.nodes;
    for (const Access& a : problem_.accesses) {
      const bool apart = a.producer < 0 || std::none_of(a.readers.begin(), a.readers.end(), [&](int v) {
                           return pairs_.canShare(a.producer, v);
                         });
      if (a.cost <= 0) continue;
      if (apart && a.readers.size() == 1) {
        glp_set_obj_coef(lp_.get(), 0, glp_get_obj_coef(lp_.get(), 0) + a.cost);  // whatever is chosen
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
  }

  template <typename Value>
  Assignment assignment(const Value& value) const {
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
    const int n = problem_.nodes;
    std::vector<double> x(glp_get_num_cols(lp_.get()) + 1, 0.0);
    std::vector<int> first(n, n);
    for (int v = n - 1; v >= 0; --v) first[incumbent_[v]] = v;
    for (int v = 0; v < n; ++v) x[z(first[incumbent_[v]], v)] = 1;
    // The solver takes the integer columns from here and needs the true objective: set the others to match.
    fillFlow(x);
    glp_ios_heur_sol(tree, x.data());
  }

  void fillFlow(std::vector<double>& x) const {
    int column = 0;
    for (int index : z_) column = std::max(column, index);
    const auto in = [&](int r, int v) { return z(r, v) != 0 && x[z(r, v)] > 0.5; };
    for (const Access& a : problem_.accesses) {
      const bool apart = a.producer < 0 || std::none_of(a.readers.begin(), a.readers.end(), [&](int v) {
                           return pairs_.canShare(a.producer, v);
                         });
      if (a.cost <= 0 || (apart && a.readers.size() == 1)) continue;
      for (int r = 0; r < problem_.nodes; ++r) {
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
      bool stored = s.outlives;
      for (int r : s.readers) stored |= incumbent_[r] != incumbent_[s.producer];
      x[++column] = stored ? 1 : 0;
    }
  }

  void addCuts(glp_prob* lp) {
    const int n = problem_.nodes;
    const auto value = [&](int column) { return column ? glp_get_col_prim(lp, column) : 0.0; };
    bool integral = true;
    for (int column : z_) {
      const double x = value(column);
      integral &= std::abs(x - std::round(x)) < kTolerance;
    }
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
          addCliqueRow(lp, r, clique({u, v}, present));
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
    added += addConvexityCuts(lp);
    if (integral && added == 0) added += addCycleCuts(lp);
    cuts_ += added;
  }

  /// The same between any two members: the last node before the end of the path is there, and so on
  /// backwards.
  int addConvexityCuts(glp_prob* lp) {
    const auto value = [&](int column) { return column ? glp_get_col_prim(lp, column) : 0.0; };
    int added = 0;
    for (int r = 0; r < problem_.nodes; ++r) {
      if (value(z(r, r)) < kTolerance) continue;
      for (const PartitionEdge& e : problem_.edges) {
        if (value(z(r, e.to)) <= value(z(r, e.from)) + kTolerance) continue;
        for (int a = r; a < problem_.nodes; ++a) {
          if (z(r, a) && pairs_.reaches(a, e.from) && addTogether(lp, r, a, e.to, e.from)) {
            ++added;
            break;
          }
        }
      }
    }
    return added;
  }

  /// z[r,a] + z[r,b] - z[r,r] <= z[r,third], when the current solution breaks it.
  int addTogether(glp_prob* lp, int r, int a, int b, int third) {
    const auto value = [&](int column) { return column ? glp_get_col_prim(lp, column) : 0.0; };
    if (value(z(r, a)) + value(z(r, b)) - value(z(r, r)) - value(z(r, third)) <= kTolerance) return 0;
    Row row{{z(r, a), 1.0}, {z(r, b), 1.0}, {z(r, r), -1.0}};
    if (z(r, third)) row.emplace_back(z(r, third), -1.0);
    addRow(lp, GLP_UP, 0, row);
    return 1;
  }

  /// For an integral solution whose clusters depend on each other in a cycle.
  int addCycleCuts(glp_prob* lp) {
    const int n = problem_.nodes;
    const Assignment cluster = assignment([&](int column) { return glp_get_col_prim(lp, column); });
    if (clusterOrder(problem_, cluster)) return 0;
    std::vector<int> first(n, n);
    for (int v = n - 1; v >= 0; --v) first[cluster[v]] = v;
    // A path that leaves a cluster and comes back: its nodes belong to the cluster.
    int added = 0;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        if (a == b || cluster[a] != cluster[b] || !pairs_.reaches(a, b)) continue;
        for (int w = 0; w < n; ++w) {
          if (cluster[w] == cluster[a] || !pairs_.reaches(a, w) || !pairs_.reaches(w, b)) continue;
          added += addTogether(lp, first[cluster[a]], a, b, w);
        }
      }
    }
    return added ? added : addCycleRow(lp, cluster, first);
  }

  /// The shortest cycle through several clusters: not all of the pairs that carry it may be together.
  int addCycleRow(glp_prob* lp, const Assignment& cluster, const std::vector<int>& first) {
    const int n = problem_.nodes;
    std::vector<const PartitionEdge*> best;
    for (int start = 0; start < n; ++start) {
      std::vector<const PartitionEdge*> via(n, nullptr);  // edge by which the search reached a cluster
      std::vector<int> work{start};
      for (size_t k = 0; k < work.size() && via[start] == nullptr; ++k) {
        for (const PartitionEdge& e : problem_.edges) {
          const int d = cluster[e.to];
          if (cluster[e.from] != work[k] || d == work[k] || via[d]) continue;
          via[d] = &e;
          if (d == start) break;
          work.push_back(d);
        }
      }
      if (!via[start]) continue;
      std::vector<const PartitionEdge*> cycle{via[start]};
      while (cluster[cycle.back()->from] != start) cycle.push_back(via[cluster[cycle.back()->from]]);
      if (best.empty() || cycle.size() < best.size()) best = cycle;
    }
    Row row;
    int together = 0;
    for (size_t k = 0; k < best.size(); ++k) {  // best[k + 1] enters the cluster that best[k] leaves
      const int entry = best[(k + 1) % best.size()]->to, exit = best[k]->from;
      if (entry == exit) continue;
      const int r = first[cluster[entry]];
      row.emplace_back(z(r, entry), 1.0);
      row.emplace_back(z(r, exit), 1.0);
      row.emplace_back(z(r, r), -1.0);
      ++together;
    }
    addRow(lp, GLP_UP, together - 1, row);
    return 1;
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  const Assignment& incumbent_;
  double bound_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  std::vector<int> z_;
  bool offered_ = false;
  int cuts_ = 0;
};

}  // namespace

IlpSearch searchRepresentatives(const PartitionProblem& problem, const PairTable& pairs,
                                const Assignment& incumbent, double lower, double seconds) {
  return Search(problem, pairs, incumbent, lower).run(seconds);
}

}  // namespace kelpie::fusion

#include "fusion/solve_stages.h"

#include <glpk.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "fusion/lower_bound.h"

namespace kelpie::fusion {
namespace {

constexpr int kMostStages = 8;
constexpr int kMostRows = 50'000;
constexpr int kMostPrograms = 2'000;    ///< relaxations of one number of stages
constexpr double kGreatestCost = 1e4;   ///< costs are scaled to that: GLPK's tolerances are absolute
constexpr double kBroken = 1e-5;        ///< by more than that: a requirement
constexpr double kTolerance = 1e-10;    ///< of objectives
constexpr double kNoPartition = 1e300;  ///< the bound where there is none
constexpr double kNothing = 1e-9;       ///< of costs, as for other proofs

/// Whether all clusters cost the same launch, whatever is in them.
bool launchesAlike(const PartitionProblem& problem) {
  return std::all_of(problem.launch.begin(), problem.launch.end(),
                     [&](double launch) { return launch == problem.launch[0]; });
}

/// First and last stage of each node, of `stages`.
struct Windows {
  std::vector<int> first, last;

  Windows(const PartitionProblem& problem, const PairTable& pairs, int stages)
      : first(problem.nodes, 1), last(problem.nodes, stages) {
    std::vector<int> order(problem.nodes);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return pairs.rank(a) < pairs.rank(b); });
    const auto apart = [&](int u, int v) { return pairs.canShare(u, v) ? 0 : 1; };
    for (int v : order) {
      for (int u = 0; u < problem.nodes; ++u)
        if (pairs.reaches(u, v)) first[v] = std::max(first[v], first[u] + apart(u, v));
    }
    std::reverse(order.begin(), order.end());
    for (int u : order) {
      for (int v = 0; v < problem.nodes; ++v)
        if (pairs.reaches(u, v)) last[u] = std::min(last[u], last[v] - apart(u, v));
    }
  }
  bool possible() const { return std::equal(first.begin(), first.end(), last.begin(), std::less_equal<>()); }
  /// How many stages are needed.
  int fewest() const { return first.empty() ? 0 : *std::max_element(first.begin(), first.end()); }
};

class StageProgram {
 public:
  StageProgram(const PartitionProblem& problem, const PairTable& pairs, int stages)
      : problem_(problem),
        pairs_(pairs),
        stages_(stages),
        windows_(problem, pairs, stages),
        lp_(glp_create_prob(), glp_delete_prob),
        after_(static_cast<size_t>(problem.nodes) * stages, 0) {
    glp_set_obj_dir(lp_.get(), GLP_MIN);
    if (!windows_.possible()) return;
    double greatest = problem.launch[0];
    for (const Access& a : problem.accesses) greatest = std::max(greatest, a.cost);
    for (const Store& s : problem.stores) greatest = std::max(greatest, s.cost);
    scale_ = kGreatestCost / std::max(greatest, 1e-300);
    addNodes();
    addOrder();
    addRules();
    addLoads();
    addStores();
  }

  int rows() const { return glp_get_num_rows(lp_.get()); }

  struct Solution {
    bool complete = false;  ///< nothing below the limit is left
    std::optional<Assignment> cluster;
  };
  Solution solve(double below, const Deadline& deadline) {
    if (!windows_.possible()) return {true, std::nullopt};
    glp_term_out(GLP_OFF);
    const double launches = stages_ * problem_.launch[0];
    Solution result;
    glp_smcp simplex;
    glp_init_smcp(&simplex);
    simplex.msg_lev = GLP_MSG_OFF;
    // The presolver's bases make the search shorter; but where it does not see by itself that nothing is
    // feasible, its answer is undefined.
    for (const int presolve : {GLP_ON, GLP_OFF}) {
      simplex.presolve = presolve;
      simplex.tm_lim = deadline.millisecondsLeft();
      const int relaxed = glp_simplex(lp_.get(), &simplex);
      if (relaxed == GLP_ENOPFS || (relaxed == 0 && glp_get_status(lp_.get()) == GLP_NOFEAS))
        return {true, std::nullopt};
      if (relaxed == 0 && glp_get_status(lp_.get()) == GLP_OPT) break;
    }
    if (glp_get_status(lp_.get()) != GLP_OPT) return result;
    if (launches + glp_get_obj_val(lp_.get()) / scale_ >= below - kNothing * (1 + below))
      return {true, std::nullopt};
    Callback callback{*this, (below - launches) * scale_, kMostPrograms};
    glp_iocp search;
    glp_init_iocp(&search);
    search.msg_lev = GLP_MSG_OFF;
    search.br_tech = GLP_BR_DTH;
    search.bt_tech = GLP_BT_BLB;
    search.cov_cuts = GLP_ON;
    search.tol_obj = kTolerance;
    search.tm_lim = deadline.millisecondsLeft();
    search.cb_info = &callback;
    search.cb_func = [](glp_tree* tree, void* info) { static_cast<Callback*>(info)->at(tree); };
    const int status = glp_intopt(lp_.get(), &search);
    const int found = glp_mip_status(lp_.get());
    result.complete = (status == 0 && (found == GLP_OPT || found == GLP_NOFEAS)) || callback.nothingLeft;
    if (found == GLP_OPT || found == GLP_FEAS) result.cluster = partition();
    return result;
  }

 private:
  /// A sum of variables and a constant.
  struct Sum {
    std::map<int, double> terms;  ///< by column
    double constant = 0;
  };
  struct Callback {
    const StageProgram& program;
    double below;
    int programsLeft;
    bool nothingLeft = false;

    void at(glp_tree* tree) {
      if (const int best = glp_ios_best_node(tree); best > 0) {
        const double bound = glp_ios_node_bound(tree, best);
        nothingLeft = std::isfinite(bound) && bound >= below && std::abs(bound) < kNoPartition;
        if (nothingLeft) return glp_ios_terminate(tree);
      }
      if (glp_ios_reason(tree) == GLP_IBRANCH && --programsLeft < 0) return glp_ios_terminate(tree);
      if (glp_ios_reason(tree) == GLP_IROWGEN) program.addBrokenRequirements(glp_ios_get_prob(tree));
    }
  };

  /// Adds `times` whether the node is in a stage behind k.
  void addAfter(Sum& sum, int node, int k, double times) const {
    if (k < windows_.first[node]) {
      sum.constant += times;
    } else if (k < windows_.last[node]) {
      sum.terms[after_[static_cast<size_t>(node) * stages_ + k]] += times;
    }
  }
  /// The same for whether it is in stage k.
  void addIn(Sum& sum, int node, int k, double times) const {
    addAfter(sum, node, k - 1, times);
    addAfter(sum, node, k, -times);
  }
  bool mayBeIn(int node, int k) const { return windows_.first[node] <= k && k <= windows_.last[node]; }

  int column(double least, double cost, bool whole) {
    const int column = glp_add_cols(lp_.get(), 1);
    glp_set_col_bnds(lp_.get(), column, least == 1 ? GLP_FX : GLP_DB, least, 1);
    glp_set_obj_coef(lp_.get(), column, cost * scale_);
    if (whole) glp_set_col_kind(lp_.get(), column, GLP_IV);
    return column;
  }
  static void atMost(glp_prob* lp, const Sum& sum, double most) {
    std::vector<int> columns(1);
    std::vector<double> values(1);
    double greatest = sum.constant;
    for (const auto& [column, value] : sum.terms) {
      if (value == 0) continue;
      columns.push_back(column);
      values.push_back(value);
      greatest += std::max(0.0, value);
    }
    if (greatest <= most) return;
    const int row = glp_add_rows(lp, 1);
    glp_set_row_bnds(lp, row, GLP_UP, 0, most - sum.constant);
    glp_set_mat_row(lp, row, static_cast<int>(columns.size()) - 1, columns.data(), values.data());
  }
  void atMost(const Sum& sum, double most) { atMost(lp_.get(), sum, most); }

  void addNodes() {
    for (int v = 0; v < problem_.nodes; ++v) {
      for (int k = windows_.first[v]; k < windows_.last[v]; ++k) {
        after_[static_cast<size_t>(v) * stages_ + k] = column(0, 0, true);
        Sum sum;
        addAfter(sum, v, k, 1);
        addAfter(sum, v, k - 1, -1);
        atMost(sum, 0);
      }
    }
  }

  /// u is in no later stage than v, or in an earlier one.
  void addOrder(int u, int v, bool earlier) {
    for (int k = 1; k <= stages_; ++k) {
      Sum sum;
      addAfter(sum, u, earlier ? k - 1 : k, 1);
      addAfter(sum, v, k, -1);
      atMost(sum, 0);
    }
  }

  void addOrder() {
    for (const PartitionEdge& e : problem_.edges)
      if (pairs_.canShare(e.from, e.to)) addOrder(e.from, e.to, false);
    // Of what a path parts, those pairs that do not follow from others on the path.
    for (int u = 0; u < problem_.nodes; ++u) {
      for (int v = 0; v < problem_.nodes; ++v) {
        if (!pairs_.reaches(u, v) || pairs_.canShare(u, v)) continue;
        bool follows = false;
        for (int w = 0; w < problem_.nodes && !follows; ++w) {
          follows = pairs_.reaches(u, w) && pairs_.reaches(w, v) &&
                    !(pairs_.canShare(u, w) && pairs_.canShare(w, v));
        }
        if (!follows) addOrder(u, v, true);
      }
    }
  }

  Sum requirement(const Requirement& r, int k) const {
    Sum sum;
    addIn(sum, r.a, k, 1);
    addIn(sum, r.b, k, 1);
    addIn(sum, r.third, k, -1);
    return sum;
  }
  /// There are many, of which few would ever be broken.
  void addBrokenRequirements(glp_prob* lp) const {
    for (const Requirement& r : problem_.requirements) {
      for (int k = 1; k <= stages_ && pairs_.canShare(r.a, r.b); ++k) {
        if (!mayBeIn(r.a, k) || !mayBeIn(r.b, k)) continue;
        const Sum sum = requirement(r, k);
        double value = sum.constant;
        for (const auto& [column, times] : sum.terms) value += times * glp_get_col_prim(lp, column);
        if (value > 1 + kBroken) atMost(lp, sum, 1);
      }
    }
  }

  /// About who shares a stage: pairs and the budget.
  void addRules() {
    for (int k = 1; k <= stages_; ++k) {
      for (int a = 0; a < problem_.nodes; ++a) {
        for (int b = 0; b < a; ++b) {
          if (pairs_.canShare(a, b) || pairs_.reaches(a, b) || pairs_.reaches(b, a)) continue;
          Sum sum;
          addIn(sum, a, k, 1);
          addIn(sum, b, k, 1);
          atMost(sum, 1);
        }
      }
      Sum taken;
      for (int v = 0; v < problem_.nodes; ++v)
        addIn(taken, v, k, std::min(problem_.weight[v], problem_.budget));
      atMost(taken, problem_.budget);
    }
  }

  /// Paid in each stage that has a reader and not the producer.
  void addLoads() {
    for (const Access& a : problem_.accesses) {
      for (int k = 1; k <= stages_; ++k) {
        int load = 0;
        for (int r : a.readers) {
          if (!mayBeIn(r, k)) continue;
          if (load == 0) load = column(0, a.cost, false);
          Sum sum;
          addIn(sum, r, k, 1);
          if (a.producer >= 0) addIn(sum, a.producer, k, -1);
          sum.terms[load] -= 1;
          atMost(sum, 0);
        }
      }
    }
  }

  /// Paid if a reader is in a later stage than the producer.
  void addStores() {
    for (const Store& s : problem_.stores) {
      const int store = column(s.outlives ? 1 : 0, s.cost, false);
      for (int r : s.readers) {
        for (int k = 1; k < stages_ && !s.outlives; ++k) {
          Sum sum;
          addAfter(sum, r, k, 1);
          addAfter(sum, s.producer, k, -1);
          sum.terms[store] -= 1;
          atMost(sum, 0);
        }
      }
    }
  }

  Assignment partition() const {
    Assignment cluster(problem_.nodes, 0);
    for (int v = 0; v < problem_.nodes; ++v) {
      cluster[v] = windows_.first[v];
      for (int k = windows_.first[v]; k < windows_.last[v]; ++k)
        cluster[v] += glp_mip_col_val(lp_.get(), after_[static_cast<size_t>(v) * stages_ + k]) > 0.5 ? 1 : 0;
    }
    return normalised(cluster);
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  const int stages_;
  const Windows windows_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  std::vector<int> after_;  ///< by node and stage: the column; 0 where it is known
  double scale_ = 1;
};

}  // namespace

StagedPartition solveStages(const PartitionProblem& problem, const PairTable& pairs,
                            const Assignment& incumbent, const Deadline& deadline) {
  StagedPartition result{incumbent, 0, 0};
  if (problem.nodes == 0 || !launchesAlike(problem)) return result;
  const double launch = problem.launch[0];
  double cost = costOf(problem, incumbent);
  // What every partition pays beside launches.
  PartitionProblem free = problem;
  std::fill(free.launch.begin(), free.launch.end(), 0.0);
  const double always = lowerBound(free, pairs);
  const auto boundOf = [&](int stages) {
    return stages > problem.nodes ? kNoPartition : stages * launch + always;
  };
  const auto nothingLeft = [&](int stages) { return boundOf(stages) >= cost - kNothing * (1 + cost); };
  // Where that cannot prove the best, it may still find it.
  const int clusters = 1 + *std::max_element(incumbent.begin(), incumbent.end());
  const int most = nothingLeft(kMostStages + 1) ? kMostStages : std::min(kMostStages, clusters);
  result.fewest = Windows(problem, pairs, problem.nodes).fewest();
  while (!nothingLeft(result.fewest) && result.fewest <= most && !deadline.passed()) {
    StageProgram program(problem, pairs, result.fewest);
    if (program.rows() > kMostRows) break;
    StageProgram::Solution solution = program.solve(cost, deadline);
    if (solution.cluster && !illegal(problem, *solution.cluster)) {
      if (const double better = costOf(problem, *solution.cluster); better < cost) {
        cost = better;
        result.cluster = std::move(*solution.cluster);
      }
    }
    if (!solution.complete) break;
    ++result.fewest;
  }
  result.bound = boundOf(result.fewest);
  return result;
}

}  // namespace kelpie::fusion

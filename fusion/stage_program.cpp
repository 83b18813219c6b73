#include "fusion/stage_program.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "fusion/budget_weights.h"
#include "fusion/twins.h"
#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr double kGreatestCost = 1e4;  ///< costs are scaled to that: GLPK's tolerances are absolute
constexpr int64_t kNanosecondsOfATerm = 220, kNanosecondsOfAPair = 10;

/// Of nodes that all come before another one, or all behind it, as many stages as they leave out, counted
/// from the end that they are at: each with the first stage it may have, and the share of a budget that it
/// takes. So many stages hold no more than as many budgets.
int stagesTaken(std::vector<std::pair<int, double>> nodes) {
  std::sort(nodes.begin(), nodes.end(), std::greater<>());
  int most = 0;
  double budgets = 0;
  for (const auto& [first, share] : nodes) {
    budgets += share;
    most = std::max(most, first - 1 + std::max(1, static_cast<int>(std::ceil(budgets - 1e-9))));
  }
  return most;
}

}  // namespace

StageWindows::StageWindows(const PartitionProblem& problem, const PairTable& pairs, int stages)
    : first(problem.nodes, 1), last(problem.nodes, stages) {
  std::vector<int> order(problem.nodes);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return pairs.rank(a) < pairs.rank(b); });
  const std::vector<std::vector<double>> weights = budgetWeights(problem);
  for (int v : order) {
    for (const std::vector<double>& weight : weights) {
      std::vector<std::pair<int, double>> before;
      for (int u = 0; u < problem.nodes; ++u) {
        if (!pairs.reaches(u, v)) continue;
        first[v] = std::max(first[v], first[u]);
        if (!pairs.canShare(u, v)) before.emplace_back(first[u], weight[u]);
      }
      first[v] = std::max(first[v], 1 + stagesTaken(std::move(before)));
    }
  }
  std::reverse(order.begin(), order.end());
  for (int u : order) {
    for (const std::vector<double>& weight : weights) {
      std::vector<std::pair<int, double>> behind;
      for (int v = 0; v < problem.nodes; ++v) {
        if (!pairs.reaches(u, v)) continue;
        last[u] = std::min(last[u], last[v]);
        if (!pairs.canShare(u, v)) behind.emplace_back(stages + 1 - last[v], weight[v]);
      }
      last[u] = std::min(last[u], stages - stagesTaken(std::move(behind)));
    }
  }
}

bool StageWindows::possible() const {
  return std::equal(first.begin(), first.end(), last.begin(), std::less_equal<>());
}

int StageWindows::fewest() const { return first.empty() ? 0 : *std::max_element(first.begin(), first.end()); }

std::vector<std::vector<int>> exclusions(const PartitionProblem& problem, const PairTable& pairs) {
  std::vector<std::vector<int>> result;
  BitMatrix covered(problem.nodes);
  for (int a = 0; a < problem.nodes; ++a) {
    for (int b = 0; b < a; ++b) {
      if (pairs.canShare(a, b) || pairs.reaches(a, b) || pairs.reaches(b, a) || covered.get(a, b)) continue;
      WorkTime::spend(kNanosecondsOfAPair * problem.nodes);
      std::vector<int> apart{a, b};
      for (int c = 0; c < problem.nodes; ++c) {
        const auto excludes = [&](int d) { return c != d && !pairs.canShare(c, d); };
        if (std::all_of(apart.begin(), apart.end(), excludes)) apart.push_back(c);
      }
      for (int c : apart)
        for (int d : apart) covered.set(c, d);
      std::sort(apart.begin(), apart.end());
      result.push_back(std::move(apart));
    }
  }
  return result;
}

StageProgram::StageProgram(const PartitionProblem& problem, const PairTable& pairs,
                           const std::vector<std::vector<int>>& exclusions, int stages)
    : problem_(problem),
      pairs_(pairs),
      stages_(stages),
      windows_(problem, pairs, stages),
      exclusions_(exclusions),
      twins_(twinClasses(problem, pairs)),
      share_(pairs.shareMatrix()),
      launches_(stages * problem.launch[0]),
      lp_(glp_create_prob(), glp_delete_prob),
      after_(static_cast<size_t>(problem.nodes) * stages, 0) {
  glp_set_obj_dir(lp_.get(), GLP_MIN);
  if (!windows_.possible()) return;
  for (int a = 0; a < problem.nodes; ++a) {
    for (int b = 0; b < problem.nodes; ++b) {
      if (windows_.last[a] >= windows_.first[b]) continue;
      share_.clear(a, b);
      share_.clear(b, a);
    }
  }
  double greatest = problem.launch[0];
  for (const Access& a : problem.accesses) greatest = std::max(greatest, a.cost);
  for (const Store& s : problem.stores) greatest = std::max(greatest, s.cost);
  scale_ = kGreatestCost / std::max(greatest, 1e-300);
  addNodes();
  addOrder();
  addTwins();
  addBudgets();
  addLoads();
  addStores();
  addLinks();
}

/// Adds `times` whether the node is in a stage behind k.
void StageProgram::addAfter(Sum& sum, int node, int k, double times) const {
  if (k < windows_.first[node]) {
    sum.constant += times;
  } else if (k < windows_.last[node]) {
    sum.terms[after_[static_cast<size_t>(node) * stages_ + k]] += times;
  }
}
/// The same for whether it is in stage k.
void StageProgram::addIn(Sum& sum, int node, int k, double times) const {
  addAfter(sum, node, k - 1, times);
  addAfter(sum, node, k, -times);
}

/// Whether two of those who have an array can never share.
bool StageProgram::someApart(const Store& store) const {
  std::vector<int> nodes = store.readers;
  nodes.push_back(store.producer);
  return std::any_of(nodes.begin(), nodes.end(), [&](int a) {
    return std::any_of(nodes.begin(), nodes.end(), [&](int b) { return a != b && !share_.get(a, b); });
  });
}

int StageProgram::column(double least, double cost, bool whole) {
  const int column = glp_add_cols(lp_.get(), 1);
  glp_set_col_bnds(lp_.get(), column, least == 1 ? GLP_FX : GLP_DB, least, 1);
  glp_set_obj_coef(lp_.get(), column, cost * scale_);
  if (whole) glp_set_col_kind(lp_.get(), column, GLP_IV);
  return column;
}

void StageProgram::atMost(glp_prob* lp, const Sum& sum, double most) {
  std::vector<int> columns(1);
  std::vector<double> values(1);
  double greatest = sum.constant;
  for (const auto& [column, value] : sum.terms) {
    if (value == 0) continue;
    columns.push_back(column);
    values.push_back(value);
    greatest += std::max(0.0, value);
  }
  WorkTime::spend(kNanosecondsOfATerm * static_cast<int64_t>(columns.size()));
  if (greatest <= most) return;
  const int row = glp_add_rows(lp, 1);
  glp_set_row_bnds(lp, row, GLP_UP, 0, most - sum.constant);
  glp_set_mat_row(lp, row, static_cast<int>(columns.size()) - 1, columns.data(), values.data());
}

void StageProgram::addNodes() {
  for (int v = 0; v < problem_.nodes; ++v) {
    for (int k = windows_.first[v]; k < windows_.last[v]; ++k) {
      variables_.push_back(column(0, 0, true));
      after_[static_cast<size_t>(v) * stages_ + k] = variables_.back();
      Sum sum;
      addAfter(sum, v, k, 1);
      addAfter(sum, v, k - 1, -1);
      atMost(sum, 0);
    }
  }
}

/// u is in no later stage than v, or in an earlier one.
void StageProgram::addOrder(int u, int v, bool earlier) {
  for (int k = 1; k <= stages_; ++k) {
    Sum sum;
    addAfter(sum, u, earlier ? k - 1 : k, 1);
    addAfter(sum, v, k, -1);
    atMost(sum, 0);
  }
}

void StageProgram::addOrder() {
  for (const PartitionEdge& e : problem_.edges)
    if (pairs_.canShare(e.from, e.to)) addOrder(e.from, e.to, false);
  // Of what a path parts, those pairs that do not follow from others on the path.
  for (int u = 0; u < problem_.nodes; ++u) {
    for (int v = 0; v < problem_.nodes; ++v) {
      if (!pairs_.reaches(u, v) || pairs_.canShare(u, v)) continue;
      bool follows = false;
      for (int w = 0; w < problem_.nodes && !follows; ++w) {
        follows =
            pairs_.reaches(u, w) && pairs_.reaches(w, v) && !(pairs_.canShare(u, w) && pairs_.canShare(w, v));
      }
      if (!follows) addOrder(u, v, true);
    }
  }
}

/// Of the partitions in which twins have changed places one is enough.
void StageProgram::addTwins() {
  for (const std::vector<int>& twins : twins_)
    for (size_t k = 1; k < twins.size(); ++k) addOrder(twins[k - 1], twins[k], false);
}

void StageProgram::addBudgets() {
  const std::vector<std::vector<double>> budgets = budgetWeights(problem_);
  for (int k = 1; k <= stages_; ++k) {
    for (const std::vector<double>& weights : budgets) {
      Sum taken;
      for (int v = 0; v < problem_.nodes; ++v) addIn(taken, v, k, weights[v]);
      atMost(taken, 1);
    }
  }
}

/// Paid in each stage that has a reader and not the producer.
void StageProgram::addLoads() {
  for (size_t number = 0; number < problem_.accesses.size(); ++number) {
    const Access& a = problem_.accesses[number];
    for (int k = 1; k <= stages_; ++k) {
      int load = 0;
      for (int r : a.readers) {
        if (!mayBeIn(r, k)) continue;
        if (load == 0) {
          load = column(0, a.cost, false);
          loads_.push_back({number, k, load});
        }
        Sum sum;
        addIn(sum, r, k, 1);
        if (a.producer >= 0 && pairs_.canShare(a.producer, r)) addIn(sum, a.producer, k, -1);
        sum.terms[load] -= 1;
        atMost(sum, 0);
      }
    }
  }
}

/// Paid if a reader is in a later stage than the producer: always, if not all of them can share.
void StageProgram::addStores() {
  for (const Store& s : problem_.stores) {
    const bool always = s.outlives || someApart(s);
    const int store = column(always ? 1 : 0, s.cost, false);
    stores_.push_back(store);
    for (int r : s.readers) {
      for (int k = 1; k < stages_ && !always; ++k) {
        Sum sum;
        addAfter(sum, r, k, 1);
        addAfter(sum, s.producer, k, -1);
        sum.terms[store] -= 1;
        atMost(sum, 0);
      }
    }
  }
}

void StageProgram::addLinks() {
  Links stores, loads;
  std::vector<std::vector<int>> stored, loaded;
  for (size_t k = 0; k < stores_.size(); ++k) {
    if (glp_get_col_type(lp_.get(), stores_[k]) == GLP_FX) continue;
    stored.push_back(problem_.stores[k].readers);
    stored.back().push_back(problem_.stores[k].producer);
    stores.cut.emplace_back().terms[stores_[k]] = 1;
  }
  for (const Access& a : problem_.accesses) {
    loaded.push_back(a.readers);
    if (a.producer >= 0) loaded.back().push_back(a.producer);
    // From outside the region one load is for all who share.
    loads.cut.emplace_back().constant = a.producer >= 0 ? 0 : -1;
  }
  for (const Load& load : loads_) loads.cut[load.access].terms[load.column] = 1;
  stores.cuts = std::make_unique<LinkCuts>(problem_, pairs_, share_, std::move(stored));
  loads.cuts = std::make_unique<LinkCuts>(problem_, pairs_, share_, std::move(loaded));
  links_.push_back(std::move(stores));
  links_.push_back(std::move(loads));
}

std::optional<std::vector<double>> StageProgram::solution(const Assignment& cluster) const {
  const std::vector<int> order = clusterOrder(problem_, cluster).value();
  if (static_cast<int>(order.size()) > stages_) return std::nullopt;
  std::vector<int> place(order.size());
  for (size_t k = 0; k < order.size(); ++k) place[order[k]] = static_cast<int>(k) + 1;
  std::vector<int> stages(problem_.nodes);
  for (int v = 0; v < problem_.nodes; ++v) stages[v] = place[cluster[v]];
  for (const std::vector<int>& twins : twins_) {
    std::vector<int> sorted;
    for (int v : twins) sorted.push_back(stages[v]);
    std::sort(sorted.begin(), sorted.end());
    for (size_t k = 0; k < twins.size(); ++k) stages[twins[k]] = sorted[k];
  }
  const auto stage = [&](int v) { return stages[v]; };
  std::vector<double> values(glp_get_num_cols(lp_.get()) + 1, 0);
  for (int v = 0; v < problem_.nodes; ++v) {
    for (int k = windows_.first[v]; k < windows_.last[v]; ++k)
      values[after_[static_cast<size_t>(v) * stages_ + k]] = stage(v) > k ? 1 : 0;
  }
  for (const Load& load : loads_) {
    const Access& a = problem_.accesses[load.access];
    const bool read =
        std::any_of(a.readers.begin(), a.readers.end(), [&](int r) { return stage(r) == load.stage; });
    values[load.column] = read && (a.producer < 0 || stage(a.producer) != load.stage) ? 1 : 0;
  }
  for (size_t k = 0; k < stores_.size(); ++k) {
    const Store& s = problem_.stores[k];
    const bool later =
        std::any_of(s.readers.begin(), s.readers.end(), [&](int r) { return stage(r) != stage(s.producer); });
    values[stores_[k]] = s.outlives || later ? 1 : 0;
  }
  return values;
}

Assignment StageProgram::partition(glp_prob* lp, double (*value)(glp_prob*, int)) const {
  Assignment cluster(problem_.nodes, 0);
  for (int v = 0; v < problem_.nodes; ++v) {
    cluster[v] = windows_.first[v];
    for (int k = windows_.first[v]; k < windows_.last[v]; ++k)
      cluster[v] += value(lp, after_[static_cast<size_t>(v) * stages_ + k]) > 0.5 ? 1 : 0;
  }
  return normalised(cluster);
}

}  // namespace kelpie::fusion

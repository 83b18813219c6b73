#include "fusion/textbook.h"

#include <glpk.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

namespace kelpie::fusion {
namespace {

class Model {
 public:
  explicit Model(const TextbookProblem& problem) : p_(problem), lp_(glp_create_prob(), glp_delete_prob) {
    glp_set_obj_dir(lp_.get(), GLP_MIN);
    const double n = p_.nodes;
    for (int i = 0; i < p_.nodes; ++i) {
      for (int j = i + 1; j < p_.nodes; ++j)
        x_[{i, j}] = column(GLP_BV, 0, 1, isFixed(i, j) ? 0 : weight(i, j));
    }
    for (int i = 0; i < p_.nodes; ++i) {
      position_.push_back(column(GLP_CV, 0, n, 0));
      stored_.push_back(column(GLP_BV, 0, 1, p_.makesArray[i] ? n : 0));
    }
    addConstraints();
  }

  TextbookSolution solve(double seconds) {
    const auto start = std::chrono::steady_clock::now();
    glp_iocp parameters;
    glp_init_iocp(&parameters);
    parameters.msg_lev = GLP_MSG_OFF;
    parameters.presolve = GLP_ON;
    parameters.tm_lim = static_cast<int>(seconds * 1000);
    glp_term_out(GLP_OFF);
    glp_intopt(lp_.get(), &parameters);
    TextbookSolution solution;
    solution.optimal = glp_mip_status(lp_.get()) == GLP_OPT;
    solution.objective = glp_mip_obj_val(lp_.get());
    solution.cluster = separate(p_.nodes);
    for (int j = 0; j < p_.nodes && (solution.optimal || glp_mip_status(lp_.get()) == GLP_FEAS); ++j) {
      for (int i = 0; i < j; ++i) {
        if (glp_mip_col_val(lp_.get(), x_.at({i, j})) > 0.5) continue;
        solution.cluster[j] = solution.cluster[i];
        break;
      }
    }
    solution.cluster = normalised(solution.cluster);
    solution.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return solution;
  }

 private:
  using Row = std::vector<std::pair<int, double>>;

  int column(int kind, double low, double high, double cost) {
    const int c = glp_add_cols(lp_.get(), 1);
    glp_set_col_kind(lp_.get(), c, kind);
    glp_set_col_bnds(lp_.get(), c, GLP_DB, low, high);
    glp_set_obj_coef(lp_.get(), c, cost);
    return c;
  }
  void row(const Row& entries, int type, double bound) {
    std::vector<int> columns{0};
    std::vector<double> values{0};
    for (auto [c, v] : entries) {
      columns.push_back(c);
      values.push_back(v);
    }
    const int r = glp_add_rows(lp_.get(), 1);
    glp_set_row_bnds(lp_.get(), r, type, bound, bound);
    glp_set_mat_row(lp_.get(), r, static_cast<int>(entries.size()), columns.data(), values.data());
  }
  void fixApart(int i, int j) {
    if (i != j) glp_set_col_bnds(lp_.get(), x(i, j), GLP_FX, 1, 1);
  }
  int x(int i, int j) const { return x_.at({std::min(i, j), std::max(i, j)}); }

  /// Pairs with a blocking edge on some path between them, and pairs of unrelated sizes.
  bool isFixed(int i, int j) const {
    for (auto [a, b] : p_.never) {
      if (std::minmax(a, b) == std::minmax(i, j)) return true;
    }
    std::vector<int> reached(p_.nodes, 0);  // 1: by fusible edges only, 2: over a blocking edge
    reached[i] = 1;
    for (int v = i; v < p_.nodes; ++v) {
      for (const PartitionEdge& e : p_.edges) {
        if (e.from == v && reached[v])
          reached[e.to] = std::max({reached[e.to], reached[v], e.fusible ? 1 : 2});
      }
    }
    return reached[j] == 2;
  }

  double weight(int i, int j) const {
    const double n = p_.nodes;
    for (const PartitionEdge& e : p_.edges) {
      if (e.from == i && e.to == j) return n * n;
    }
    for (const std::vector<int>& readers : p_.sharedInputs) {
      const auto reads = [&](int v) { return std::find(readers.begin(), readers.end(), v) != readers.end(); };
      if (reads(i) && reads(j)) return n * n;
    }
    return 1;
  }

  void addConstraints() {
    const double n = p_.nodes;
    std::map<std::pair<int, int>, bool> edges;
    for (const PartitionEdge& e : p_.edges) {
      const auto [it, fresh] = edges.try_emplace({e.from, e.to}, e.fusible);
      if (!fresh) it->second &= e.fusible;
    }
    for (auto [pair, var] : x_) {
      const auto [i, j] = pair;
      const int to = position_[j], from = position_[i];
      if (isFixed(i, j)) fixApart(i, j);
      const auto edge = edges.find(pair);
      if (edge == edges.end()) {
        row({{to, 1}, {from, -1}, {var, -n}}, GLP_UP, 0);
        row({{to, 1}, {from, -1}, {var, n}}, GLP_LO, 0);
      } else if (edge->second) {
        row({{to, 1}, {from, -1}, {var, -n}}, GLP_UP, 0);
        row({{to, 1}, {from, -1}, {var, -1}}, GLP_LO, 0);
        row({{var, 1}, {stored_[i], -1}}, GLP_UP, 0);
      } else {
        row({{to, 1}, {from, -1}}, GLP_LO, 1);
        glp_set_col_bnds(lp_.get(), stored_[i], GLP_FX, 1, 1);
      }
    }
    for (const TextbookProblem::Sizes& s : p_.sizes) {
      const auto impliedBy = [&](int i, int j) {
        if (i != j) row({{x(i, j), 1}, {x(s.a, s.b), -1}}, GLP_UP, 0);
      };
      impliedBy(s.parentA, s.a);
      impliedBy(s.parentB, s.b);
      impliedBy(s.parentA, s.parentB);
    }
  }

  const TextbookProblem& p_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  std::map<std::pair<int, int>, int> x_;
  std::vector<int> position_, stored_;
};

}  // namespace

TextbookSolution solveTextbook(const TextbookProblem& problem, double seconds) {
  return Model(problem).solve(seconds);
}

}  // namespace kelpie::fusion

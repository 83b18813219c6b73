// Rows of the program over stages that are added when its relaxation breaks them.
#include <algorithm>
#include <utility>

#include "fusion/stage_program.h"
#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr double kBroken = 1e-5;     ///< by more than that: a requirement
constexpr double kCutBroken = 1e-2;  ///< a cut, which has to be worth its row
constexpr int64_t kNanosecondsOfATerm = 3;

}  // namespace

double StageProgram::valueOf(glp_prob* lp, const Sum& sum) {
  double value = sum.constant;
  for (const auto& [column, times] : sum.terms) value += times * glp_get_col_prim(lp, column);
  return value;
}

StageProgram::Sum StageProgram::requirement(const Requirement& r, int k) const {
  Sum sum;
  addIn(sum, r.a, k, 1);
  addIn(sum, r.b, k, 1);
  addIn(sum, r.third, k, -1);
  return sum;
}

bool StageProgram::addBrokenRules(glp_prob* lp) const {
  const int before = glp_get_num_rows(lp);
  for (const Requirement& r : problem_.requirements) {
    for (int k = 1; k <= stages_ && pairs_.canShare(r.a, r.b); ++k) {
      if (!mayBeIn(r.a, k) || !mayBeIn(r.b, k)) continue;
      const Sum sum = requirement(r, k);
      if (valueOf(lp, sum) > 1 + kBroken) atMost(lp, sum, 1);
    }
  }
  size_t terms = 0;
  for (const std::vector<int>& set : exclusions_) terms += set.size();
  WorkTime::spend(kNanosecondsOfATerm * stages_ * static_cast<int64_t>(terms));
  for (int k = 1; k <= stages_; ++k) {
    std::vector<double> in(static_cast<size_t>(problem_.nodes), 0);  // how much of each node is in the stage
    for (int v = 0; v < problem_.nodes; ++v) {
      if (mayBeIn(v, k)) in[static_cast<size_t>(v)] = afterIn(lp, v, k - 1) - afterIn(lp, v, k);
    }
    for (const std::vector<int>& set : exclusions_) {
      double total = 0;
      for (int v : set) total += in[static_cast<size_t>(v)];
      if (total <= 1 + kBroken) continue;
      Sum sum;
      for (int v : set)
        if (mayBeIn(v, k)) addIn(sum, v, k, 1);
      atMost(lp, sum, 1);
    }
  }
  return glp_get_num_rows(lp) > before;
}

/// How much of a node is behind stage k.
double StageProgram::afterIn(glp_prob* lp, int node, int k) const {
  if (k < windows_.first[node]) return 1;
  if (k >= windows_.last[node]) return 0;
  return glp_get_col_prim(lp, after_[static_cast<size_t>(node) * stages_ + k]);
}

bool StageProgram::addBrokenCuts(glp_prob* lp) const {
  const int before = glp_get_num_rows(lp);
  for (const Links& links : links_) {
    std::vector<double> cut;
    for (const Sum& sum : links.cut) cut.push_back(valueOf(lp, sum));
    for (const LinkCut& broken : links.cuts->broken(cut, kCutBroken)) {
      Sum sum;  // of what must be 1 at least, with the other sign
      for (const auto& [link, times] : broken) {
        sum.constant -= times * links.cut[link].constant;
        for (const auto& [column, one] : links.cut[link].terms) sum.terms[column] -= times * one;
      }
      atMost(lp, sum, -1);
    }
  }
  return glp_get_num_rows(lp) > before;
}

}  // namespace kelpie::fusion

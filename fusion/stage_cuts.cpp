// Rows of the program over stages that are added when its relaxation breaks them.
#include <algorithm>
#include <utility>

#include "fusion/stage_program.h"

namespace kelpie::fusion {
namespace {

constexpr double kBroken = 1e-5;     ///< by more than that: a requirement
constexpr double kCutBroken = 1e-2;  ///< a cut, which has to be worth its row

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

bool StageProgram::addBrokenRequirements(glp_prob* lp) const {
  const int before = glp_get_num_rows(lp);
  for (const Requirement& r : problem_.requirements) {
    for (int k = 1; k <= stages_ && pairs_.canShare(r.a, r.b); ++k) {
      if (!mayBeIn(r.a, k) || !mayBeIn(r.b, k)) continue;
      const Sum sum = requirement(r, k);
      if (valueOf(lp, sum) > 1 + kBroken) atMost(lp, sum, 1);
    }
  }
  return glp_get_num_rows(lp) > before;
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

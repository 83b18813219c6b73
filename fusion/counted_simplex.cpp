#include "fusion/counted_simplex.h"

#include <algorithm>
#include <limits>

namespace kelpie::fusion {
namespace {

// Fitted to what 800 calls with up to 38,000 rows took, and 1,600 steps of searches.

int64_t nanosecondsOfAnIteration(glp_prob* lp) {
  constexpr int64_t kCached = 200'000;  // nonzeros: of more, few are in caches when they are read again
  const int64_t nonzeros = glp_get_num_nz(lp);
  return 3'000 + 45 * int64_t{glp_get_num_rows(lp)} + 2 * nonzeros +
         6 * nonzeros * nonzeros / (nonzeros + kCached);
}

int64_t nanosecondsOfACall(glp_prob* lp, bool presolve) {
  return 10'000 + 300 * int64_t{glp_get_num_rows(lp)} + (presolve ? 600 : 120) * int64_t{glp_get_num_nz(lp)};
}

/// Of a search's tree, beside iterations.
int64_t nanosecondsOfANode(glp_prob* lp) {
  return 10'000 + 400 * int64_t{glp_get_num_rows(lp)} + 250 * int64_t{glp_get_num_nz(lp)};
}

}  // namespace

int solveSimplex(glp_prob* lp, glp_smcp parameters, const Deadline& deadline) {
  const int64_t iteration = nanosecondsOfAnIteration(lp);
  const int64_t call = nanosecondsOfACall(lp, parameters.presolve == GLP_ON);
  const int64_t most = (deadline.nanosecondsLeft() - call) / iteration;
  if (most <= 0) {
    WorkTime::spend(deadline.nanosecondsLeft());
    return GLP_EITLIM;
  }
  parameters.it_lim = static_cast<int>(std::min(most, int64_t{std::numeric_limits<int>::max()}));
  parameters.tm_lim = deadline.millisecondsLeft();
  const int before = glp_get_it_cnt(lp);
  const int status = glp_simplex(lp, &parameters);
  // What stopped for time stopped because none is left.
  const bool stopped = status == GLP_EITLIM || status == GLP_ETMLIM;
  WorkTime::spend(stopped ? deadline.nanosecondsLeft() : call + iteration * (glp_get_it_cnt(lp) - before));
  return status;
}

bool CountedTree::goesOn(glp_tree* tree) {
  glp_prob* lp = glp_ios_get_prob(tree);
  const int iterations = glp_get_it_cnt(lp);
  if (iterations_ >= 0) WorkTime::spend(nanosecondsOfAnIteration(lp) * (iterations - iterations_));
  if (glp_ios_reason(tree) == GLP_ISELECT) WorkTime::spend(nanosecondsOfANode(lp));
  iterations_ = iterations;
  if (!deadline_.passed()) return true;
  glp_ios_terminate(tree);
  return false;
}

}  // namespace kelpie::fusion

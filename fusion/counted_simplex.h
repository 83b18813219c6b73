// GLPK's simplex method, and its search over integer programs, in counted time (work_time.h).
#pragma once

#include <glpk.h>

#include "fusion/deadline.h"

namespace kelpie::fusion {

/// For `solveSimplex`: no output on the terminal. GLP_DUALP where rows were added to a program that was
/// optimal.
inline glp_smcp silentSimplex(int method = GLP_PRIMAL) {
  glp_smcp parameters;
  glp_init_smcp(&parameters);
  parameters.msg_lev = GLP_MSG_OFF;
  parameters.meth = method;
  return parameters;
}

/// glp_simplex, which gives up (and does not return 0) when the deadline has passed.
int solveSimplex(glp_prob* lp, glp_smcp parameters, const Deadline& deadline);

/// What a callback of GLPK's search counts.
class CountedTree {
 public:
  explicit CountedTree(const Deadline& deadline) : deadline_(deadline) {}
  /// Counts what the search has done since the last call. False, and the search is told to end, if the
  /// deadline has passed.
  bool goesOn(glp_tree* tree);

 private:
  const Deadline& deadline_;
  int iterations_ = -1;
};

}  // namespace kelpie::fusion

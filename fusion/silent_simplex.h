// Parameters of GLPK's simplex method that all solvers here begin with: no output on the terminal.
#pragma once

#include <glpk.h>

namespace kelpie::fusion {

/// For `glp_simplex`; GLP_DUALP where rows were added to a program that was optimal.
inline glp_smcp silentSimplex(int method = GLP_PRIMAL) {
  glp_smcp parameters;
  glp_init_smcp(&parameters);
  parameters.msg_lev = GLP_MSG_OFF;
  parameters.meth = method;
  return parameters;
}

}  // namespace kelpie::fusion

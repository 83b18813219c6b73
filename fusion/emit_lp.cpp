#include "fusion/emit_lp.h"

#include "fusion/representatives_model.h"

namespace kelpie::fusion {

bool emitLp(const PartitionProblem& problem, const PairTable& pairs, const std::string& path) {
  RepresentativesModel model(problem, pairs);
  model.complete();
  glp_term_out(GLP_OFF);
  return glp_write_lp(model.lp(), nullptr, path.c_str()) == 0;
}

}  // namespace kelpie::fusion

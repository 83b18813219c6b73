// The integer program behind solve_ilp.h for one component: representatives, solved with GLPK.
//
// In: a problem whose pairs span one component, a legal incumbent, a lower bound, a time limit.
// Out: the best clustering found, never worse than the incumbent, and a bound no legal clustering is below.
#pragma once

#include "fusion/partition.h"

namespace kelpie::fusion {

struct IlpSearch {
  Assignment cluster;
  double bound = 0;
  int columns = 0, rows = 0, cuts = 0;
};

IlpSearch searchRepresentatives(const PartitionProblem& problem, const PairTable& pairs,
                                const Assignment& incumbent, double lower, double seconds);

}  // namespace kelpie::fusion

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

/// Many of `nodes` that all exclude each other: the longest chain of them along one path, or more, found
/// greedily.
std::vector<int> manyApart(const PairTable& pairs, std::vector<int> nodes);
/// How many clusters at least load an array in this way.
int fewestLoads(const Access& access, const PairTable& pairs);
/// Whether some reader can never be with the producer, or the array outlives the region.
bool alwaysStored(const Store& store, const PairTable& pairs);

}  // namespace kelpie::fusion

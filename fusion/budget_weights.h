// What nodes take of a cluster's budget, as shares of it that bound better than what they are.
//
// Of nodes that take 20 of 64 three fit, not 3.2. A dual feasible function f maps shares to shares such that
// what fits still does: sum of x <= 1 implies sum of f(x) <= 1. So every one of them gives another budget
// that each legal cluster keeps (Fekete and Schepers, Math. Programming 91, 2001, their u^(k)):
//
//     f_k(x) = x  if (k + 1) x is whole,  else  floor((k + 1) x) / k
//
// In the example f_3(20/64) = 1/3, and three of them fill the cluster.
#pragma once

#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// By function, by node; the first are the shares themselves, of others only those that make some share more.
std::vector<std::vector<double>> budgetWeights(const PartitionProblem& problem);

}  // namespace kelpie::fusion

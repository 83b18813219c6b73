// From a cluster to one kernel: collects the SOACs of its statements and fuses them by the rules of
// fusion/rules.h.
//
// In: launches of one cluster in program order, all legal together (fusion/dependence_graph.h), and which of
// their results are needed outside. Out: one kernel that obeys the rules for kernels after fusion
// (lcu::Kernel), and the names of the rules applied, in order.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/lcu.h"

namespace kelpie::fusion {

struct RewrittenKernel {
  lcu::Kernel kernel;
  std::vector<std::string> rules;
};

RewrittenKernel rewriteCluster(const std::vector<const lcu::Kernel*>& members,
                               const std::set<lcu::VarId>& needed, lcu::Program& program);

}  // namespace kelpie::fusion

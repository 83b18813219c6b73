// What was found about clustering problems before.
//
// A program's forms are compiled one by one, each with the functions that it calls, and a function that calls
// itself is there for one instance and for many: regions are often the same but for names. Their problems
// have the same numbers then, and what is the best schedule, and what others would cost, depends on nothing
// else.
//
// In: a problem. Out: a place for what is known of it.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "fusion/partition.h"

namespace kelpie::fusion {

/// What a search of counted work found (CheapestTogether::of).
struct FoundCost {
  double cost = 0;
  bool proven = false;
  int64_t steps = 0;  ///< that it spent
};
/// By the nodes that are to be together, behind the steps that the search was allowed.
using FoundCosts = std::map<std::vector<int64_t>, FoundCost>;

class SolvedProblem {
 public:
  /// Of a way to solve it, which `way` names, within `seconds`; null: not solved so, or a longer search may
  /// find more.
  const Partition* partition(const std::string& way, double seconds) const;
  void add(const std::string& way, double seconds, const Partition& partition);
  /// Of searches that begin with these schedules known.
  FoundCosts& costs(const Assignment& chosen, const std::vector<Partition>& known);

 private:
  struct Solution {
    Partition partition;
    double seconds;  ///< that the search was allowed
  };
  std::map<std::string, Solution> solutions_;
  std::map<std::string, FoundCosts> costs_;
};

class SolvedProblems {
 public:
  /// Lives until this is asked for another one.
  SolvedProblem& of(const PartitionProblem& problem);

 private:
  std::unordered_map<std::string, SolvedProblem> problems_;
  size_t bytes_ = 0;  ///< of texts
};

}  // namespace kelpie::fusion

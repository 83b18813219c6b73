#include "fusion/budget_weights.h"

#include <algorithm>
#include <cmath>

namespace kelpie::fusion {
namespace {

constexpr int kFunctions = 8;
constexpr double kWhole = 1e-9;  ///< nearer to a whole number is one

double dualFeasible(int k, double share) {
  const double scaled = (k + 1) * share;
  return std::abs(scaled - std::round(scaled)) < kWhole ? share : std::floor(scaled) / k;
}

}  // namespace

std::vector<std::vector<double>> budgetWeights(const PartitionProblem& problem) {
  std::vector<double> shares;
  for (double weight : problem.weight)
    shares.push_back(weight > 0 ? std::min(1.0, weight / problem.budget) : 0);
  std::vector<std::vector<double>> result{shares};
  for (int k = 1; k <= kFunctions; ++k) {
    std::vector<double> mapped;
    bool more = false;
    for (double share : shares) {
      mapped.push_back(dualFeasible(k, share));
      more |= mapped.back() > share + kWhole;
    }
    if (more) result.push_back(std::move(mapped));
  }
  return result;
}

}  // namespace kelpie::fusion

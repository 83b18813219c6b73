#include "fusion/cluster_relaxation.h"

#include <algorithm>

#include "fusion/parallel.h"

namespace kelpie::fusion {
namespace {

constexpr double kTolerance = 1e-9;
constexpr double kSmoothing = 0.6;        ///< share of the best prices
constexpr double kClose = 0.2;            ///< of what is left to the incumbent
constexpr double kUnlikely = 0.5;         ///< of that, costs of a cluster after prices
constexpr double kLeastViolation = 1e-2;  ///< of a cut
constexpr int64_t kManySteps = 5000,
                  kSteps[] = {40, 1000, kManySteps};  ///< minimum cuts for one representative
constexpr int kRoundsToABound = 10;                   ///< a good bound is worth more steps now and then
constexpr int64_t kStepsForACandidate = 40;

}  // namespace

bool ClusterRelaxation::generate(double enough, const Deadline& deadline) {
  const auto close = [&] {
    const double open = std::max(0.0, enough - value_);
    return bound_ >= enough || value_ - bound_ <= kClose * open + kTolerance * (1 + value_);
  };
  for (int round = 1;; ++round) {
    if (deadline.passed()) return false;
    const std::optional<double> value = program_.relax(deadline.millisecondsLeft());
    if (!value) return false;
    value_ = *value;
    if (close()) return true;
    const std::vector<double> duals = program_.duals();
    // Smoothed first, then as they are; what is found quickly first, all of it only when that is nothing.
    bool added = false;
    for (const double smoothing : {kSmoothing, 0.0}) {
      if (smoothing > 0 && bestDuals_.empty()) continue;
      std::vector<double> mixed = duals;
      for (size_t k = 0; k < duals.size() && smoothing > 0; ++k)
        mixed[k] += smoothing * ((k < bestDuals_.size() ? bestDuals_[k] : 0) - duals[k]);
      Pricing pricing(problem_.nodes);
      for (const int64_t steps : kSteps) {
        if (steps < kManySteps && round % kRoundsToABound == 0) continue;
        added = price(mixed, steps, pricing);
        if (bound_ >= enough) return true;
        if (added || pricing.complete) break;
      }
      if (added) break;
    }
    if (!added) return true;
  }
}

/// Adds the cheapest cluster of each representative at these duals, if it improves the program. Looks only at
/// those that have not been searched to the end.
bool ClusterRelaxation::price(const std::vector<double>& duals, int64_t mostSteps, Pricing& pricing) {
  const ClusterPrices prices = program_.prices(duals);
  forEachNumber(problem_.nodes, [&](int r) {
    if (pricing.searched[r]) return;
    int64_t steps = mostSteps;
    pricing.cheapest[r] = pricing_.cheapest(r, prices, 0, steps);
    pricing.searched[r] = steps > 0;
  });
  double bound = program_.worth(duals);
  bool added = false;
  pricing.complete = true;
  for (int r = 0; r < problem_.nodes; ++r) {
    const ClusterPricing::Cheapest& cheapest = pricing.cheapest[r];
    bound += cheapest.bound;
    pricing.complete &= pricing.searched[r] != 0;
    if (cheapest.cost < -kTolerance) added |= program_.add(cheapest.members);
  }
  if (bestDuals_.empty() || bound > bound_) {
    bestDuals_ = duals;
    bound_ = bound;
  }
  return added;
}

bool ClusterRelaxation::addCuts(double enough) {
  const std::vector<OrderCut> cuts = orderCuts_.violated(program_.shares(), kLeastViolation);
  if (cuts.empty()) return false;
  program_.dropClusters(kUnlikely * std::max(0.0, enough - value_));
  program_.dropLooseCuts(bestDuals_);
  for (const OrderCut& cut : cuts) program_.addCut(cut);
  return true;
}

ClusterPrices ClusterRelaxation::bestPrices() const {
  std::vector<double> duals = bestDuals_;
  duals.resize(program_.rows(), 0);
  return program_.prices(duals);
}

std::vector<ClusterPricing::Forced> ClusterRelaxation::forced(double cost) const {
  const ClusterPrices prices = bestPrices();
  const double room = cost - bound_ + kTolerance * (1 + cost);
  std::vector<std::vector<const std::vector<int>*>> known(problem_.nodes);
  for (int k = 0; k < static_cast<int>(program_.clusters().size()); ++k) {
    if (program_.reducedCost(k, prices) >= room) continue;
    for (int v : program_.clusters()[k]) known[v].push_back(&program_.clusters()[k]);
  }
  std::vector<ClusterPricing::Forced> result(problem_.nodes);
  forEachNumber(problem_.nodes, [&](int v) { result[v] = pricing_.forced(v, prices, room, known[v]); });
  return result;
}

std::optional<std::vector<std::vector<int>>> ClusterRelaxation::candidates(double cost, size_t most) const {
  const ClusterPrices prices = bestPrices();
  const double room = cost - bound_ + kTolerance * (1 + cost);
  std::vector<std::vector<int>> found;
  int64_t steps = kStepsForACandidate * static_cast<int64_t>(most);
  for (int r = 0; r < problem_.nodes; ++r) {
    const bool all = pricing_.forEachBelow(r, prices, room, steps, [&](std::vector<int> members) {
      found.push_back(std::move(members));
      if (found.size() > most) steps = 0;
    });
    if (!all) return std::nullopt;
  }
  return found;
}

}  // namespace kelpie::fusion

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
constexpr int kForcedAtATime = 8, kForcedAThread = 4;

// Of the ascent before the first program:
constexpr double kShareOfAscent = 0.3;  ///< of the time left, at most
constexpr int kMostAscents = 400;
constexpr double kFirstStep = 1, kShorter = 0.7, kLonger = 1.1, kShortest = 0.01;  ///< of what closes the gap
constexpr double kSettled =
    0.1;  ///< steps below are near good prices: clusters found there are worth knowing
constexpr int kMostFailures = 10;
constexpr int kManyNodes = 250;  ///< from here on a round of prices takes long
constexpr int kPricedAtATime = 8, kPricedAThread = 4, kFewPricedAThread = 16;
constexpr double kNew = 0.3;  ///< share of the last answer in the direction

}  // namespace

// Prices from the clusters of the program's solution, then along what the cheapest clusters have of each
// node: too much of it lowers its price, too little raises it.
void ClusterRelaxation::ascend(double enough, const Deadline& deadline) {
  const Deadline mine(kShareOfAscent * deadline.secondsLeft());
  if (!program_.relax(deadline)) return;
  const int n = problem_.nodes;
  std::vector<double> duals(program_.rows(), 0), alone(n), direction(n, 0);
  for (int v = 0; v < n; ++v) alone[v] = pricing_.costOf({v});
  for (const ClusterShare& c : program_.shares()) {
    double sum = 0;
    for (int v : c.members) sum += alone[v];
    for (int v : c.members) duals[v] = sum > 0 ? pricing_.costOf(c.members) * alone[v] / sum : 0;
  }
  double length = kFirstStep;
  int failures = 0;
  for (int round = 0; round < kMostAscents && length > kShortest && !mine.passed(); ++round) {
    const double before = bound_;
    Pricing pricing(n);
    price(duals, kSteps[0], length < kSettled, mine, pricing);
    if (bound_ >= enough || mine.passed()) return;
    std::vector<double> missing(n, 1);
    for (const ClusterPricing::Cheapest& c : pricing.cheapest) {
      for (int v : c.members) missing[v] -= 1;
    }
    double along = 0, squares = 0;
    for (int v = 0; v < n; ++v) {
      along += missing[v] * direction[v];
      direction[v] += (round == 0 ? 1 : kNew) * (missing[v] - direction[v]);
      squares += alone[v] * direction[v] * direction[v];
    }
    if (bound_ > before) {
      failures = 0;
      if (along > 0) length *= kLonger;
    } else if (++failures == kMostFailures) {
      failures = 0;
      length *= kShorter;
    }
    if (squares == 0) return;
    const double step = length * (enough - bound_) / squares;
    for (int v = 0; v < n; ++v) duals[v] = bestDuals_[v] + step * alone[v] * direction[v];
  }
}

bool ClusterRelaxation::generate(double enough, const Deadline& deadline) {
  const auto close = [&] {
    const double open = std::max(0.0, enough - value_);
    return bound_ >= enough || value_ - bound_ <= kClose * open + kTolerance * (1 + value_);
  };
  for (int round = 1;; ++round) {
    if (deadline.passed()) return false;
    const std::optional<double> value = program_.relax(deadline);
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
        added = price(mixed, steps, true, deadline, pricing);
        if (bound_ >= enough) return true;
        if (added || pricing.complete) break;
      }
      if (added) break;
    }
    if (!added) return true;
  }
}

/// Finds the cheapest cluster of each representative at these duals; with `add`, adds it if it improves the
/// program. Looks only at those that have not been searched to the end. Nothing, if the time is up before.
bool ClusterRelaxation::price(const std::vector<double>& duals, int64_t mostSteps, bool add,
                              const Deadline& deadline, Pricing& pricing) {
  const ClusterPrices prices = program_.prices(duals);
  // By some at a time, which all see what time is left: they do not see how much of it the others take.
  const bool many = problem_.nodes >= kManyNodes;
  const int atATime = many ? kPricedAtATime : problem_.nodes;
  for (int first = 0; first < problem_.nodes; first += atATime) {
    if (deadline.passed()) {
      pricing.complete = false;
      return false;
    }
    const auto priceOne = [&](int k) {
      const int r = first + k;
      if (pricing.searched[r]) return;
      int64_t steps = mostSteps;
      pricing.cheapest[r] = pricing_.cheapest(r, prices, 0, steps, &deadline);
      pricing.searched[r] = steps > 0 ? 1 : 0;
    };
    forEachNumber(std::min(atATime, problem_.nodes - first), priceOne,
                  many ? kPricedAThread : kFewPricedAThread);
  }
  double bound = program_.worth(duals);
  bool added = false;
  pricing.complete = true;
  for (int r = 0; r < problem_.nodes; ++r) {
    const ClusterPricing::Cheapest& cheapest = pricing.cheapest[r];
    bound += cheapest.bound;
    pricing.complete &= pricing.searched[r] != 0;
    if (add && cheapest.cost < -kTolerance) added |= program_.add(cheapest.members);
    if (add)
      for (auto& o : cheapest.others) program_.add(o);
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

std::vector<ClusterPricing::Forced> ClusterRelaxation::forced(double cost, const Deadline& deadline) const {
  const ClusterPrices prices = bestPrices();
  const double room = cost - bound_ + kTolerance * (1 + cost);
  std::vector<std::vector<const std::vector<int>*>> known(problem_.nodes);
  for (int k = 0; k < static_cast<int>(program_.clusters().size()); ++k) {
    if (program_.reducedCost(k, prices) >= room) continue;
    for (int v : program_.clusters()[k]) known[v].push_back(&program_.clusters()[k]);
  }
  std::vector<ClusterPricing::Forced> result(problem_.nodes);
  // By few at a time, which all see what time is left: they do not see how much of it the others take.
  for (int first = 0; first < problem_.nodes; first += kForcedAtATime) {
    forEachNumber(
        std::min(kForcedAtATime, problem_.nodes - first),
        [&](int k) {
          result[first + k] = pricing_.forced(first + k, prices, room, known[first + k], deadline);
        },
        kForcedAThread);
  }
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

#include "fusion/solve_part.h"

#include <algorithm>

#include "fusion/anneal.h"
#include "fusion/counted_search.h"
#include "fusion/deadline.h"
#include "fusion/lower_bound.h"
#include "fusion/solve_again.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_stages.h"

namespace kelpie::fusion {
namespace {

// Shares of the time, at most:
constexpr double kFirstTurn = 0.1;           ///< of stages, and of whole clusters
constexpr double kSecondsOfFirstTurn = 1.5;  ///< and no longer than that
constexpr double kAnnealing = 0.25;
constexpr double kStages = 0.7, kSolvingAgain = 0.2, kPromising = 0.5, kUnpromising = 0.3;
/// Stages begin anew each time: a later turn that is too short would find no more than before.
constexpr double kStagesLater = 0.5, kMoreThanBefore = 1.5;
constexpr int kFewClusters = 20;  ///< more are no stages
/// Of kFewNodes all partitions are soon looked through, where programs may take many times as long: half a
/// second for 14 of which many read the same arrays.
constexpr int64_t kStepsOfFewNodes = 2'000'000;
/// Of so many nodes on average, clusters are worth solving again by stages; of fewer, all are found sooner.
constexpr int kLargeClusters = 8;

}  // namespace

PartSolver::PartSolver(PartitionProblem problem, const Assignment& start, double lower, bool shortcut)
    : problem_(std::move(problem)),
      pairs_(problem_),
      shortcut_(shortcut),
      cluster_(start),
      cost_(costOf(problem_, start)) {
  bound_ = std::min(cost_, std::max(lower, shortcut ? lowerBound(problem_, pairs_) : 0));
}

void PartSolver::run(double seconds) {
  const Deadline deadline(seconds);
  if (!shortcut_) {
    if (!search_) annealed(kAnnealing * seconds);
    return wholeClusters(deadline.secondsLeft());
  }
  const double firstTurn = std::min(kFirstTurn * seconds, kSecondsOfFirstTurn);
  if (!search_) {
    if (!proven()) offer(improve(problem_, pairs_, cluster_), bound_);
    if (!proven() && problem_.nodes <= kFewNodes) allPartitions();
    if (!proven()) stages(firstTurn);
    if (!proven()) annealed(kAnnealing * seconds);
    const double bound = bound_;
    if (!proven()) wholeClusters(firstTurn);
    clustersPromise_ = bound_ > bound;
  }
  if (!proven()) wholeClusters((clustersPromise_ ? kPromising : kUnpromising) * seconds);
  if (!proven() && clusters() <= kFewClusters) {
    const double most = stagesTook_ > 0 && !clustersPromise_ ? kStagesLater : kStages;
    const double given = std::min(most * seconds, deadline.secondsLeft());
    if (given >= kMoreThanBefore * stagesTook_) {
      stages(given);
      stagesTook_ = given;
    }
  }
  if (!proven() && problem_.nodes >= kLargeClusters * clusters())
    offer(solveAgain(problem_, pairs_, cluster_, Deadline(kSolvingAgain * seconds)), bound_);
  if (!proven()) wholeClusters(deadline.secondsLeft());
}

void PartSolver::offer(const Assignment& cluster, double bound) {
  if (const double cost = costOf(problem_, cluster); cost < cost_) {
    cost_ = cost;
    cluster_ = cluster;
  }
  bound_ = std::min(cost_, std::max(bound_, bound));
}

void PartSolver::allPartitions() {
  CountedWork work(kStepsOfFewNodes);
  const CountedSearchResult found = searchCounted(problem_, pairs_, cost_, work);
  if (!found.cluster.empty()) offer(found.cluster, bound_);
  if (found.complete) bound_ = cost_;
}

void PartSolver::stages(double seconds) {
  const StagedPartition staged = solveStages(problem_, pairs_, cluster_, bound_, Deadline(seconds));
  offer(staged.cluster, staged.bound);
  fewest_ = std::max(fewest_, staged.fewest);
}

void PartSolver::annealed(double seconds) {
  offer(improve(problem_, pairs_, anneal(problem_, pairs_, cluster_, seconds)), bound_);
}

void PartSolver::wholeClusters(double seconds) {
  if (seconds <= 0) return;
  if (!search_) search_ = std::make_unique<ClusterSearch>(problem_, cluster_);
  const ClusterSearchResult& result = search_->run(cluster_, bound_, fewest_, seconds);
  offer(result.cluster, result.bound);
  columns_ = result.columns;
  rows_ = result.rows;
  cuts_ = result.cuts;
}

int PartSolver::clusters() const { return 1 + *std::max_element(cluster_.begin(), cluster_.end()); }

}  // namespace kelpie::fusion
